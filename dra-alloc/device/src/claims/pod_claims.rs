//! Claims of a pod: their names, and the checks that the pod may use them.
//!
//! Source of the rules: `dynamic-resource-allocation/resourceclaim`, functions `Name`, `IsForPod`, `IsReservedForPod`.

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::key::ClaimKey;
use super::pod_fields::PodFields;

/// Reason why the name of a pod's claim can't be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodClaimError {
    /// The claim that a template of the pod stands for has not been created yet.
    #[error("pod {pod:?}: ResourceClaim not created yet")]
    NotCreated {
        /// Namespace and name of the pod.
        pod: String,
    },
    /// An entry of `spec.resourceClaims` names neither a claim nor a template.
    #[error("pod {pod:?}, spec.resourceClaim {entry:?}: none of the supported fields are set")]
    NoSource {
        /// Namespace and name of the pod.
        pod: String,
        /// Name of the entry in `spec.resourceClaims`.
        entry: String,
    },
}

/// A claim that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a claim of a pod has these two parts")]
pub struct PodClaim {
    /// Namespace and name of the claim.
    pub claim: ClaimKey,
    /// Origin of the claim, which decides if the pod must own it.
    pub origin: ClaimOrigin,
}

/// Origin of a claim of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a claim has been there before, or was made for the pod")]
pub enum ClaimOrigin {
    /// The pod names the claim, or the claim was created for the pod's extended resources.
    Named,
    /// The claim was created from a template, and must be owned by the pod.
    Template,
}

/// Returns the claim for a pod's extended resources, if one is recorded.
#[must_use]
pub fn extended_claim(pod: &Pod) -> Option<PodClaim> {
    let status = pod.status.as_ref()?.extended_resource_claim_status.as_ref()?;
    let claim = ClaimKey::new(pod.namespace(), &status.resource_claim_name);
    Some(PodClaim { claim, origin: ClaimOrigin::Named })
}

impl PodClaim {
    /// Returns the claim of one entry of `spec.resourceClaims`; `None` if its template needed no claim.
    ///
    /// # Errors
    /// The entry names nothing, or its claim is not made yet.
    pub fn of_entry(pod: &Pod, entry: &PodResourceClaim) -> Result<Option<Self>, PodClaimError> {
        let found = |name: &str, origin| Self { claim: ClaimKey::new(pod.namespace(), name), origin };
        if let Some(name) = &entry.resource_claim_name {
            return Ok(Some(found(name, ClaimOrigin::Named)));
        }
        if entry.resource_claim_template_name.is_none() {
            return Err(PodClaimError::NoSource { pod: pod.full_name(), entry: entry.name.clone() });
        }
        let statuses =
            pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_deref()).unwrap_or_default();
        match statuses.iter().find(|status| status.name == entry.name) {
            Some(status) => Ok(status.resource_claim_name.as_deref().map(|name| found(name, ClaimOrigin::Template))),
            None => Err(PodClaimError::NotCreated { pod: pod.full_name() }),
        }
    }
}

/// Returns true if the pod owns a claim, or if its pod group does. `group` is the group's name if groups count; see
/// `Gate::WorkloadResourceClaims`.
#[must_use]
pub fn is_for_pod(pod: &Pod, claim: &ResourceClaim, group: Option<&str>) -> bool {
    claim.metadata.namespace == pod.metadata.namespace
        && controller(&claim.metadata).is_some_and(|owner| {
            let by_group = owner.kind == "PodGroup"
                && owner.api_version.starts_with("scheduling.k8s.io/")
                && group == Some(&owner.name);
            owner.uid == pod.uid() || by_group
        })
}

/// Returns the owner reference of an object's controller.
#[must_use]
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Returns the text about a claim that neither the pod nor its group owns, without the names of claim and pod.
#[must_use]
pub fn missing_owners(group: Option<&str>) -> String {
    match group {
        None => "Pod is not owner".to_owned(),
        Some(group) => format!("neither Pod nor PodGroup {group} is the owner"),
    }
}

/// Returns true if a claim is reserved for the pod with a UID, or for the pod group named `group`.
#[must_use]
pub fn is_reserved_for(pod_uid: &str, claim: &ResourceClaim, group: Option<&str>) -> bool {
    let consumers = claim.status.as_ref().and_then(|status| status.reserved_for.as_deref()).unwrap_or_default();
    let is_group = |consumer: &ResourceClaimConsumerReference| {
        consumer.api_group.as_deref() == Some("scheduling.k8s.io")
            && consumer.resource == "podgroups"
            && group == Some(&consumer.name)
    };
    consumers.iter().any(|consumer| consumer.uid == pod_uid || is_group(consumer))
}
