//! Preview of the effect that changed gates would have on nodes.

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

impl GateProposal<'_> {
    /// Evaluates the proposed change without writing anything; `None` if it changes no gate. Later timeouts are not simulated.
    ///
    /// ```
    /// use readiness::{GateProposal, NodeReadinessGate, NodeState, Policy};
    /// let node = serde_json::from_str(r#"{"metadata": {"name": "node-1"},
    ///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
    /// let proposed = [NodeReadinessGate::new("a.example/Ready", 180).with_bypass_warning()];
    /// let proposal = GateProposal { node: &node, current: &[], proposed: &proposed, state: &NodeState::default() };
    /// let preview = proposal.preview(&Policy::kep(), "2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
    /// assert!(preview.open_before && !preview.open_after);
    /// assert!(preview.reason.contains("does not exist"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn preview(&self, policy: &Policy, now: Timestamp) -> Option<NodePreview> {
        if self.current == self.proposed {
            return None;
        }
        let (options, pod) = (FilterOptions::from(policy), Pod::default());
        let before = GatedNodeView::new(self.node, self.current);
        let after = GatedNodeView::new(self.node, self.proposed);
        let verdict = filter(options, &after, GatedPodView::new(&pod));
        let step = step(policy, EvaluatorRole::Combined, &after, now, self.state.clone());
        let count =
            |is_wanted: fn(&NodeChange) -> bool| step.writes.iter().filter(|write| is_wanted(&write.change)).count();
        let is_unreported = |gate: &&NodeReadinessGate| {
            ConditionStatus::from_condition(after.condition(&gate.condition_type)) == ConditionStatus::Missing
        };
        let unreported = after.distinct_gates().filter(is_unreported).map(|gate| gate.condition_type.clone());
        Some(NodePreview {
            name: self.node.metadata.name.clone().unwrap_or_default(),
            open_before: filter(options, &before, GatedPodView::new(&pod)).is_allowed(),
            open_after: verdict.is_allowed(),
            taints_to_add: count(|change| matches!(change, NodeChange::AddTaint { .. })),
            taints_to_remove: count(|change| matches!(change, NodeChange::RemoveTaint { .. })),
            unreported: unreported.collect(),
            reason: if verdict.is_allowed() { String::new() } else { verdict.to_string() },
        })
    }
}
