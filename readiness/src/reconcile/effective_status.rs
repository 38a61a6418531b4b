//! Status of a condition after the policy's rules: hold-down, age of the heartbeat, reports from before a reboot.

use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::gate_state::{GatePhase, GateState};
use super::recorded_condition::is_recorded;
use super::timeout::after;
use crate::condition::ConditionStatus;
use crate::policy::{Policy, PreexistingTimeout};

/// Status of a condition that the reconciler uses, after the rules of the [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the columns of the decision table")]
pub enum EffectiveStatus {
    /// The status as stored.
    Observed(ConditionStatus),
    /// True, but not yet for [`Policy::hold_down`].
    Stabilizing,
    /// True, but the last heartbeat is [`Policy::max_heartbeat_age`] old or older.
    Stale,
    /// Unchanged since before the last reboot.
    BeforeBoot,
}

impl EffectiveStatus {
    /// Returns true if a reboot has reset the condition.
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

/// Returns the effective status of a condition, and updates the records in `state` on which it depends.
pub(super) fn observe(
    policy: &Policy,
    state: &mut GateState,
    condition: Option<&NodeCondition>,
    now: Timestamp,
) -> EffectiveStatus {
    let status = ConditionStatus::from_condition(condition);
    if condition.is_some_and(|condition| is_recorded(state.before_boot.as_ref(), condition)) {
        return EffectiveStatus::BeforeBoot;
    }
    state.before_boot = None;
    let Some(condition) = condition.filter(|_| status == ConditionStatus::True) else {
        state.true_since = None;
        let is_ignored = status == ConditionStatus::TimeoutExceeded
            && policy.preexisting_timeout == PreexistingTimeout::Ignored
            && state.phase == GatePhase::Waiting
            && condition.is_some_and(|condition| is_recorded(state.preexisting_timeout.as_ref(), condition));
        return EffectiveStatus::Observed(if is_ignored { ConditionStatus::Missing } else { status });
    };
    if stale_from(policy, condition).is_some_and(|instant| now >= instant) {
        state.true_since = None;
        return EffectiveStatus::Stale;
    }
    // The clock may have been set back.
    state.true_since = Some(state.true_since.map_or(now, |since| since.min(now)));
    if is_stable(policy, state, now) {
        EffectiveStatus::Observed(ConditionStatus::True)
    } else {
        EffectiveStatus::Stabilizing
    }
}

/// Returns the end of the hold-down, or `None` if there is none or it has passed.
pub(super) fn stable_from(policy: &Policy, state: &GateState, now: Timestamp) -> Option<Timestamp> {
    after(state.true_since?, policy.hold_down?).filter(|instant| *instant > now)
}

/// Returns true if the hold-down has passed. A gate that is established stays so, also if the clock is set back.
fn is_stable(policy: &Policy, state: &GateState, now: Timestamp) -> bool {
    let Some(hold_down) = policy.hold_down.filter(SignedDuration::is_positive) else { return true };
    let from = state.true_since.and_then(|since| after(since, hold_down));
    state.phase == GatePhase::Established || from.is_some_and(|instant| now >= instant)
}

/// Returns the instant from which True does not count any more unless the owner sends a heartbeat.
pub(super) fn stale_from(policy: &Policy, condition: &NodeCondition) -> Option<Timestamp> {
    let heartbeat = condition.last_heartbeat_time.as_ref()?.0;
    after(heartbeat, policy.max_heartbeat_age.filter(SignedDuration::is_positive)?)
}
