//! Result of one step of the reconciler.

use k8s_openapi::jiff::Timestamp;

use super::node_state::NodeState;
use super::node_write::NodeWrite;
use super::verdict::NodeVerdict;

/// Result of one call of [`step`](super::step).
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the writes are to be made, and the state to be kept"]
#[non_exhaustive]
pub struct StepResult<'a> {
    /// Writes to make, in this order: taints to add, conditions, labels to set, taints to remove, labels to remove, events.
    pub writes: Vec<NodeWrite>,
    /// Decision on the node: if it is schedulable, with the decision of each gate.
    pub verdict: NodeVerdict<'a>,
    /// Time at which to call [`step`](crate::step()) again if nothing changes before. Later than `now`.
    pub requeue_at: Option<Timestamp>,
    /// State to pass to the next step.
    pub state: NodeState,
}
