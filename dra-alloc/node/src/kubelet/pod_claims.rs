//! Claims of a pod, in the kubelet's order.

use dra_attrs::Gate;
use dra_device::claims::{PodClaim, PodClaimError};
use dra_device::internal::extended_claim;
use k8s_openapi::api::core::v1::Pod;

use super::claim_info::ClaimCache;
use dra_attrs::Component;

impl ClaimCache {
    /// Returns the claims of a pod in the order of its spec, then the claim for its extended resources. Omits templates for
    /// which no claim was needed.
    pub fn claims_of_pod(pod: &Pod, kubelet: Component) -> impl Iterator<Item = Result<PodClaim, PodClaimError>> {
        let entries = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default();
        let named = entries.iter().filter_map(|entry| PodClaim::of_entry(pod, entry).transpose());
        let extended = extended_claim(pod).filter(|_| kubelet.has(Gate::ExtendedResource));
        named.chain(extended.map(Ok))
    }
}
