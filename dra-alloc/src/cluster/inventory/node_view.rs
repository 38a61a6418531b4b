//! Views of nodes, built from the inventory and cached until a slice of the node changes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use dra_attrs::GateSet;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use smallvec::SmallVec;

use super::Inventory;
use super::pool::{LatestGeneration, Pool, group_by_pool, has_counters, slice_devices};
use super::view::{SliceError, View};
use crate::config::gates::DraGate;
use crate::device::node::Scope;

/// Reference to a slice of the inventory, as a type that [`group_by_pool`] accepts.
#[derive(Clone, Copy)]
struct Listed<'i>(&'i Arc<ResourceSlice>);

impl Deref for Listed<'_> {
    type Target = ResourceSlice;

    fn deref(&self) -> &ResourceSlice {
        self.0
    }
}

impl Inventory {
    /// Returns the view of a node, from the cache if possible.
    pub(crate) fn view(&self, node: &Node, gates: GateSet<DraGate>) -> Result<Cow<'_, View>, Box<SliceError<'_>>> {
        let mut shared = Vec::new();
        for slice in self.shared_slices() {
            if is_for(slice, node, gates)? {
                shared.push(slice);
            }
        }
        let (own, kept) = self.own_slices(node.metadata.name.as_deref().unwrap_or_default());
        if !shared.is_empty() {
            return Ok(Cow::Owned(self.make_view(own.chain(shared), gates).0));
        }
        let make = || self.make_view(own.clone(), gates);
        let kept = kept.and_then(|kept| {
            let view =
                kept.get_or_init(|| Some(make()).filter(|(_, is_lasting)| *is_lasting).map(|(view, _)| Box::new(view)));
            view.as_ref().filter(|view| view.gates == gates)
        });
        Ok(kept.map_or_else(|| Cow::Owned(make().0), |view| Cow::Borrowed(&**view)))
    }

    /// Builds the view of `slices`, and a flag that is true if the view may be cached because no other slice can change
    /// it.
    fn make_view<'i>(
        &self,
        slices: impl Iterator<Item = &'i Arc<ResourceSlice>>,
        gates: GateSet<DraGate>,
    ) -> (View, bool) {
        let mut slices: SmallVec<[Listed<'_>; 4]> = slices.filter(|slice| is_known(slice, gates)).map(Listed).collect();
        let (mut pools, mut is_lasting) = (Vec::with_capacity(slices.len()), true);
        for newest in group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices) {
            is_lasting &= newest.is_complete();
            pools.extend(self.pool(newest, gates));
        }
        let devices = pools.iter().map(Pool::len).sum();
        (View { gates, pools: pools.into_boxed_slice(), devices }, is_lasting)
    }

    /// Builds a pool from the slices that a node sees; `None` if a newer generation of the pool exists on other nodes
    /// only.
    fn pool(&self, newest: LatestGeneration<'_, Listed<'_>>, gates: GateSet<DraGate>) -> Option<Pool> {
        let own = || newest.slices().map(|Listed(slice)| Arc::clone(slice));
        if newest.is_complete() {
            return Some(Pool::complete(own(), std::iter::empty(), gates));
        }
        let all = || self.pool_slices(newest.driver(), newest.pool());
        if all().any(|slice| slice.spec.pool.generation > newest.generation()) {
            return None;
        }
        let current = || all().filter(|slice| slice.spec.pool.generation == newest.generation());
        if !newest.expects(current().count()) {
            return Some(Pool::incomplete(current().cloned(), gates));
        }
        let seen: BTreeSet<_> = newest.slices().map(|Listed(slice)| Arc::as_ptr(slice)).collect();
        let others = current().filter(|slice| !seen.contains(&Arc::as_ptr(slice))).cloned();
        Some(Pool::complete(own(), others, gates))
    }
}

/// Returns true if kube-scheduler reads a slice: one with counters or per-device node selection is read only with the
/// gate `DRAPartitionableDevices` on.
fn is_known(slice: &ResourceSlice, gates: GateSet<DraGate>) -> bool {
    gates.has(DraGate::PartitionableDevices) || (slice.spec.per_device_node_selection.is_none() && !has_counters(slice))
}

/// Returns true if a shared slice is visible to the node.
fn is_for<'i>(slice: &'i ResourceSlice, node: &Node, gates: GateSet<DraGate>) -> Result<bool, Box<SliceError<'i>>> {
    if !is_known(slice, gates) {
        return Ok(false);
    }
    let failed = |device, error| Box::new(SliceError { slice, device, error });
    match Scope::from_slice(&slice.spec) {
        Scope::Unknown if slice.spec.per_device_node_selection == Some(true) => {
            for device in slice_devices(slice) {
                if Scope::from_device(device).matches(node).map_err(|error| failed(Some(device), error))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        scope => scope.matches(node).map_err(|error| failed(None, error)),
    }
}
