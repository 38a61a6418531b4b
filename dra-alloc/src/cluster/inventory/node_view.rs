//! Views of nodes, built from the inventory and kept until a slice changes that they depend on.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use dra_device::pool::{LatestGeneration, group_by_pool, slice_devices};
use k8s_openapi::api::core::v1::{Node, NodeSelector};
use k8s_openapi::api::resource::v1::ResourceSlice;
use smallvec::SmallVec;

use super::Inventory;
use super::kept::{SharedPool, SharedSet};
use super::lists::{Positions, SliceIndex};
use super::pool::{Pool, has_counters};
use super::sight::Sight;
use super::view::{CachedPools, OwnPools, PoolRef, SliceError, View};
use crate::cluster::scope::Scope;
use crate::cluster::trie::hash;

/// Reference to a slice of the inventory with its position, as a type that [`group_by_pool`] accepts.
#[derive(Clone, Copy)]
struct Listed<'i>(SliceIndex, &'i Arc<ResourceSlice>);

impl Deref for Listed<'_> {
    type Target = ResourceSlice;

    fn deref(&self) -> &ResourceSlice {
        self.1
    }
}

/// Slices of one pool that a node sees: first its own, then shared ones.
type Group<'g, 'i> = LatestGeneration<'g, Listed<'i>>;

impl Inventory {
    /// Returns the view of a node. It depends on one gate and the rules of the release only.
    pub(crate) fn view(&self, node: &Node, sight: Sight) -> Result<View<'_>, Box<SliceError<'_>>> {
        self.view_and_weight(node, sight).0
    }

    /// Returns the view of a node, and the number of comparisons by which shared slices were found, the same whether what
    /// can be kept was kept.
    pub(crate) fn view_and_weight(&self, node: &Node, sight: Sight) -> (Result<View<'_>, Box<SliceError<'_>>>, usize) {
        let mut weight = 0;
        let view = self.weighed_view(node, sight, &mut weight);
        (view, weight)
    }

    #[inline]
    fn weighed_view(&self, node: &Node, sight: Sight, weight: &mut usize) -> Result<View<'_>, Box<SliceError<'_>>> {
        let (own, cell) = self.own_slices(node.metadata.name.as_deref().unwrap_or_default());
        let only_own = |kept: Option<_>| kept.map_or_else(|| View::mixed(self.made(own, sight), None), View::Own);
        if self.shared().is_empty() {
            return Ok(only_own(self.own_pools(own, cell, sight)));
        }
        let beside = self.visible_beside(node, sight, weight)?;
        let kept = self.own_pools(own, cell, sight);
        if beside.is_empty() && self.shared().everywhere().is_empty() {
            return Ok(only_own(kept));
        }
        let set = self.shared_set(&beside, sight);
        if own.is_empty()
            && let Some(view) = View::of_shared(Arc::clone(&set))
        {
            return Ok(view);
        }
        if let Some(kept) = kept {
            return Ok(self.merged(&kept.pools, own, &set));
        }
        let shared = set.pools.iter().flat_map(|pool| &pool.positions).copied();
        let all: Positions = own.iter().copied().chain(shared).collect();
        Ok(View::mixed(self.made(&all, sight), None))
    }

