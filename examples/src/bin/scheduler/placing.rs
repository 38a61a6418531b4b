//! Choice of a node for one pod with claims.

use dra_alloc::pods::{PodCycle, PodExplanation, StatusCode, normalize_scores};
use dra_alloc::{AllocatedState, Allocator, Budget};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;

/// Reason that a pod has no node.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NoNode {
    /// The search could not be carried out.
    #[error("{0}")]
    Failed(String),
    /// No node can serve the pod's claims.
    #[error("{0}")]
    Nowhere(Box<PodExplanation>),
}

/// Tries nodes in their order and returns the one with the highest score, the first of several.
///
/// # Errors
/// No node can run the pod. `explanation` has reasons of nodes that are not tried.
pub(crate) fn best_node<'n>(
    cycle: &mut PodCycle,
    nodes: impl IntoIterator<Item = &'n Node>,
    allocator: &Allocator<'_>,
    state: &AllocatedState,
    mut explanation: PodExplanation,
    now: Timestamp,
) -> Result<String, NoNode> {
    let mut fitting = Vec::new();
    for node in nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let verdict = cycle.filter(node, allocator, state, now, Budget::default());
        match verdict.refusal() {
            None => fitting.push(name.clone()),
            Some(refusal) if refusal.code() == StatusCode::Error => return Err(NoNode::Failed(refusal.to_string())),
            Some(_) => explanation.add_verdict(&name, &verdict),
        }
        cycle.record(&name, verdict);
    }
    let scores = fitting.iter().map(|node| cycle.score(node)).collect::<Result<Vec<_>, _>>();
    let mut scores = scores.map_err(|error| NoNode::Failed(error.to_string()))?;
    normalize_scores(&mut scores);
    let best = fitting.into_iter().zip(scores).rev().max_by_key(|(_, score)| *score);
    best.map(|(node, _)| node).ok_or_else(|| NoNode::Nowhere(Box::new(explanation)))
}
