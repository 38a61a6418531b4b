//! Counts for metrics.

use serde::{Deserialize, Serialize};

/// Counts of gate events of one node, or of several nodes after [`ReadinessCounters::add`]. All counts saturate.
///
/// ```
/// use readiness::ReadinessCounters;
/// let mut total = ReadinessCounters::default();
/// let mut node = ReadinessCounters::default();
/// node.timeouts = 2;
/// total.add(&node);
/// total.add(&node);
/// assert_eq!(total.timeouts, 4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadinessCounters {
    /// Changes of phase.
    pub transitions: u64,
    /// Regressions: gates that were True and are not any more.
    pub flaps: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Timeouts of gates with the action `BypassWithWarning`.
    pub bypasses: u64,
    /// Gates that became True while their timer ran.
    pub established: u64,
    /// Sum of the seconds from the start of the timer to True, over `established`.
    pub seconds_to_established: u64,
    /// Closings: the node was open for pods and is not any more.
    pub held: u64,
    /// Openings: the node was closed for pods and is open.
    pub released: u64,
}

impl ReadinessCounters {
    /// Adds the counts of another node.
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

/// Adds one.
pub(super) const fn increment(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
