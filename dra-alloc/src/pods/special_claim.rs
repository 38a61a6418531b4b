//! The claim that a scheduler makes for the extended resources of a pod (KEP-5004).
//!
//! In memory it has a name that no claim can have, and a UID made of the pod's. At the API server it gets a name of its own
//! when the pod is bound.

use std::collections::BTreeMap;

use dra_attrs::internal::release::MadeOwners;
use dra_device::internal::controller;
use k8s_openapi::api::resource::v1::{DeviceClaim, ResourceClaim, ResourceClaimSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::extended_requests::ExtendedRequests;
use super::identity::PodIdentity;
use super::owner::block_owner_deletion;

/// Name of the claim before it is created.
const NAME_IN_MEMORY: &str = "<extended-resources>";

/// Returns the claim as it is before a node is chosen: without requests.
pub(super) fn template(pod: &PodIdentity, owners: MadeOwners) -> ResourceClaim {
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        controller: Some(true),
        block_owner_deletion: block_owner_deletion(owners),
    };
    let metadata = ObjectMeta {
        namespace: Some(pod.namespace.clone()),
        name: Some(NAME_IN_MEMORY.to_owned()),
        uid: Some(format!("{} extended resources", pod.uid)),
        generate_name: Some(format!("{}-extended-resources-", pod.name)),
        annotations: Some(BTreeMap::from([(ExtendedRequests::CLAIM_ANNOTATION.to_owned(), "true".to_owned())])),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, spec: Some(ResourceClaimSpec::default()), status: None }
}

/// Returns the claim with the requests for one node.
pub(super) fn with_requests(template: &ResourceClaim, requests: &ExtendedRequests) -> ResourceClaim {
    let devices = DeviceClaim { requests: Some(requests.requests.clone()), ..DeviceClaim::default() };
    ResourceClaim { spec: Some(ResourceClaimSpec { devices: Some(devices) }), ..template.clone() }
}

/// Returns the claim as it is created: the API server gives it name and UID.
pub(super) fn to_create(template: &ResourceClaim, requests: &ExtendedRequests) -> ResourceClaim {
    let mut claim = with_requests(template, requests);
    (claim.metadata.name, claim.metadata.uid) = (None, None);
    claim
}

/// Returns true if the claim is not created yet.
pub(super) fn is_in_memory(claim: &ResourceClaim) -> bool {
    claim.metadata.name.as_deref() == Some(NAME_IN_MEMORY)
}

/// Returns the UID of the pod for whose extended resources a scheduler has made a claim.
pub(super) fn pod_of(claim: &ResourceClaim) -> Option<&str> {
    let annotations = claim.metadata.annotations.as_ref()?;
    annotations.get(ExtendedRequests::CLAIM_ANNOTATION).filter(|value| *value == "true")?;
    controller(&claim.metadata).map(|owner| owner.uid.as_str())
}

/// Returns true if a scheduler has made a claim for the extended resources of a pod.
pub(super) fn is_made_for(pod: &PodIdentity, claim: &ResourceClaim) -> bool {
    let is_named = controller(&claim.metadata).is_some_and(|owner| owner.name == pod.name);
    is_named && pod_of(claim) == Some(&pod.uid)
}
