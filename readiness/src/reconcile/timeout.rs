//! Timers of gates (KEP-5233, Node Readiness Timeout, Implementation considerations 1 to 6).

use std::fmt;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::gate_state::{GatePhase, GateState};
use crate::gate::NodeReadinessGate;
use crate::policy::Policy;

/// Returns `instant` plus `time`, or `None` beyond the range of timestamps.
pub(super) fn after(instant: Timestamp, time: SignedDuration) -> Option<Timestamp> {
    instant.checked_add(time.max(SignedDuration::ZERO)).ok()
}

/// Bound that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitLimit {
    /// `timeoutSeconds` of the gate.
    Timeout(SignedDuration),
    /// [`Policy::max_wait_per_boot`].
    MaxWaitPerBoot(SignedDuration),
}

impl fmt::Display for WaitLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(time) => write!(formatter, "{} s", time.as_secs()),
            Self::MaxWaitPerBoot(time) => write!(formatter, "{} s, the longest wait in one boot", time.as_secs()),
        }
    }
}

/// Returns the end of a running timer and the bound that sets it, whichever comes first: the timeout from the start of the
/// timer, or `max_wait_per_boot` from the start of the first timer in this boot. While no timer runs, the node is not
/// ready, and neither bound counts.
pub(super) fn timer_end(policy: &Policy, timeout: SignedDuration, state: &GateState) -> Option<(Timestamp, WaitLimit)> {
    let own = after(state.timer_started_at?, timeout).map(|instant| (instant, WaitLimit::Timeout(timeout)));
    let bound = policy.max_wait_per_boot.filter(SignedDuration::is_positive);
    let bound =
        bound.and_then(|time| Some((after(state.first_timer_started_at?, time)?, WaitLimit::MaxWaitPerBoot(time))));
    own.into_iter().chain(bound).min_by_key(|(instant, _)| *instant)
}

/// Returns the instant of the failure action, or `None` if no timer runs or the gate is never released by time. A gate
/// that regressed has a timer only with [`Policy::rearm_on_regression`].
pub(super) fn deadline(policy: &Policy, gate: &NodeReadinessGate, state: &GateState) -> Option<Timestamp> {
    let runs = match state.phase {
        GatePhase::Waiting => true,
        GatePhase::Regressed => policy.rearm_on_regression,
        GatePhase::Established | GatePhase::TimedOut => false,
    };
    if runs { timer_end(policy, gate.releases_after()?, state).map(|(instant, _)| instant) } else { None }
}
