//! Owners of the claims that were created from a template.
//!
//! Source: `resourceclaim.IsForPod`, `IsForPodGroup`.

use dra_attrs::internal::release::MadeOwners;
use dra_device::claims::ClaimKey;
use dra_device::internal::{PodFields, controller, is_for_pod, missing_owners};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::options::PodOptions;

/// Reason why a claim from a template is not the pod's or the group's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The claim is in another namespace.
    #[error("ResourceClaim {claim} is not in the same namespace as {owner}")]
    OtherNamespace {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Kind, namespace and name of the pod or group.
        owner: String,
    },
    /// The claim's controller is another object, or it has none.
    #[error("ResourceClaim {claim} was not created for {owner} ({missing})")]
    NotOwner {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Kind, namespace and name of the pod or group.
        owner: String,
        /// Objects that would have to own the claim, as text.
        missing: String,
    },
}

/// Checks that a claim was created for a pod: its controller is the pod (by UID), or, with
/// [`Gate::WorkloadResourceClaims`](crate::Gate::WorkloadResourceClaims), the pod's group (by kind and name).
///
/// # Errors
/// The claim is in another namespace or was not created for the pod.
pub fn check_owner(pod: &Pod, claim: &ResourceClaim, options: PodOptions) -> Result<(), OwnerError> {
    let owner = || format!("Pod {}", pod.full_name());
    let group = options.group_of(pod);
    if is_for_pod(pod, claim, group) {
        return Ok(());
    }
    let key = ClaimKey::from_metadata(&claim.metadata);
    if claim.metadata.namespace != pod.metadata.namespace {
        return Err(OwnerError::OtherNamespace { claim: key, owner: owner() });
    }
    Err(OwnerError::NotOwner { claim: key, owner: owner(), missing: missing_owners(group) })
}

/// Checks that a claim was created for a pod group: its controller has the group's UID.
///
/// # Errors
/// The claim is in another namespace or was not created for the group.
pub fn check_group_owner(group: &PodGroup, claim: &ResourceClaim) -> Result<(), OwnerError> {
    let owner = || {
        let namespace = group.metadata.namespace.as_deref().unwrap_or_default();
        format!("PodGroup {namespace}/{}", group.metadata.name.as_deref().unwrap_or_default())
    };
    let key = ClaimKey::from_metadata(&claim.metadata);
    if claim.metadata.namespace != group.metadata.namespace {
        return Err(OwnerError::OtherNamespace { claim: key, owner: owner() });
    }
    let uid = group.metadata.uid.as_deref().unwrap_or_default();
    if controller(&claim.metadata).is_some_and(|controller| controller.uid == uid) {
        return Ok(());
    }
    Err(OwnerError::NotOwner { claim: key, owner: owner(), missing: "PodGroup is not owner".to_owned() })
}

/// Returns the field of an owner reference to the owner of a claim that is made.
pub(crate) const fn block_owner_deletion(owners: MadeOwners) -> Option<bool> {
    match owners {
        MadeOwners::Blocking => Some(true),
        MadeOwners::Controller => None,
    }
}
