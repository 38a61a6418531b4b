//! Timers and phases (KEP-5233, Node Readiness Timeout, Implementation considerations 1 to 6).

use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::state::{GateState, Phase, is_report};
use crate::condition::Observation;
use crate::gate::NodeReadinessGate;
use crate::policy::{Leftover, Policy};

/// A condition as the reconciler takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the columns of the decision table")]
pub enum Sighting {
    /// What is there.
    Observed(Observation),
    /// True, but not for long enough.
    Stabilizing,
    /// True, but the last sign of life is too old.
    Stale,
    /// Unchanged since before the boot.
    BeforeBoot,
}

impl Sighting {
    /// Whether a boot has reset what was there.
    pub(crate) const fn is_reset(self) -> bool {
        matches!(self, Self::BeforeBoot | Self::Observed(Observation::NodeRestarted))
    }
}

impl fmt::Display for Sighting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observed(observation) => observation.fmt(formatter),
            Self::Stabilizing => formatter.write_str("Stabilizing"),
            Self::Stale => formatter.write_str("Stale"),
            Self::BeforeBoot => formatter.write_str("NodeRestarted"),
        }
    }
}

/// The instant a while after another; None if there is no such instant.
pub(crate) fn after(instant: Timestamp, time: SignedDuration) -> Option<Timestamp> {
    instant.checked_add(time.max(SignedDuration::ZERO)).ok()
}

/// When True begins to count; None if it counts already, or if that instant does not exist.
pub(crate) fn stable_from(policy: &Policy, state: &GateState, now: Timestamp) -> Option<Timestamp> {
    after(state.true_since?, policy.hold_down?).filter(|instant| *instant > now)
}

/// Whether True counts. Once it does, it does until it ends, also if the clock is set back.
fn is_stable(policy: &Policy, state: &GateState, now: Timestamp) -> bool {
    let Some(hold_down) = policy.hold_down.filter(SignedDuration::is_positive) else { return true };
    let from = state.true_since.and_then(|since| after(since, hold_down));
    state.phase == Phase::Established || from.is_some_and(|instant| now >= instant)
}

/// When True counts no more unless the owner gives a sign of life.
pub(crate) fn stale_from(policy: &Policy, condition: &NodeCondition) -> Option<Timestamp> {
    let heartbeat = condition.last_heartbeat_time.as_ref()?.0;
    after(heartbeat, policy.max_heartbeat_age.filter(SignedDuration::is_positive)?)
}

/// How a condition is to be taken now. Keeps what the state remembers of it up to date.
pub(crate) fn look(
    policy: &Policy,
    state: &mut GateState,
    condition: Option<&NodeCondition>,
    now: Timestamp,
) -> Sighting {
    let observation = Observation::of(condition);
    if condition.is_some_and(|condition| is_report(state.before_boot.as_ref(), condition)) {
        return Sighting::BeforeBoot;
    }
    state.before_boot = None;
    let Some(condition) = condition.filter(|_| observation == Observation::True) else {
        state.true_since = None;
        let is_leftover = observation == Observation::TimeoutExceeded
            && policy.leftover == Leftover::Ignored
            && state.phase == Phase::Waiting
            && condition.is_some_and(|condition| is_report(state.leftover.as_ref(), condition));
        return Sighting::Observed(if is_leftover { Observation::Missing } else { observation });
    };
    if stale_from(policy, condition).is_some_and(|instant| now >= instant) {
        state.true_since = None;
        return Sighting::Stale;
    }
    // The clock may have been set back.
    state.true_since = Some(state.true_since.map_or(now, |since| since.min(now)));
    if is_stable(policy, state, now) { Sighting::Observed(Observation::True) } else { Sighting::Stabilizing }
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The gate's timeout.
    Timeout(SignedDuration),
    /// The longest wait in one boot.
    LongestWait(SignedDuration),
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(time) => write!(formatter, "{} s", time.as_secs()),
            Self::LongestWait(time) => write!(formatter, "{} s, the longest wait in one boot", time.as_secs()),
        }
    }
}

/// When a wait that has begun ends, and by what: the timeout from the beginning of its timer, or the bound from the
/// first beginning. Without a timer that runs, the bound does not count either: the node is not ready.
pub(crate) fn end(policy: &Policy, timeout: SignedDuration, state: &GateState) -> Option<(Timestamp, Limit)> {
    let own = after(state.anchor?, timeout).map(|instant| (instant, Limit::Timeout(timeout)));
    let bound = policy.max_wait_per_boot.filter(SignedDuration::is_positive);
    let bound = bound.and_then(|time| Some((after(state.first_anchor?, time)?, Limit::LongestWait(time))));
    own.into_iter().chain(bound).min_by_key(|(instant, _)| *instant)
}

/// When the failure action comes: for a gate that waits, and for one that regressed only if a timer of its own runs. None
/// for a gate that is never released by time.
pub(crate) fn deadline(policy: &Policy, gate: &NodeReadinessGate, state: &GateState) -> Option<Timestamp> {
    let runs = match state.phase {
        Phase::Waiting => true,
        Phase::Regressed => policy.rearm_on_regression,
        Phase::Established | Phase::TimedOut => false,
    };
    if runs { end(policy, gate.releases_after()?, state).map(|(instant, _)| instant) } else { None }
}

/// The decision table: the phase after a sighting. `expired` says that the node is ready and the deadline is reached.
///
/// | | True | False, Unknown, Missing | `NodeRestarted` | `TimeoutExceeded` | Stabilizing |
/// |---|---|---|---|---|---|
/// | Waiting | Established | - | - | `TimedOut` | - |
/// | Waiting, expired | Established | `TimedOut` | `TimedOut` | `TimedOut` | - |
/// | Established | - | Regressed | Waiting | `TimedOut` | - |
/// | Regressed | Established | - | Waiting | `TimedOut` | - |
/// | Regressed, expired | Established | `TimedOut` | Waiting | `TimedOut` | - |
/// | `TimedOut` | Established | - | - | - | - |
pub(crate) const fn next(phase: Phase, sighting: Sighting, expired: bool) -> Phase {
    match (phase, sighting) {
        (_, Sighting::Observed(Observation::True)) => Phase::Established,
        (_, Sighting::Observed(Observation::TimeoutExceeded)) => Phase::TimedOut,
        (phase, Sighting::Stabilizing) => phase,
        (Phase::Established | Phase::Regressed, _) if sighting.is_reset() => Phase::Waiting,
        (Phase::Established, _) => Phase::Regressed,
        (Phase::Waiting | Phase::Regressed, _) if expired => Phase::TimedOut,
        (phase, _) => phase,
    }
}
