//! Pods that this scheduler can place, and nodes that they may use apart from devices.
//!
//! It is no kube-scheduler: it knows claims, node selectors, taints and cordoned nodes. A pod that asks for more of its node
//! is refused with an event, and not placed by guess.

use std::collections::BTreeSet;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodExplanation;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use workload_pods::{NodeRefusal, node_refusal};

/// Returns true for a pod that waits for a node, of one scheduler or of any.
#[must_use]
pub fn is_pending(pod: &Pod, scheduler: Option<&str>) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let is_ours = scheduler.is_none() || spec.scheduler_name.as_deref() == scheduler;
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    is_ours
        && spec.node_name.as_deref().is_none_or(str::is_empty)
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
        && pod.metadata.deletion_timestamp.is_none()
        && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Returns a wish of a pod that only a whole scheduler can grant.
#[must_use]
pub fn foreign_wish(pod: &Pod) -> Option<&'static str> {
    let spec = pod.spec.as_ref()?;
    let wishes = [
        (spec.affinity.is_some(), "spec.affinity"),
        (
            spec.topology_spread_constraints.as_ref().is_some_and(|list| !list.is_empty()),
            "spec.topologySpreadConstraints",
        ),
        (spec.scheduling_group.is_some(), "spec.schedulingGroup"),
        (requests_resources(spec), "requests of resources"),
    ];
    wishes.into_iter().find(|(is_there, _)| *is_there).map(|(_, wish)| wish)
}

fn requests_resources(spec: &PodSpec) -> bool {
    let mut resources = spec.containers.iter().filter_map(|container| container.resources.as_ref());
    resources.any(|resources| resources.requests.as_ref().is_some_and(|requests| !requests.is_empty()))
}

/// Returns the claims that a pod names, and those that were made for it.
#[must_use]
pub fn claims_of(pod: &Pod) -> BTreeSet<ClaimKey> {
    let named = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let named = named.filter_map(|claim| claim.resource_claim_name.as_deref());
    let made = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    let made = made.filter_map(|claim| claim.resource_claim_name.as_deref());
    let extended = pod.status.iter().flat_map(|status| &status.extended_resource_claim_status);
    let extended = extended.map(|status| status.resource_claim_name.as_str());
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    named.chain(made).chain(extended).map(|name| ClaimKey::new(namespace, name)).collect()
}

/// Divides nodes into those that a pod may use, and reasons of the others.
#[must_use]
pub fn candidates<'n>(pod: &Pod, nodes: impl Iterator<Item = &'n Node>) -> (Vec<&'n Node>, PodExplanation) {
    let (mut usable, mut explanation) = (Vec::new(), PodExplanation::default());
    for node in nodes {
        match refusal(pod, node) {
            None => usable.push(node),
            Some(reason) => explanation.add_other(node.metadata.name.as_deref().unwrap_or_default(), reason),
        }
    }
    (usable, explanation)
}

/// Returns the reason that a pod may not use a node apart from devices, in kube-scheduler's words.
#[must_use]
pub fn refusal(pod: &Pod, node: &Node) -> Option<&'static str> {
    node_refusal(pod, node).map(NodeRefusal::as_str)
}

/// Returns true if a pod may not use a node for its labels, names and taints, be it cordoned or not.
#[must_use]
pub fn is_kept_off(pod: &Pod, node: &Node) -> bool {
    node_refusal(pod, node).is_some_and(|reason| reason != NodeRefusal::Cordoned)
}
