//! Phase of one gate, and the state that the reconciler keeps for the gate.

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
    /// The condition was True and has changed to another status.
    Regressed,
    /// The timeout has passed, and the failure action applies.
    TimedOut,
}

/// Timeout of a gate at the time of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The timeout has not passed, or does not run.
    Pending,
    /// The node is ready, and the timeout has passed.
    Expired,
}

impl GatePhase {
    /// Returns the phase that follows by the decision table of [`GatePhase`].
    pub(super) const fn next(self, effective: EffectiveStatus, timer: Timer) -> Self {
        match (self, effective) {
            (_, EffectiveStatus::Observed(ConditionStatus::True)) => Self::Established,
            (_, EffectiveStatus::Observed(ConditionStatus::TimeoutExceeded)) => Self::TimedOut,
            (phase, EffectiveStatus::Stabilizing) => phase,
            (Self::Established | Self::Regressed, _) if effective.is_reset() => Self::Waiting,
            (Self::Established, _) => Self::Regressed,
            (Self::Waiting | Self::Regressed, _) if matches!(timer, Timer::Expired) => Self::TimedOut,
            (phase, _) => phase,
        }
    }
}

/// State of one gate that the reconciler keeps between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GateState {
    /// Phase of the gate after the last step.
    pub phase: GatePhase,
    /// Start time of the running timeout; `None` if no timeout runs.
    pub timer_started_at: Option<Timestamp>,
    /// Start time of the first timeout in this boot, from which
    /// [`Policy::max_wait_per_boot`](crate::Policy::max_wait_per_boot) is measured.
    pub(crate) first_timer_started_at: Option<Timestamp>,
    /// True if `TimeoutExceeded` was written after the last timeout, or is not to be written because an agent reported
    /// False.
    pub(crate) timeout_written: bool,
    /// Time since which the condition has been True without interruption; `None` while it is not True.
    pub(crate) true_since: Option<Timestamp>,
    /// Times of the last changes of the condition from True to another status.
    pub(crate) regressions: Vec<Timestamp>,
    /// Condition as it was stored when the node booted. While it is unchanged, it counts as not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before_boot: Option<RecordedCondition>,
    /// True if the node booted while an unsynced cache did not show the gate, so that its condition must still be
    /// reset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reset_is_due: bool,
    /// Condition that a not yet confirmed write of `TimeoutExceeded` replaces. If it is observed again, the write was
    /// lost and is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_write_base: Option<RecordedCondition>,
    /// `TimeoutExceeded` condition that was on the node before the gate was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preexisting_timeout: Option<RecordedCondition>,
}
