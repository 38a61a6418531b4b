//! A change of gates over many nodes, before it is made.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;

use crate::condition::Observation;
use crate::evaluate::{FilterOptions, filter};
use crate::gate::NodeReadinessGate;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::policy::Policy;
use crate::reconcile::output::Change;
use crate::reconcile::{Role, State, step};

/// What a change of gates would do to one node.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the input of one function, made in place")]
pub struct Proposal<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its gates now.
    pub current: &'a [NodeReadinessGate],
    /// Its gates then.
    pub proposed: &'a [NodeReadinessGate],
    /// What the reconciler remembers of it.
    pub state: &'a State,
}

/// What would become of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodePreview {
    /// Its name.
    pub name: String,
    /// Whether an ordinary pod could go there before.
    pub open_before: bool,
    /// Whether it could then.
    pub open_after: bool,
    /// Taints to add at once.
    pub taints_to_add: usize,
    /// Taints to remove at once.
    pub taints_to_remove: usize,
    /// Gates on which nothing is reported yet.
    pub unreported: Vec<String>,
    /// Why it is blocked then; empty if it is open.
    pub reason: String,
}

/// What would become of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// Nodes whose list of gates changes.
    pub affected: usize,
    /// Nodes that are open and would be blocked.
    pub closing: usize,
    /// Nodes that are blocked and would be open.
    pub opening: usize,
    /// Taints to add at once.
    pub taints_to_add: usize,
    /// Taints to remove at once.
    pub taints_to_remove: usize,
    /// Affected nodes with a gate on which nothing is reported yet: their agents may not be there.
    pub risky: usize,
    /// The affected nodes, in the given order.
    pub nodes: Vec<NodePreview>,
}

/// Plays a change of gates without writing anything. Timers are not awaited: what a timeout does later is not counted.
///
/// ```
/// use readiness::gate::NodeReadinessGate;
/// use readiness::policy::Policy;
/// use readiness::preview::{Proposal, preview};
/// use readiness::reconcile::State;
/// let node = serde_json::from_str(r#"{"metadata": {"name": "node-1"},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let proposed = [NodeReadinessGate::new("a.example/Ready", 180).bypassing()];
/// let proposal = Proposal { node: &node, current: &[], proposed: &proposed, state: &State::default() };
/// let preview = preview(&Policy::kep(), [proposal], "2026-01-01T00:00:00Z".parse().unwrap());
/// assert_eq!((preview.affected, preview.closing, preview.risky), (1, 1, 1));
/// assert!(preview.nodes[0].reason.contains("does not exist"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn preview<'a>(policy: &Policy, proposals: impl IntoIterator<Item = Proposal<'a>>, now: Timestamp) -> Preview {
    let mut all = Preview::default();
    for proposal in proposals.into_iter().filter(|proposal| proposal.current != proposal.proposed) {
        let node = of_node(policy, &proposal, now);
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

fn of_node(policy: &Policy, proposal: &Proposal<'_>, now: Timestamp) -> NodePreview {
    let (options, pod) = (FilterOptions::of(policy), Pod::default());
    let before = NodeView::new(proposal.node, proposal.current);
    let after = NodeView::new(proposal.node, proposal.proposed);
    let verdict = filter(options, &after, PodView::new(&pod));
    let step = step(policy, Role::Combined, &after, now, proposal.state.clone());
    let count = |is_wanted: fn(&Change) -> bool| step.outputs.iter().filter(|output| is_wanted(&output.change)).count();
    let is_unreported =
        |gate: &&NodeReadinessGate| Observation::of(after.condition(&gate.condition_type)) == Observation::Missing;
    let unreported = after.distinct_gates().filter(is_unreported).map(|gate| gate.condition_type.clone());
    NodePreview {
        name: proposal.node.metadata.name.clone().unwrap_or_default(),
        open_before: filter(options, &before, PodView::new(&pod)).is_allowed(),
        open_after: verdict.is_allowed(),
        taints_to_add: count(|change| matches!(change, Change::AddTaint { .. })),
        taints_to_remove: count(|change| matches!(change, Change::RemoveTaint { .. })),
        unreported: unreported.collect(),
        reason: if verdict.is_allowed() { String::new() } else { verdict.to_string() },
    }
}
