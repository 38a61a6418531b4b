//! Scene of a timeline: what one node goes through at one instant.

use readiness::{GateDecision, NodeWrite};

/// Events, writes and verdict of one node at one instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scene {
    /// Seconds since the start of the timeline.
    pub(crate) at: i64,
    /// Name of the node.
    pub(crate) node: String,
    /// Events in words.
    pub(crate) happened: Vec<String>,
    /// Writes of the reconciler.
    pub(crate) writes: Vec<NodeWrite>,
    /// True if the node is open for pods after the writes.
    pub(crate) schedulable: bool,
    /// Decision of each gate, by condition type.
    pub(crate) gates: Vec<(String, GateDecision)>,
    /// Condition of the network, if it has changed.
    pub(crate) network: Option<String>,
    /// Taints of the node after the writes.
    pub(crate) taints: Vec<String>,
    /// Next step of the reconciler, in seconds since the start of the timeline.
    pub(crate) requeue_at: Option<i64>,
}
