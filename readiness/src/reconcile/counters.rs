//! Counts for metrics. A caller adds up those of its nodes.

use serde::{Deserialize, Serialize};

/// What happened to the gates of a node, or of several. All counts saturate.
///
/// ```
/// use readiness::reconcile::Counters;
/// let mut total = Counters::default();
/// let mut node = Counters::default();
/// node.timeouts = 2;
/// total.add(&node);
/// total.add(&node);
/// assert_eq!(total.timeouts, 4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counters {
    /// Changes of phase.
    pub transitions: u64,
    /// Gates that were True and are no more.
    pub flaps: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Timeouts whose action was `BypassWithWarning`.
    pub bypasses: u64,
    /// Gates that became True while their timer ran.
    pub established: u64,
    /// Seconds from the beginning of the timer until then, all together.
    pub seconds_to_established: u64,
    /// How often a node that was open was closed.
    pub held: u64,
    /// How often a node that was closed was opened.
    pub released: u64,
}

impl Counters {
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

/// Counts one more.
pub(crate) const fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