    /// Returns the shared slices that a node sees beside those for all nodes.
    fn visible_beside(&self, node: &Node, sight: Sight, weight: &mut usize) -> Result<Positions, Box<SliceError<'_>>> {
        let mut visible = Positions::new();
        // Drivers mostly write one selector into all their slices, of which one comparison with the node is enough.
        let mut last: Option<(&NodeSelector, bool, usize)> = None;
        for index in self.shared().beside(node) {
            let Some(slice) = self.slice(index) else { continue };
            let selector = selector_alone(slice, sight);
            let (is_visible, own_weight) = match last {
                Some((known, is_visible, known_weight)) if selector == Some(known) => (is_visible, known_weight),
                _ => {
                    let mut own_weight = 0;
                    let is_visible =
                        is_for(slice, node, sight, &mut own_weight).inspect_err(|_| *weight += own_weight)?;
                    last = selector.map(|selector| (selector, is_visible, own_weight)).or(last);
                    (is_visible, own_weight)
                }
            };
            *weight += own_weight;
            if is_visible {
                visible.push(index);
            }
        }
        Ok(visible)
    }

    /// Returns the pools of a node's own slices, from the cache or now; `None` if other slices decide about one of them.
    fn own_pools<'i>(
        &'i self,
        own: &'i [SliceIndex],
        cell: Option<&'i CachedPools>,
        sight: Sight,
    ) -> Option<&'i OwnPools> {
        let make = || {
            let mut slices = self.known(own, sight);
            let newest: SmallVec<[Group<'_, '_>; 4]> =
                group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices).collect();
            if !newest.iter().all(|newest| newest.is_complete()) {
                return None;
            }
            let mut pools = Vec::with_capacity(newest.len());
            pools.extend(newest.into_iter().filter_map(|newest| self.pool(newest, sight)));
            Some(Arc::new(OwnPools::new(sight, pools.into_boxed_slice())))
        };
        cell?.get_or_init(make).as_deref().filter(|kept| kept.sight == sight)
    }

    /// Returns the pools of slices, from the cache or now.
    fn made(&self, positions: &[SliceIndex], sight: Sight) -> Vec<PoolRef<'static>> {
        let mut slices = self.known(positions, sight);
        group_by_pool(&mut slices).filter_map(|group| self.kept_pool(group, sight)).map(PoolRef::Shared).collect()
    }

    /// Returns the pool of a group of slices, from the cache or now.
    fn kept_pool(&self, group: &[Listed<'_>], sight: Sight) -> Option<Arc<Pool>> {
        let newest = LatestGeneration::from_slices(group)?;
        let positions: Positions = group.iter().map(|Listed(index, _)| *index).collect();
        let key = hash([newest.driver(), newest.pool()]);
        self.kept.pool(key, &positions, sight, || self.pool(newest, sight))
    }

    /// Returns the pools of a set of shared slices: `beside`, and those for all nodes.
    fn shared_set(&self, beside: &Positions, sight: Sight) -> Arc<SharedSet> {
        self.kept.set(beside, sight, || {
            let pools = if beside.is_empty() {
                self.shared_pools(self.shared().everywhere(), sight)
            } else {
                let everywhere = self.shared_set(&Positions::new(), sight);
                self.with_more(&everywhere.pools, self.shared_pools(beside, sight), sight)
            };
            SharedSet::new(sight, beside.clone(), pools)
        })
    }

    fn shared_pools(&self, positions: &[SliceIndex], sight: Sight) -> Vec<SharedPool> {
        let mut slices = self.known(positions, sight);
        group_by_pool(&mut slices).map(|group| self.shared_pool(group, sight)).collect()
    }

    fn shared_pool(&self, group: &[Listed<'_>], sight: Sight) -> SharedPool {
        let is_complete = LatestGeneration::from_slices(group).is_some_and(Group::is_complete);
        let pool = if is_complete { self.kept_pool(group, sight) } else { None };
        SharedPool { positions: group.iter().map(|Listed(index, _)| *index).collect(), pool }
    }

    /// Merges the pools of two disjoint sets of shared slices.
    fn with_more(&self, some: &[SharedPool], more: Vec<SharedPool>, sight: Sight) -> Vec<SharedPool> {
        let mut merged = Vec::with_capacity(some.len() + more.len());
        let mut some = some.iter().peekable();
        for pool in more {
            while let Some(before) = some.next_if(|other| self.order(&other.positions, &pool.positions).is_lt()) {
                merged.push(before.clone());
            }
            match some.next_if(|other| self.order(&other.positions, &pool.positions).is_eq()) {
                None => merged.push(pool),
                Some(equal) => {
                    let mut positions: Positions = equal.positions.iter().chain(&pool.positions).copied().collect();
                    positions.sort_unstable();
                    merged.push(self.shared_pool(&self.known(&positions, sight), sight));
                }
            }
        }
        merged.extend(some.cloned());
        merged
    }

    /// Merges the pools of a node's own slices and of the shared slices that it sees.
    fn merged<'i>(&self, own_pools: &'i [Pool], own: &[SliceIndex], set: &Arc<SharedSet>) -> View<'i> {
        let mut merged = Vec::with_capacity(own_pools.len() + set.pools.len());
        let mut is_whole = true;
        let mut own_pools = own_pools.iter().peekable();
        for shared in &set.pools {
            let Some(name) = shared.positions.first().and_then(|index| self.slice(*index)).map(|slice| pool_of(slice))
            else {
                continue;
            };
            while let Some(before) = own_pools.next_if(|pool| (pool.driver(), pool.name()) < name) {
                merged.push(PoolRef::Own(before));
            }
            let both = own_pools.next_if(|pool| (pool.driver(), pool.name()) == name);
            if let (Some(pool), None) = (&shared.pool, both) {
                merged.push(PoolRef::Shared(Arc::clone(pool)));
                continue;
            }
            is_whole = false;
            let is_its = |index: &SliceIndex| self.slice(*index).is_some_and(|slice| pool_of(slice) == name);
            let own = own.iter().copied().filter(is_its);
            let all: Positions = own.chain(shared.positions.iter().copied()).collect();
            merged.extend(self.kept_pool(&self.known(&all, set.sight), set.sight).map(PoolRef::Shared));
        }
        merged.extend(own_pools.map(PoolRef::Own));
        View::mixed(merged, is_whole.then(|| Arc::clone(set)))
    }

    /// Compares two pools, of which slices are given.
    fn order(&self, left: &[SliceIndex], right: &[SliceIndex]) -> Ordering {
        let name = |positions: &[SliceIndex]| {
            positions.first().and_then(|index| self.slice(*index)).map(|slice| pool_of(slice))
        };
        name(left).cmp(&name(right))
    }

    /// Returns the slices at positions that kube-scheduler reads.
    fn known(&self, positions: &[SliceIndex], sight: Sight) -> SmallVec<[Listed<'_>; 4]> {
        let slices = positions.iter().filter_map(|index| Some(Listed(*index, self.slice(*index)?)));
        slices.filter(|slice| is_known(slice, sight)).collect()
    }

    /// Builds a pool from the slices that a node sees; `None` if a newer generation of the pool exists on other nodes
    /// only.
    fn pool(&self, newest: Group<'_, '_>, sight: Sight) -> Option<Pool> {
        let own = || newest.slices().map(|Listed(_, slice)| Arc::clone(slice));
        let hash = hash([newest.driver(), newest.pool()]);
        if newest.is_complete() {
            return Some(Pool::complete(hash, own(), std::iter::empty(), sight));
        }
        if sight.uses_partial_pools {
            return Some(Pool::partial(hash, own(), sight));
        }
        let all = || self.pool_slices(newest.driver(), newest.pool());
        if all().any(|slice| slice.spec.pool.generation > newest.generation()) {
            return None;
        }
        let current = || all().filter(|slice| slice.spec.pool.generation == newest.generation());
        if i64::try_from(current().count()) != Ok(newest.expected_slice_count()) {
            return Some(Pool::incomplete(hash, current().cloned(), sight));
        }
        let seen: BTreeSet<_> = newest.slices().map(|Listed(_, slice)| Arc::as_ptr(slice)).collect();
        let others = current().filter(|slice| !seen.contains(&Arc::as_ptr(slice))).cloned();
        Some(Pool::complete(hash, own(), others, sight))
    }
}

