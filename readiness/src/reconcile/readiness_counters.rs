//! Counters of gate events, for metrics.

use serde::{Deserialize, Serialize};

/// Counts of gate events on one node, or their sums over several nodes ([`ReadinessCounters::add`]). All counts
/// saturate.
///
/// ```
/// use readiness::ReadinessCounters;
/// let node: ReadinessCounters = serde_json::from_str(r#"{"timeouts": 2}"#)?;
/// let mut total = ReadinessCounters::default();
/// total.add(&node);
/// total.add(&node);
/// assert_eq!(total.metrics()[2], ("node_readiness_gate_timeouts_total", 4));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReadinessCounters {
    /// Number of times that a gate changed its phase.
    pub(crate) transitions: u64,
    /// Number of times that a gate's condition changed from True to another status.
    pub(crate) flaps: u64,
    /// Number of times that a gate timed out.
    pub(crate) timeouts: u64,
    /// Number of times that a gate with the action `BypassWithWarning` timed out.
    pub(crate) bypasses: u64,
    /// Number of times that a gate's condition became True after its timeout had started.
    pub(crate) established: u64,
    /// Sum of the times from the start of the timeout to True, in seconds. [`Self::established`] has the number of
    /// addends.
    pub(crate) seconds_to_established: u64,
    /// Number of times that the node changed from schedulable to blocked.
    pub(crate) held: u64,
    /// Number of times that the node changed from blocked to schedulable.
    pub(crate) released: u64,
}

impl ReadinessCounters {
    /// Returns the names of the metrics with their values, all of them counters. The KEP asks for metrics without naming
    /// them.
    #[must_use]
    pub const fn metrics(&self) -> [(&'static str, u64); 8] {
        [
            ("node_readiness_gate_transitions_total", self.transitions),
            ("node_readiness_gate_flaps_total", self.flaps),
            ("node_readiness_gate_timeouts_total", self.timeouts),
            ("node_readiness_gate_bypasses_total", self.bypasses),
            ("node_readiness_gate_time_to_true_seconds_count", self.established),
            ("node_readiness_gate_time_to_true_seconds_sum", self.seconds_to_established),
            ("node_readiness_blocked_total", self.held),
            ("node_readiness_released_total", self.released),
        ]
    }

    /// Adds the counts of another node to this sum.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.transitions, other.transitions),
            (&mut self.flaps, other.flaps),
            (&mut self.timeouts, other.timeouts),
            (&mut self.bypasses, other.bypasses),
            (&mut self.established, other.established),
            (&mut self.seconds_to_established, other.seconds_to_established),
            (&mut self.held, other.held),
            (&mut self.released, other.released),
        ];
        for (count, more) in pairs {
            *count = count.saturating_add(more);
        }
    }
}

/// Adds one to `counter`, saturating.
pub(super) const fn increment(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
