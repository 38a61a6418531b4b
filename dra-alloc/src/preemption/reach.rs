//! Nodes, and the devices that they see.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use dra_device::internal::of_allocation;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult};
use smallvec::SmallVec;

use super::view::node_name;
use crate::allocator::Allocator;
use crate::cluster::inventory::pool::Pool;
use crate::cluster::inventory::view::View;
use crate::cluster::state::AllocatedState;
use crate::search::allocate_error::AllocateError;

/// Nodes, and the devices that they see.
pub(super) struct Reach<'q> {
    nodes: SmallVec<[&'q Node; 1]>,
    /// Devices of each node.
    views: SmallVec<[View<'q>; 1]>,
    /// Pools that an earlier node sees, too, by node and position.
    repeated: BTreeSet<(usize, usize)>,
    /// True if all nodes that see a pool see the same devices of it.
    is_alike: bool,
}

impl<'q> Reach<'q> {
    pub(super) fn new(allocator: &Allocator<'q>, nodes: &[&'q Node]) -> Result<Self, AllocateError> {
        let views: SmallVec<[View<'q>; 1]> = nodes.iter().map(|node| allocator.view(node)).collect::<Result<_, _>>()?;
        let (repeated, is_alike) = if views.len() > 1 { repeated(&views) } else { (BTreeSet::new(), true) };
        Ok(Self { nodes: SmallVec::from_slice(nodes), views, repeated, is_alike })
    }

    pub(super) fn nodes(&self) -> &[&'q Node] {
        &self.nodes
    }

    /// Returns true if no pool is seen by two of the nodes, so that what is taken on one leaves the others as they are.
    pub(super) fn is_divided(&self) -> bool {
        self.repeated.is_empty()
    }

    /// Returns the pools, each once.
    pub(super) fn pools(&self) -> impl Iterator<Item = &Pool> {
        let all =
            self.views.iter().enumerate().flat_map(|(view, pools)| {
                pools.pools().enumerate().map(move |(position, pool)| ((view, position), pool))
            });
        all.filter(|(place, _)| !self.repeated.contains(place)).map(|(_, pool)| pool)
    }

    /// Returns true if a node sees the pool of a device.
    pub(super) fn sees(&self, node: usize, result: &DeviceRequestAllocationResult) -> bool {
        self.views.get(node).is_some_and(|view| view.pools().any(|pool| is_of(pool, result)))
    }

    /// Returns true if one of the nodes has that name.
    pub(super) fn has(&self, node: &str) -> bool {
        self.nodes.binary_search_by_key(&node, |node| node_name(node)).is_ok()
    }

    /// Returns true if all devices of an allocation are bound to one of the nodes by its name: they are devices of the nodes'
    /// slices, and each of them, or its slice, has a `nodeName`.
    pub(super) fn binds_all(&self, allocation: &AllocationResult) -> bool {
        of_allocation(allocation).iter().all(|result| self.binds(result))
    }

    fn binds(&self, result: &DeviceRequestAllocationResult) -> bool {
        let mut pools = self.views.iter().flat_map(View::pools).filter(|pool| is_of(pool, result));
        pools.any(|pool| {
            let mut devices = pool.devices().with_slices();
            let found = devices.find(|(_, device)| device.name == result.device);
            found.is_some_and(|(slice, device)| slice.spec.node_name.is_some() || device.node_name.is_some())
        })
    }

    /// Returns the number of devices in the pools of the nodes that an allocation holds.
    pub(super) fn held_by(&self, allocation: &AllocationResult) -> usize {
        let is_held = |result: &&DeviceRequestAllocationResult| {
            result.admin_access != Some(true) && self.views.iter().flat_map(View::pools).any(|pool| is_of(pool, result))
        };
        of_allocation(allocation).iter().filter(is_held).count()
    }

    /// Returns the number of free devices; `None` if that says nothing about what can be allocated, since devices can be
    /// shared, consume counters, are held twice, or are not the same for all nodes.
    pub(super) fn free(&self, state: &AllocatedState) -> Option<usize> {
        let free = |pool: &Pool| {
            let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
            let is_clear = pool.is_plain() && used.is_none_or(|used| used.held_twice() == 0);
            let used = used.map_or(0, |used| used.occupancy(pool.devices()).used_count());
            is_clear.then(|| pool.len().saturating_sub(used))
        };
        if self.is_alike { self.pools().map(free).sum() } else { None }
    }
}

fn is_of(pool: &Pool, result: &DeviceRequestAllocationResult) -> bool {
    pool.driver() == result.driver && pool.name() == result.pool
}

/// Returns the pools that an earlier view has, too, and true if they are the same there.
fn repeated(views: &[View<'_>]) -> (BTreeSet<(usize, usize)>, bool) {
    let mut known: BTreeMap<[&str; 2], &Pool> = BTreeMap::new();
    let (mut repeated, mut is_alike) = (BTreeSet::new(), true);
    for (index, view) in views.iter().enumerate() {
        for (position, pool) in view.pools().enumerate() {
            match known.entry([pool.driver(), pool.name()]) {
                Entry::Vacant(new) => drop(new.insert(pool)),
                Entry::Occupied(first) => {
                    repeated.insert((index, position));
                    is_alike &= std::ptr::eq(*first.get(), pool);
                }
            }
        }
    }
    (repeated, is_alike)
}
