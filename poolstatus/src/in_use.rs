//! Devices of one pool that claims hold, and the capacity that claims consume of shared devices.

use std::collections::BTreeMap;

use dra_attrs::Quantity;
use dra_device::allocated_devices;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};

use crate::quantity_sum::{OrderFreeFormat, QuantitySum};

/// Returns a claim's allocation results that keep a device from other claims: all but those with admin access. Results
/// count even if the claim is being deleted or is not reserved for a pod.
pub(crate) fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    allocated_devices(claim).iter().filter(|result| result.admin_access != Some(true))
}

/// Device names and consumed capacity of one pool, from the allocation results of claims.
#[derive(Debug, Default)]
pub(crate) struct InUse<'c> {
    /// Names of the devices that claims hold, sorted, each once.
    names: Vec<&'c str>,
    /// Consumed amount of each capacity, summed over all devices.
    consumed: BTreeMap<&'c str, QuantitySum<OrderFreeFormat>>,
    /// Number of consumed amounts that are not valid quantities.
    pub(crate) unreadable: usize,
}

impl<'c> InUse<'c> {
    /// Collects the devices and amounts of allocation results. Their order does not matter.
    pub(crate) fn from_results(results: &[&'c DeviceRequestAllocationResult]) -> Self {
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

    /// Returns the number of device names, including names that the latest generation of the pool does not have.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn contains(&self, device: &str) -> bool {
        self.position(device).is_some()
    }

    /// Returns the position of a device among the sorted names.
    pub(crate) fn position(&self, device: &str) -> Option<usize> {
        self.names.binary_search(&device).ok()
    }

    /// Returns the consumed amount of a capacity, summed over all devices.
    pub(crate) fn consumed(&self, capacity: &str) -> Quantity {
        self.consumed.get(capacity).map_or(Quantity::ZERO, QuantitySum::total)
    }
}
