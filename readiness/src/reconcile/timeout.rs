//! Timeouts of gates (KEP-5233, Node Readiness Timeout, Implementation considerations 1 to 6).

use std::fmt;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::gate_state::{GatePhase, GateState};
use crate::gate::NodeReadinessGate;
use crate::policy::Policy;

/// Returns `instant` plus `time`, or `None` beyond the range of timestamps.
pub(super) fn after(instant: Timestamp, time: SignedDuration) -> Option<Timestamp> {
    instant.checked_add(time.max(SignedDuration::ZERO)).ok()
}

/// Limit that ends the wait of a gate: its own timeout, or the policy's limit for one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitLimit {
    /// The timeout of the gate, `timeoutSeconds`.
    Timeout(SignedDuration),
    /// The policy's limit for one boot, [`Policy::max_wait_per_boot`].
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

/// Returns the end of a running timeout, and the limit that sets it. `None` if no timeout runs.
///
/// The limit that ends first counts: the timeout from its start, or `max_wait_per_boot` from the start of the first
/// timeout in this boot. While the node is not ready, neither limit counts.
pub(super) fn timer_end(policy: &Policy, timeout: SignedDuration, state: &GateState) -> Option<(Timestamp, WaitLimit)> {
    let own = after(state.timer_started_at?, timeout).map(|instant| (instant, WaitLimit::Timeout(timeout)));
    let bound = policy.max_wait_per_boot.filter(SignedDuration::is_positive);
    let bound =
        bound.and_then(|time| Some((after(state.first_timer_started_at?, time)?, WaitLimit::MaxWaitPerBoot(time))));
    own.into_iter().chain(bound).min_by_key(|(instant, _)| *instant)
}

/// Returns the time at which the gate times out; `None` if no timeout runs, or if the gate is invalid and never times
/// out. A gate that regressed has a timeout only with [`Policy::rearm_on_regression`].
pub(super) fn deadline(policy: &Policy, gate: &NodeReadinessGate, state: &GateState) -> Option<Timestamp> {
    let runs = match state.phase {
        GatePhase::Waiting => true,
        GatePhase::Regressed => policy.rearm_on_regression,
        GatePhase::Established | GatePhase::TimedOut => false,
    };
    if runs { timer_end(policy, gate.releases_after()?, state).map(|(instant, _)| instant) } else { None }
}
