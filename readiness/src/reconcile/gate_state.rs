//! Phase and state of one gate.

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::effective_status::EffectiveStatus;
use super::recorded_condition::RecordedCondition;
use crate::condition::ConditionStatus;

/// Phase of one gate in the reconciler.
///
/// The next phase by the effective status of the condition. "Expired" means that the node is ready and the deadline is
/// reached; a dash means that the phase stays:
///
/// | | True | False, Unknown, Missing | `NodeRestarted` | `TimeoutExceeded` | Stabilizing |
/// |---|---|---|---|---|---|
/// | Waiting | Established | - | - | `TimedOut` | - |
/// | Waiting, expired | Established | `TimedOut` | `TimedOut` | `TimedOut` | - |
/// | Established | - | Regressed | Waiting | `TimedOut` | - |
/// | Regressed | Established | - | Waiting | `TimedOut` | - |
/// | Regressed, expired | Established | `TimedOut` | Waiting | `TimedOut` | - |
/// | `TimedOut` | Established | - | - | - | - |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "the rows of the decision table")]
pub enum GatePhase {
    /// The condition has not been True since the gate was added or the node booted.
    #[default]
    Waiting,
    /// The condition is True.
    Established,
    /// The condition was True and is not any more.
    Regressed,
    /// The timeout has passed, and the failure action is in force.
    TimedOut,
}

impl GatePhase {
    /// Returns the next phase by the decision table. `expired` means that the node is ready and the deadline is reached.
    pub(super) const fn next(self, effective: EffectiveStatus, expired: bool) -> Self {
        match (self, effective) {
            (_, EffectiveStatus::Observed(ConditionStatus::True)) => Self::Established,
            (_, EffectiveStatus::Observed(ConditionStatus::TimeoutExceeded)) => Self::TimedOut,
            (phase, EffectiveStatus::Stabilizing) => phase,
            (Self::Established | Self::Regressed, _) if effective.is_reset() => Self::Waiting,
            (Self::Established, _) => Self::Regressed,
            (Self::Waiting | Self::Regressed, _) if expired => Self::TimedOut,
            (phase, _) => phase,
        }
    }
}

/// State of one gate that the reconciler keeps between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GateState {
    /// Phase after the last step.
    pub phase: GatePhase,
    /// Start of the running timeout.
    pub timer_started_at: Option<Timestamp>,
    /// Start of the first timeout in this boot, from which
    /// [`Policy::max_wait_per_boot`](crate::Policy::max_wait_per_boot) counts.
    pub first_timer_started_at: Option<Timestamp>,
    /// True if the timeout of this episode has been written, or is left unwritten for good.
    pub timeout_written: bool,
    /// Instant since which the condition is True.
    pub true_since: Option<Timestamp>,
    /// Instants of the last regressions.
    pub regressions: Vec<Timestamp>,
    /// Report from before the last boot, which does not count any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before_boot: Option<RecordedCondition>,
    /// True if the node booted while a partial view hid the gate, so that its condition is still to be reset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reset_is_due: bool,
    /// Condition that our unconfirmed timeout write replaces. Kept until another condition is observed, because the write
    /// may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_write_base: Option<RecordedCondition>,
    /// Timeout condition that was stored before the gate was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preexisting_timeout: Option<RecordedCondition>,
}
