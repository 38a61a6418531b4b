//! Device results of allocated claims, and the published devices that they refer to.

use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice,
};

use crate::pool::slice_devices;

/// Returns the device results of a claim's allocation; empty if the claim is not allocated.
///
/// ```
/// use dra_device::allocated_devices;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// use serde_json::{from_value, json};
/// let device = json!({"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"});
/// let claim: ResourceClaim = from_value(json!({"status": {"allocation": {"devices": {"results": [device]}}}}))?;
/// assert_eq!(allocated_devices(&claim)[0].device, "gpu-0");
/// assert!(allocated_devices(&ResourceClaim::default()).is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn allocated_devices(claim: &ResourceClaim) -> &[DeviceRequestAllocationResult] {
    claim.status.as_ref().and_then(|status| status.allocation.as_ref()).map(of_allocation).unwrap_or_default()
}

/// Returns the device results of an allocation.
#[must_use]
pub fn of_allocation(allocation: &AllocationResult) -> &[DeviceRequestAllocationResult] {
    allocation.devices.as_ref().and_then(|devices| devices.results.as_deref()).unwrap_or_default()
}

/// Returns the published device that a device result refers to, with its slice. Of several slices with the device, the
/// one of the latest generation counts; within a generation, the last one.
pub(crate) fn published<'s>(
    result: &DeviceRequestAllocationResult,
    slices: &'s [ResourceSlice],
) -> Option<(&'s ResourceSlice, &'s Device)> {
    let pool = slices.iter().filter(|slice| slice.spec.driver == result.driver && slice.spec.pool.name == result.pool);
    let named = pool.filter_map(|slice| {
        let device = slice_devices(slice).iter().find(|device| device.name == result.device)?;
        Some((slice, device))
    });
    named.max_by_key(|(slice, _)| slice.spec.pool.generation)
}
