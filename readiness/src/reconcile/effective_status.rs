//! Effective status of a condition: the stored status, unless the condition was True too briefly, has an old heartbeat
//! or is from before a reboot.

use std::fmt;

use crate::condition::ConditionStatus;

/// Status of a condition as the reconciler uses it: the stored status, unless the condition was True too briefly, has
/// an old heartbeat or is from before a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the columns of the decision table")]
pub enum EffectiveStatus {
    /// The status as stored in the node.
    Observed(ConditionStatus),
    /// The condition is True, but has not been True for the time [`Policy::hold_down`](crate::Policy::hold_down) yet.
    Stabilizing,
    /// The condition is True, but its last heartbeat is [`Policy::max_heartbeat_age`](crate::Policy::max_heartbeat_age)
    /// old or older.
    Stale,
    /// The condition has not changed since before the last reboot of the node, and so is out of date.
    BeforeBoot,
}

impl EffectiveStatus {
    /// Returns true if no agent has reported the condition since the last reboot.
    pub(super) const fn is_reset(self) -> bool {
        matches!(self, Self::BeforeBoot | Self::Observed(ConditionStatus::NodeRestarted))
    }
}

impl fmt::Display for EffectiveStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observed(status) => status.fmt(formatter),
            Self::Stabilizing => formatter.write_str("Stabilizing"),
            Self::Stale => formatter.write_str("Stale"),
            Self::BeforeBoot => formatter.write_str("NodeRestarted"),
        }
    }
}
