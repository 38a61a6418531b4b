//! What the drivers of a claim do without (KEP-5945, Kubelet Changes 1).
//!
//! The kubelet calls a driver once per claim, so that a call falls away only if every device of the driver in the claim
//! does without it. Drivers and claims do not influence each other.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};

use super::SkipSet;
use crate::allocated::of_allocation;

/// The operations that are skipped for each driver with a device in the allocation: those that all its devices skip.
///
/// A driver without a device has no entry. Devices with admin access and shares of devices count like any other. Linear in
/// the number of devices.
///
/// ```
/// use dra_alloc::skip::aggregate::by_driver;
/// use dra_alloc::skip::wire::read;
/// use k8s_openapi::api::resource::v1::AllocationResult;
/// use serde_json::json;
///
/// let device = |name, skip| json!({
///     "request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": name, "skipNodeOperations": skip,
/// });
/// let allocation: AllocationResult =
///     read(json!({"devices": {"results": [device("gpu-0", json!(["*"])), device("gpu-1", json!(["NodeUnprepareResources"]))]}}))?;
/// let skips = by_driver(&allocation)["gpu.example.com"];
/// assert!(skips.unprepare && !skips.prepare);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn by_driver(allocation: &AllocationResult) -> BTreeMap<&str, SkipSet> {
    let mut drivers = BTreeMap::new();
    for result in of_allocation(allocation) {
        let skips = drivers.entry(result.driver.as_str()).or_insert(SkipSet::EVERYTHING);
        *skips = skips.intersection(declared(result));
    }
    drivers
}

/// Whether a device of the claim's allocation declares to do without something: what an audit of claims looks for, and
/// what a kubelet with the gate off refuses.
///
/// A list counts when it has names, be they known or not; absent, `false` and the empty list do not.
///
/// ```
/// use dra_alloc::skip::aggregate::is_used_by;
/// use dra_alloc::skip::wire::read;
/// use serde_json::json;
/// let claim = |skip| read(json!({"status": {"allocation": {"devices": {"results": [{
///     "request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d", "skipNodeOperations": skip,
/// }]}}}}));
/// assert!(is_used_by(&claim(json!(true))?));
/// assert!(!is_used_by(&claim(json!(false))?));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn is_used_by(claim: &ResourceClaim) -> bool {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    allocation.is_some_and(|allocation| declaring(allocation).next().is_some())
}

/// The devices that declare to do without something.
pub(crate) fn declaring(allocation: &AllocationResult) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    of_allocation(allocation)
        .iter()
        .filter(|result| result.skip_node_operations.as_ref().is_some_and(|names| !names.is_empty()))
}

pub(crate) fn declared(result: &DeviceRequestAllocationResult) -> SkipSet {
    SkipSet::listed(result.skip_node_operations.as_deref().unwrap_or_default())
}
