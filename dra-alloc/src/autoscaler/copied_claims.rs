//! Claims of pods that a template has, such as those of daemon sets.

use std::collections::BTreeSet;

use dra_device::claims::ClaimKey;
use dra_device::internal::{PodFields, is_for_pod};
use k8s_openapi::api::core::v1::{NodeSelector, Pod, PodResourceClaimStatus};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::node_copy::NodeCopy;
use crate::cluster::scope::selector_of_node;
use crate::pods::Consumer;

/// Reason why an allocated claim can't be copied: the copy would hold the same devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimCopyError {
    /// A result is of a pool that the node does not have.
    #[error(
        "claim {claim} has an allocation {request}, from a pool that isn't node-local on {node} - can't be sanitized"
    )]
    OtherPool {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Name of the request.
        request: String,
        /// Name of the node.
        node: String,
    },
    /// The node selector of the allocation is not the one of this node alone.
    #[error("claim {claim} is allocated, but not node-local on {node} - can't be sanitized")]
    OtherNodes {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Name of the node.
        node: String,
    },
}

impl NodeCopy<'_> {
    /// Copies the claims of a pod for the same pod on the new node.
    ///
    /// Claims that the pod does not own are shared and given back as they are. Copies have the suffix, the new pod as owner,
    /// no UID and, where they are allocated, the devices of the new node, reserved for the new pod alone. Results with admin
    /// access hold nothing and keep their devices.
    ///
    /// # Errors
    /// A claim of the pod is allocated elsewhere than on the node alone. Clear the allocation, and allocate it anew.
    ///
    /// # Complexity
    /// n log n in results.
    pub fn claims<'c>(
        &self,
        old_pod: &Pod,
        new_pod: &Pod,
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
        old_pools: &BTreeSet<String>,
    ) -> Result<Vec<ResourceClaim>, ClaimCopyError> {
        let copied = claims.into_iter().map(|claim| {
            let is_owned = is_for_pod(old_pod, claim, None);
            if is_owned { self.claim(new_pod, claim, old_pools) } else { Ok(claim.clone()) }
        });
        copied.collect()
    }

    /// Returns the recorded names of a pod's claims, with the suffix where `is_copied` accepts the name of the claim.
    /// Cluster Autoscaler gives it to all names, also to those of claims that the pod's group owns; those of the claims that
    /// [`NodeCopy::claims`] copies are right.
    ///
    /// ```
    /// use dra_alloc::autoscaler::NodeCopy;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use serde_json::{from_value, json};
    /// let pod: Pod = from_value(json!({"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "p-a"}]}}))?;
    /// let names = NodeCopy::new("n1", "t-1", "1").claim_names(&pod, |_| true);
    /// assert_eq!(names[0].resource_claim_name.as_deref(), Some("p-a-1"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn claim_names(&self, pod: &Pod, is_copied: impl Fn(&str) -> bool) -> Vec<PodResourceClaimStatus> {
        let recorded = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
        let renamed = recorded.map(|PodResourceClaimStatus { name, resource_claim_name }| {
            let claim = resource_claim_name.as_deref();
            let claim = claim.map(|claim| if is_copied(claim) { self.suffixed(claim) } else { claim.to_owned() });
            PodResourceClaimStatus { name: name.clone(), resource_claim_name: claim }
        });
        renamed.collect()
    }

    fn claim(
        &self,
        new_pod: &Pod,
        claim: &ResourceClaim,
        old_pools: &BTreeSet<String>,
    ) -> Result<ResourceClaim, ClaimCopyError> {
        let mut copy = claim.clone();
        copy.metadata.uid = None;
        copy.metadata.name = Some(self.suffixed(claim.metadata.name.as_deref().unwrap_or_default()));
        copy.metadata.owner_references = Some(vec![owner(new_pod)]);
        let Some(status) = &mut copy.status else { return Ok(copy) };
        status.reserved_for = None;
        if let Some(allocation) = &mut status.allocation {
            self.move_allocation(&ClaimKey::from_metadata(&claim.metadata), allocation, old_pools)?;
            let (name, uid) = (new_pod.metadata.name.clone().unwrap_or_default(), new_pod.uid().to_owned());
            status.reserved_for = Some(vec![Consumer::Pod { name, uid }.reference()]);
        }
        Ok(copy)
    }

    fn move_allocation(
        &self,
        claim: &ClaimKey,
        allocation: &mut AllocationResult,
        old_pools: &BTreeSet<String>,
    ) -> Result<(), ClaimCopyError> {
        let results = allocation.devices.iter_mut().flat_map(|devices| devices.results.iter_mut().flatten());
        let mut holds = false;
        for result in results.filter(|result| result.admin_access != Some(true)) {
            holds = true;
            if !old_pools.contains(&result.pool) {
                let (claim, request, node) = (claim.clone(), result.request.clone(), self.old_name.to_owned());
                return Err(ClaimCopyError::OtherPool { claim, request, node });
            }
            result.pool = self.pool(&result.pool);
        }
        let only_node = allocation.node_selector.as_ref().and_then(only_node).filter(|node| !node.is_empty());
        if holds && only_node != Some(self.old_name) {
            return Err(ClaimCopyError::OtherNodes { claim: claim.clone(), node: self.old_name.to_owned() });
        }
        allocation.node_selector = Some(selector_of_node(self.new_name));
        Ok(())
    }
}

fn owner(pod: &Pod) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Returns the node that a selector names and to which it is limited.
pub(crate) fn only_node(selector: &NodeSelector) -> Option<&str> {
    let [term] = selector.node_selector_terms.as_slice() else { return None };
    let [field] = term.match_fields.as_deref()? else { return None };
    let has_expressions = term.match_expressions.as_ref().is_some_and(|expressions| !expressions.is_empty());
    match field.values.as_deref() {
        Some([name]) if field.key == "metadata.name" && field.operator == "In" && !has_expressions => Some(name),
        _ => None,
    }
}
