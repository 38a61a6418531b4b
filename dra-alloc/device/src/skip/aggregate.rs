//! Node operations skipped for each driver of a claim (KEP-5945, Kubelet Changes 1).
//!
//! The kubelet calls a driver once per claim. A call is skipped only if every device of the driver in the claim skips
//! it. Drivers and claims do not influence each other.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};

use super::SkipSet;
use crate::internal::of_allocation;

impl SkipSet {
    /// Returns, for each driver with a device in the allocation, the operations that all its devices skip.
    ///
    /// A driver without a device has no entry. Devices with admin access and shares of devices count like any other. Linear
    /// in the number of devices.
    ///
    /// ```
    /// use dra_device::skip::{SkipField, SkipSet};
    /// use k8s_openapi::api::resource::v1::AllocationResult;
    /// use serde_json::json;
    ///
    /// let device = |name, skip| json!({
    ///     "request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": name, "skipNodeOperations": skip,
    /// });
    /// let allocation: AllocationResult =
    ///     SkipField::read(json!({"devices": {"results": [device("gpu-0", json!(["*"])), device("gpu-1", json!(["NodeUnprepareResources"]))]}}))?;
    /// let skips = SkipSet::by_driver(&allocation)["gpu.example.com"];
    /// assert!(skips.unprepare && !skips.prepare);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn by_driver(allocation: &AllocationResult) -> BTreeMap<&str, Self> {
        let mut drivers = BTreeMap::new();
        for result in of_allocation(allocation) {
            let skips = drivers.entry(result.driver.as_str()).or_insert(Self::EVERYTHING);
            *skips = skips.intersection(declared(result));
        }
        drivers
    }

    /// Returns true if an allocated device of the claim skips any node operation. A kubelet with the gate
    /// `Gate::OptionalNodeOperations` off rejects such a claim.
    ///
    /// A non-empty list counts even if all its names are unknown. Absent, `false` and the empty list do not count.
    ///
    /// ```
    /// use dra_device::skip::{SkipField, SkipSet};
    /// use serde_json::json;
    /// let claim = |skip| SkipField::read(json!({"status": {"allocation": {"devices": {"results": [{
    ///     "request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d", "skipNodeOperations": skip,
    /// }]}}}}));
    /// assert!(SkipSet::is_any_in(&claim(json!(true))?));
    /// assert!(!SkipSet::is_any_in(&claim(json!(false))?));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn is_any_in(claim: &ResourceClaim) -> bool {
        let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
        allocation.is_some_and(|allocation| declaring(allocation).next().is_some())
    }
}

/// Returns the device results of an allocation that skip any node operation, even an unknown one.
pub fn declaring(allocation: &AllocationResult) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    of_allocation(allocation)
        .iter()
        .filter(|result| result.skip_node_operations.as_ref().is_some_and(|names| !names.is_empty()))
}

pub(crate) fn declared(result: &DeviceRequestAllocationResult) -> SkipSet {
    SkipSet::from_names(result.skip_node_operations.as_deref().unwrap_or_default())
}
