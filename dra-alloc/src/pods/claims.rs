//! Claims of a pod: their names, and the checks before a pod enters the queue.
//!
//! Source: `resourceclaim.Name`, `NameFromPodGroup`; `foreachPodResourceClaim` of the plugin.

use std::sync::Arc;

use dra_attrs::Index;
use dra_device::claims::{ClaimKey, ClaimOrigin, PodClaim};
use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupResourceClaim};

use super::blocked::BlockedError;
use super::lookup::ClaimLookup;
use super::options::PodOptions;
use super::owner::check_owner;

/// Reason why the name of a pod group's claim can't be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupClaimError {
    /// The claim that a template of the group stands for has not been created yet.
    #[error("PodGroup {group}: ResourceClaim not created yet")]
    NotCreated {
        /// Namespace and name of the group.
        group: String,
    },
    /// An entry of `spec.resourceClaims` names neither a claim nor a template.
    #[error("PodGroup {group}, spec.resourceClaim {entry}: none of the supported fields are set")]
    NoSource {
        /// Namespace and name of the group.
        group: String,
        /// Name of the entry in `spec.resourceClaims`.
        entry: String,
    },
}

/// Returns the claim of one entry of a pod group's `spec.resourceClaims`; `None` if its template needed no claim.
///
/// # Errors
/// The claim has not been created yet, or the entry names neither a claim nor a template.
pub fn claim_of_group_entry(
    group: &PodGroup,
    entry: &PodGroupResourceClaim,
) -> Result<Option<PodClaim>, GroupClaimError> {
    let group_key = || ClaimKey::from_metadata(&group.metadata).to_string();
    let namespace = group.metadata.namespace.as_deref().unwrap_or_default();
    let found = |name: &str, origin| PodClaim { claim: ClaimKey::new(namespace, name), origin };
    if let Some(name) = &entry.resource_claim_name {
        return Ok(Some(found(name, ClaimOrigin::Named)));
    }
    if entry.resource_claim_template_name.is_none() {
        return Err(GroupClaimError::NoSource { group: group_key(), entry: entry.name.clone() });
    }
    let mut statuses = group.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    match statuses.find(|status| status.name == entry.name) {
        Some(status) => Ok(status.resource_claim_name.as_deref().map(|name| found(name, ClaimOrigin::Template))),
        None => Err(GroupClaimError::NotCreated { group: group_key() }),
    }
}

/// Returns the entries of a pod's `spec.resourceClaims`.
pub(super) fn entries(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

/// Checks the claims of a pod before it enters the queue (`PreEnqueue`): they exist, are the pod's, and are not being
/// deleted.
///
/// # Errors
/// The first claim with a problem, in the order of the pod's entries.
pub fn pre_enqueue(pod: &Pod, claims: &impl ClaimLookup, options: PodOptions) -> Result<(), BlockedError> {
    claims_of_entries(pod, claims, options).try_for_each(|claim| claim.map(drop))
}

/// Returns the claim of each entry that has one, with the position of the entry.
pub(super) fn claims_of_entries<'c>(
    pod: &'c Pod,
    claims: &'c impl ClaimLookup,
    options: PodOptions,
) -> impl Iterator<Item = Result<(Index<PodResourceClaim>, &'c Arc<ResourceClaim>), BlockedError>> {
    let found = entries(pod).iter().enumerate().map(move |(index, entry)| {
        let claim = claim_in_cache(pod, entry, claims, options)?;
        Ok(claim.map(|claim| (Index::from(index), claim)))
    });
    found.filter_map(Result::transpose)
}

fn claim_in_cache<'c>(
    pod: &Pod,
    entry: &PodResourceClaim,
    claims: &'c impl ClaimLookup,
    options: PodOptions,
) -> Result<Option<&'c Arc<ResourceClaim>>, BlockedError> {
    let Some(PodClaim { claim: key, origin }) = PodClaim::of_entry(pod, entry)? else { return Ok(None) };
    let Some(claim) = claims.claim(&key.namespace, &key.name) else {
        return Err(BlockedError::NotFound { claim: key });
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(BlockedError::BeingDeleted { claim: key.name });
    }
    if origin == ClaimOrigin::Template {
        check_owner(pod, claim, options)?;
    }
    Ok(Some(claim))
}
