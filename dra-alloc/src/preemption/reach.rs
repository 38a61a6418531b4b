//! Devices that a node sees.

use dra_device::internal::of_allocation;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult};

use crate::allocator::Allocator;
use crate::cluster::inventory::pool::Pool;
use crate::cluster::inventory::view::View;
use crate::cluster::state::AllocatedState;
use crate::search::allocate_error::AllocateError;

/// Devices that a node sees.
pub(super) struct Reach<'a>(View<'a>);

impl<'a> Reach<'a> {
    pub(super) fn new(allocator: &Allocator<'a>, node: &Node) -> Result<Self, AllocateError> {
        allocator.view(node).map(Self)
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.0.pools()
    }

    /// Returns true if all devices of an allocation are bound to the node by its name: they are devices of the node's slices,
    /// and each of them, or its slice, has a `nodeName`.
    pub(super) fn binds_all(&self, allocation: &AllocationResult) -> bool {
        of_allocation(allocation).iter().all(|result| self.binds(result))
    }

    fn binds(&self, result: &DeviceRequestAllocationResult) -> bool {
        let mut pools = self.pools().filter(|pool| pool.driver() == result.driver && pool.name() == result.pool);
        pools.any(|pool| {
            let mut devices = pool.devices().with_slices();
            let found = devices.find(|(_, device)| device.name == result.device);
            found.is_some_and(|(slice, device)| slice.spec.node_name.is_some() || device.node_name.is_some())
        })
    }

    /// Returns the number of devices in the pools of the node that an allocation holds.
    pub(super) fn held_by(&self, allocation: &AllocationResult) -> usize {
        let is_held = |result: &&DeviceRequestAllocationResult| {
            result.admin_access != Some(true)
                && self.pools().any(|pool| pool.driver() == result.driver && pool.name() == result.pool)
        };
        of_allocation(allocation).iter().filter(is_held).count()
    }

    /// Returns the number of free devices; `None` if that says nothing about what can be allocated, since devices can be
    /// shared, consume counters, or are held twice.
    pub(super) fn free(&self, state: &AllocatedState) -> Option<usize> {
        let free = |pool: &Pool| {
            let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
            let is_clear = pool.is_plain() && used.is_none_or(|used| used.held_twice() == 0);
            let used = used.map_or(0, |used| used.occupancy(pool.devices()).used_count());
            is_clear.then(|| pool.len().saturating_sub(used))
        };
        self.pools().map(free).sum()
    }
}
