//! What a node sees: the pools made of the slices that are for it.
//!
//! A node sees the same pools until one of its slices changes, so that the index keeps its view: the pools, and what a
//! look at their devices told. A view is made anew for each call
//!
//! - if there are slices among its own that nodes share, since a node's labels decide about those;
//! - if a pool is not complete by the slices that the node sees, since slices elsewhere decide about it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use super::Inventory;
use super::pool::{Newest, Pool, devices_of, grouped, has_counters};
use crate::features::{Feature, Features};
use crate::node::{NodeSelectorError, Scope};

/// The pools that a node sees, by driver and name.
#[derive(Clone, Debug)]
pub(crate) struct View {
    features: Features,
    pub(crate) pools: Box<[Pool]>,
    /// The number of devices in all pools.
    pub(crate) devices: usize,
}

/// A slice in the index.
#[derive(Clone, Copy)]
struct Listed<'i>(&'i Arc<ResourceSlice>);

impl Deref for Listed<'_> {
    type Target = ResourceSlice;

    fn deref(&self) -> &ResourceSlice {
        self.0
    }
}

/// The view that is kept for a node, once it was made; nothing where it would not last.
pub(super) type Kept = OnceLock<Option<Box<View>>>;

/// A slice whose node selector, or that of a device, can't be used.
#[derive(Clone, Debug)]
pub(crate) struct SliceError<'i> {
    pub(crate) slice: &'i ResourceSlice,
    pub(crate) device: Option<&'i Device>,
    pub(crate) error: NodeSelectorError,
}

impl Inventory {
    /// What a node sees.
    pub(crate) fn view(&self, node: &Node, features: Features) -> Result<Cow<'_, View>, Box<SliceError<'_>>> {
        let mut shared = Vec::new();
        for slice in self.shared_slices() {
            if is_for(slice, node, features)? {
                shared.push(slice);
            }
        }
        let (own, kept) = self.own_slices(node.metadata.name.as_deref().unwrap_or_default());
        if !shared.is_empty() {
            return Ok(Cow::Owned(self.make_view(own.chain(shared), features).0));
        }
        let make = || self.make_view(own.clone(), features);
        let kept = kept.and_then(|kept| {
            let view =
                kept.get_or_init(|| Some(make()).filter(|(_, is_lasting)| *is_lasting).map(|(view, _)| Box::new(view)));
            view.as_ref().filter(|view| view.features == features)
        });
        Ok(kept.map_or_else(|| Cow::Owned(make().0), |view| Cow::Borrowed(&**view)))
    }

    /// The view of some slices, and whether it depends on nothing but these.
    fn make_view<'i>(&self, slices: impl Iterator<Item = &'i Arc<ResourceSlice>>, features: Features) -> (View, bool) {
        let mut slices: SmallVec<[Listed<'_>; 4]> =
            slices.filter(|slice| is_known(slice, features)).map(Listed).collect();
        let (mut pools, mut is_lasting) = (Vec::with_capacity(slices.len()), true);
        for newest in grouped(&mut slices).filter_map(Newest::of) {
            is_lasting &= newest.is_complete();
            pools.extend(self.pool(newest, features));
        }
        let devices = pools.iter().map(Pool::len).sum();
        (View { features, pools: pools.into_boxed_slice(), devices }, is_lasting)
    }

    /// The pool made of the slices that a node sees; none if they are obsolete.
    fn pool(&self, newest: Newest<'_, Listed<'_>>, features: Features) -> Option<Pool> {
        let own = || newest.slices().map(|Listed(slice)| Arc::clone(slice));
        if newest.is_complete() {
            return Some(Pool::complete(own(), std::iter::empty(), features));
        }
        let all = || self.pool_slices(newest.driver(), newest.pool());
        if all().any(|slice| slice.spec.pool.generation > newest.generation()) {
            return None;
        }
        let current = || all().filter(|slice| slice.spec.pool.generation == newest.generation());
        if !newest.announces(current().count()) {
            return own().next().map(|slice| Pool::incomplete(slice, features));
        }
        let seen: BTreeSet<_> = newest.slices().map(|Listed(slice)| Arc::as_ptr(slice)).collect();
        let others = current().filter(|slice| !seen.contains(&Arc::as_ptr(slice))).cloned();
        Some(Pool::complete(own(), others, features))
    }
}

/// Whether slices of its kind are known with these features.
fn is_known(slice: &ResourceSlice, features: Features) -> bool {
    features.has(Feature::PartitionableDevices)
        || (slice.spec.per_device_node_selection.is_none() && !has_counters(slice))
}

/// Whether a node needs to know a slice that nodes share.
fn is_for<'i>(slice: &'i ResourceSlice, node: &Node, features: Features) -> Result<bool, Box<SliceError<'i>>> {
    if !is_known(slice, features) {
        return Ok(false);
    }
    let failed = |device, error| Box::new(SliceError { slice, device, error });
    match Scope::of_slice(&slice.spec) {
        Scope::Unknown if slice.spec.per_device_node_selection == Some(true) => {
            for device in devices_of(slice) {
                if Scope::of_device(device).matches(node).map_err(|error| failed(Some(device), error))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        scope => scope.matches(node).map_err(|error| failed(None, error)),
    }
}
