//! Which devices of one pool claims hold, and what they consume of shared ones.

use std::collections::BTreeMap;

use dra_alloc::allocated::of_claim;
use dra_attrs::quantity::Quantity;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};

use crate::amount::{Sum, Unordered};

/// The device results of a claim that take something away. Admin access does not, and neither does a claim without an
/// allocation; deletion and reservation make no difference.
pub(crate) fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    of_claim(claim).iter().filter(|result| result.admin_access != Some(true))
}

/// What claims hold of one pool.
#[derive(Debug, Default)]
pub(crate) struct InUse<'c> {
    /// Names of devices, sorted, each once.
    names: Vec<&'c str>,
    /// By capacity, over all devices.
    consumed: BTreeMap<&'c str, Sum<Unordered>>,
    /// Amounts that are no quantities.
    pub(crate) unreadable: usize,
}

impl<'c> InUse<'c> {
    /// The order of the results does not matter.
    pub(crate) fn of(results: &[&'c DeviceRequestAllocationResult]) -> Self {
        let mut names: Vec<&str> = results.iter().map(|result| result.device.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut in_use = Self { names, ..Self::default() };
        for (capacity, amount) in results.iter().flat_map(|result| result.consumed_capacity.iter().flatten()) {
            match Quantity::from_kube(amount) {
                Ok(amount) => in_use.consumed.entry(capacity).or_default().add(amount),
                Err(_) => in_use.unreadable = in_use.unreadable.saturating_add(1),
            }
        }
        in_use
    }

    /// How many devices, of whatever generation.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn contains(&self, device: &str) -> bool {
        self.position(device).is_some()
    }

    /// The place of a device among the names.
    pub(crate) fn position(&self, device: &str) -> Option<usize> {
        self.names.binary_search(&device).ok()
    }

    /// What all devices together are consumed of.
    pub(crate) fn consumed(&self, capacity: &str) -> Quantity {
        self.consumed.get(capacity).map_or(Quantity::ZERO, Sum::total)
    }
}
