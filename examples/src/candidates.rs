//! Pods that this scheduler can place, and nodes that they may use apart from devices.
//!
//! It is no kube-scheduler: it knows claims and the rules of `dra_alloc::fit`. A pod that asks for more of its node is refused
//! with an event, and not placed by guess.

use std::collections::BTreeSet;

use dra_alloc::claims::ClaimKey;
use dra_alloc::fit::{Misfit, PodRules, UnjudgedRule};
use dra_alloc::pods::PodExplanation;
use k8s_openapi::api::core::v1::{Node, Pod};

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

/// Returns why only another scheduler can place a pod; `None` if this one can.
#[must_use]
pub fn foreign_wish(pod: &Pod) -> Option<String> {
    let group = pod.spec.as_ref().and_then(|spec| spec.scheduling_group.as_ref());
    let mut wishes: Vec<String> = UnjudgedRule::of_pod(pod).iter().map(ToString::to_string).collect();
    wishes.extend(group.map(|_| "spec.schedulingGroup".to_owned()));
    (!wishes.is_empty()).then(|| wishes.join(", "))
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

/// Returns the reason that a pod may not use a node whatever is in use there, in kube-scheduler's words.
#[must_use]
pub fn refusal(pod: &Pod, node: &Node) -> Option<String> {
    PodRules::new(pod).misfit(node).map(|misfit| misfit.to_string())
}

/// Returns true if a pod may not use a node for its labels, names and taints, be it cordoned or not.
#[must_use]
pub fn is_kept_off(pod: &Pod, node: &Node) -> bool {
    PodRules::new(pod).misfit(node).is_some_and(|misfit| misfit != Misfit::Unschedulable)
}
