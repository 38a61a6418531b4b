//! Rules by which a stored condition gets its effective status.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::effective_status::EffectiveStatus;
use super::gate_state::{GatePhase, GateState};
use super::recorded_condition::is_recorded;
use super::timeout::after;
use crate::condition::ConditionStatus;
use crate::policy::Policy;

/// Computes the effective status of a condition, and updates the fields `true_since` and `before_boot` of `state`.
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
            && policy.ignores_older_timeouts
            && state.phase == GatePhase::Waiting
            && condition.is_some_and(|condition| is_recorded(state.preexisting_timeout.as_ref(), condition));
        return EffectiveStatus::Observed(if is_ignored { ConditionStatus::Missing } else { status });
    };
    if stale_from(policy, condition).is_some_and(|instant| now >= instant) {
        state.true_since = None;
        return EffectiveStatus::Stale;
    }
    state.true_since.get_or_insert(now);
    if is_stable(policy, state, now) {
        EffectiveStatus::Observed(ConditionStatus::True)
    } else {
        EffectiveStatus::Stabilizing
    }
}

/// Returns the time at which the condition will have been True for [`Policy::hold_down`]; `None` if it has been
/// already, or is not True.
pub(super) fn stable_from(policy: &Policy, state: &GateState, now: Timestamp) -> Option<Timestamp> {
    after(state.true_since?, policy.hold_down?).filter(|instant| *instant > now)
}

/// Returns true if the condition has been True for [`Policy::hold_down`]. The result stays true in the phase
/// `Established`, even if the clock is set back.
fn is_stable(policy: &Policy, state: &GateState, now: Timestamp) -> bool {
    let Some(hold_down) = policy.hold_down.filter(SignedDuration::is_positive) else { return true };
    let from = state.true_since.and_then(|since| after(since, hold_down));
    state.phase == GatePhase::Established || from.is_some_and(|instant| now >= instant)
}

/// Returns the time at which a True condition becomes stale, unless its agent sends a heartbeat before.
pub(super) fn stale_from(policy: &Policy, condition: &NodeCondition) -> Option<Timestamp> {
    let heartbeat = condition.last_heartbeat_time.as_ref()?.0;
    after(heartbeat, policy.max_heartbeat_age.filter(SignedDuration::is_positive)?)
}
