//! The devices that claims hold: the results of their allocations, and where they are published.

use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimStatus, ResourceSlice,
};

use crate::inventory::pool::devices_of;

/// The device results of a claim, in their order; none if it is not allocated.
///
/// ```
/// use dra_alloc::allocated;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// use serde_json::{from_value, json};
/// let device = json!({"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"});
/// let claim: ResourceClaim = from_value(json!({"status": {"allocation": {"devices": {"results": [device]}}}}))?;
/// assert_eq!(allocated::of_claim(&claim)[0].device, "gpu-0");
/// assert!(allocated::of_claim(&ResourceClaim::default()).is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn of_claim(claim: &ResourceClaim) -> &[DeviceRequestAllocationResult] {
    of_status(claim.status.as_ref())
}

/// The device results in the status of a claim.
pub(crate) fn of_status(status: Option<&ResourceClaimStatus>) -> &[DeviceRequestAllocationResult] {
    status.and_then(|status| status.allocation.as_ref()).map(of_allocation).unwrap_or_default()
}

/// The device results of an allocation.
pub(crate) fn of_allocation(allocation: &AllocationResult) -> &[DeviceRequestAllocationResult] {
    allocation.devices.as_ref().and_then(|devices| devices.results.as_deref()).unwrap_or_default()
}

/// The device of a result, in the newest generation of its pool that has one of the name; of several, the last.
pub(crate) fn published<'s>(
    result: &DeviceRequestAllocationResult,
    slices: &'s [ResourceSlice],
) -> Option<(&'s ResourceSlice, &'s Device)> {
    let pool = slices.iter().filter(|slice| slice.spec.driver == result.driver && slice.spec.pool.name == result.pool);
    let named = pool.filter_map(|slice| {
        let device = devices_of(slice).iter().find(|device| device.name == result.device)?;
        Some((slice, device))
    });
    named.max_by_key(|(slice, _)| slice.spec.pool.generation)
}
