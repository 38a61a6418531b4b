//! Look-up of claims by name, and of their parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequest, ResourceClaim};

/// Source of claims by namespace and name: a [`super::ClaimTracker`], or any other cache.
pub trait ClaimLookup {
    /// Returns the claim; `None` if the cache has none of that name.
    fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>>;
}

impl ClaimLookup for BTreeMap<ClaimKey, Arc<ResourceClaim>> {
    fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>> {
        self.get(&ClaimKey::new(namespace, name))
    }
}

/// Returns the UID of a claim; empty if it has none.
pub(super) fn uid_of(claim: &ResourceClaim) -> &str {
    claim.metadata.uid.as_deref().unwrap_or_default()
}

/// Returns the requests of a claim.
pub(super) fn requests_of(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequest> {
    let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    devices.into_iter().flat_map(|devices| devices.requests.iter().flatten())
}

/// Returns the allocation in a claim's status.
pub(super) fn allocation_of(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}