fn pool_of(slice: &ResourceSlice) -> (&str, &str) {
    (&slice.spec.driver, &slice.spec.pool.name)
}
/// Returns true if kube-scheduler reads a slice: one with counters or per-device node selection is read only with the
/// gate `DRAPartitionableDevices` on.
fn is_known(slice: &ResourceSlice, sight: Sight) -> bool {
    sight.reads_counters || (slice.spec.per_device_node_selection.is_none() && !has_counters(slice))
}

/// Returns the node selector of a slice if it alone decides which nodes see the slice.
fn selector_alone(slice: &ResourceSlice, sight: Sight) -> Option<&NodeSelector> {
    match Scope::from_slice(&slice.spec) {
        Scope::Selector(selector) if is_known(slice, sight) => Some(selector),
        _ => None,
    }
}

/// Returns true if a shared slice is visible to the node.
fn is_for<'i>(
    slice: &'i ResourceSlice,
    node: &Node,
    sight: Sight,
    weight: &mut usize,
) -> Result<bool, Box<SliceError<'i>>> {
    if !is_known(slice, sight) {
        return Ok(false);
    }
    let failed = |device, error| Box::new(SliceError { slice, device, error });
    match Scope::from_slice(&slice.spec) {
        Scope::Unknown if slice.spec.per_device_node_selection == Some(true) => {
            for device in slice_devices(slice) {
                let scope = Scope::from_device(device);
                *weight += scope.weight();
                if scope.matches(node).map_err(|error| failed(Some(device), error))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        scope => {
            *weight += scope.weight();
            scope.matches(node).map_err(|error| failed(None, error))
        }
    }
}
