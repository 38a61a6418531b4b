//! Preview of the effect that changed gates would have on many nodes.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;

use crate::condition::ConditionStatus;
use crate::filter::{FilterOptions, filter};
use crate::gate::NodeReadinessGate;
use crate::node::GatedNodeView;
use crate::pod::GatedPodView;
use crate::policy::Policy;
use crate::reconcile::{EvaluatorRole, NodeChange, NodeState, step};

/// Proposed change of the gates of one node.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the input of one function, made in place")]
pub struct GateProposal<'a> {
    /// Node whose gates would change.
    pub node: &'a Node,
    /// Gates that the node has now.
    pub current: &'a [NodeReadinessGate],
    /// Gates that the node would have after the change.
    pub proposed: &'a [NodeReadinessGate],
    /// State of the reconciler for the node.
    pub state: &'a NodeState,
}

/// Effect of a change of gates on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodePreview {
    /// Name of the node.
    pub name: String,
    /// True if a pod without requirements may be scheduled to the node with its present gates.
    pub open_before: bool,
    /// True if a pod without requirements may be scheduled to the node with the proposed gates.
    pub open_after: bool,
    /// Number of taints that the change of gates adds immediately, without waiting for a timeout.
    pub taints_to_add: usize,
    /// Number of taints that the change of gates removes immediately.
    pub taints_to_remove: usize,
    /// Condition types of proposed gates that no agent has reported on the node yet.
    pub unreported: Vec<String>,
    /// Reason that the proposed gates would block pods. Empty if they would not.
    pub reason: String,
}

/// Effect of a change of gates on all affected nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatesPreview {
    /// Number of nodes whose list of gates changes.
    pub affected: usize,
    /// Number of nodes that take pods now and would be blocked by the proposed gates.
    pub closing: usize,
    /// Number of nodes that are blocked now and would take pods with the proposed gates.
    pub opening: usize,
    /// Number of taints that the change of gates adds immediately, without waiting for a timeout.
    pub taints_to_add: usize,
    /// Number of taints that the change of gates removes immediately.
    pub taints_to_remove: usize,
    /// Number of affected nodes that lack the condition of a proposed gate: the agent may not be installed there.
    pub risky: usize,
    /// Preview of each affected node, in the order of the proposals.
    pub nodes: Vec<NodePreview>,
}

impl GatesPreview {
    /// Evaluates a proposed change of gates on many nodes without writing anything. Later timeouts are not simulated.
    ///
    /// ```
    /// use readiness::{GateProposal, GatesPreview, NodeReadinessGate, NodeState, Policy};
    /// let node = serde_json::from_str(r#"{"metadata": {"name": "node-1"},
    ///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
    /// let proposed = [NodeReadinessGate::new("a.example/Ready", 180).with_bypass_warning()];
    /// let proposal = GateProposal { node: &node, current: &[], proposed: &proposed, state: &NodeState::default() };
    /// let preview = GatesPreview::new(&Policy::kep(), [proposal], "2026-01-01T00:00:00Z".parse().unwrap());
    /// assert_eq!((preview.affected, preview.closing, preview.risky), (1, 1, 1));
    /// assert!(preview.nodes[0].reason.contains("does not exist"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn new<'a>(policy: &Policy, proposals: impl IntoIterator<Item = GateProposal<'a>>, now: Timestamp) -> Self {
        let mut all = Self::default();
        for proposal in proposals.into_iter().filter(|proposal| proposal.current != proposal.proposed) {
            let node = preview_node(policy, &proposal, now);
            all.affected = all.affected.saturating_add(1);
            all.closing = all.closing.saturating_add(usize::from(node.open_before && !node.open_after));
            all.opening = all.opening.saturating_add(usize::from(!node.open_before && node.open_after));
            all.taints_to_add = all.taints_to_add.saturating_add(node.taints_to_add);
            all.taints_to_remove = all.taints_to_remove.saturating_add(node.taints_to_remove);
            all.risky = all.risky.saturating_add(usize::from(!node.unreported.is_empty()));
            all.nodes.push(node);
        }
        all
    }
}

fn preview_node(policy: &Policy, proposal: &GateProposal<'_>, now: Timestamp) -> NodePreview {
    let (options, pod) = (FilterOptions::from(policy), Pod::default());
    let before = GatedNodeView::new(proposal.node, proposal.current);
    let after = GatedNodeView::new(proposal.node, proposal.proposed);
    let verdict = filter(options, &after, GatedPodView::new(&pod));
    let step = step(policy, EvaluatorRole::Combined, &after, now, proposal.state.clone());
    let count =
        |is_wanted: fn(&NodeChange) -> bool| step.writes.iter().filter(|write| is_wanted(&write.change)).count();
    let is_unreported = |gate: &&NodeReadinessGate| {
        ConditionStatus::from_condition(after.condition(&gate.condition_type)) == ConditionStatus::Missing
    };
    let unreported = after.distinct_gates().filter(is_unreported).map(|gate| gate.condition_type.clone());
    NodePreview {
        name: proposal.node.metadata.name.clone().unwrap_or_default(),
        open_before: filter(options, &before, GatedPodView::new(&pod)).is_allowed(),
        open_after: verdict.is_allowed(),
        taints_to_add: count(|change| matches!(change, NodeChange::AddTaint { .. })),
        taints_to_remove: count(|change| matches!(change, NodeChange::RemoveTaint { .. })),
        unreported: unreported.collect(),
        reason: if verdict.is_allowed() { String::new() } else { verdict.to_string() },
    }
}
