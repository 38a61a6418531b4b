//! A clock that is set: the times in a state belong to the clock that the caller reads.
//!
//! A clock that is set back leaves times in the future. [`step`](super::step()) takes such a time for now, so that no
//! wait lasts longer than its timeout from the jump on. A clock that is set forward can't be told from time that has
//! passed, except by the caller, who has a monotonic clock or is told of the jump.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::gate_state::GateState;
use super::node_state::NodeState;

/// One reading of the two clocks of a machine: the wall clock, which may be set, and a monotonic one, which may not.
///
/// The monotonic clock should go on while the machine is suspended (`CLOCK_BOOTTIME` on Linux). With one that stops, the
/// time of a suspension counts as a jump of the wall clock.
///
/// ```
/// use k8s_openapi::jiff::SignedDuration;
/// use readiness::ClockReading;
/// let wall = |text: &str| text.parse().unwrap();
/// let first = ClockReading { wall: wall("2026-01-01T00:00:00Z"), monotonic: SignedDuration::from_secs(100) };
/// let second = ClockReading { wall: wall("2026-01-01T01:00:10Z"), monotonic: SignedDuration::from_secs(110) };
/// assert_eq!(second.shift_since(first), SignedDuration::from_hours(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a machine has these two clocks")]
pub struct ClockReading {
    /// Time of the wall clock.
    pub wall: Timestamp,
    /// Time of the monotonic clock, since any instant that stays the same while the machine runs.
    pub monotonic: SignedDuration,
}

impl ClockReading {
    /// Returns the time by which the wall clock was set forward since an earlier reading; negative if it was set back.
    /// Clocks differ a little without a jump: a caller ignores what is below a second, say, and keeps the earlier
    /// reading until it has not.
    #[must_use]
    pub fn shift_since(self, earlier: Self) -> SignedDuration {
        let passed = self.monotonic.saturating_sub(earlier.monotonic);
        self.wall.duration_since(earlier.wall).saturating_sub(passed)
    }
}

impl NodeState {
    /// Moves all times in the state by `shift`, by which the caller's clock was set forward (back if negative), so that
    /// running timeouts end when they would have ended without the jump. Call it before the first
    /// [`step`](crate::step()) with the new time; a time beyond the range of timestamps stays.
    ///
    /// Without it a jump forward ends every timeout that it leaps over, and opens those gates at once.
    ///
    /// ```
    /// use k8s_openapi::jiff::SignedDuration;
    /// use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, step};
    /// let node: GatedNode = serde_json::from_str(r#"{
    ///     "spec": {"readinessGates": [
    ///         {"conditionType": "a.example/Ready", "timeoutSeconds": 180, "failureAction": "BypassWithWarning"}]},
    ///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
    /// let evaluate = |time: &str, state| {
    ///     step(&Policy::kep(), EvaluatorRole::Combined, &node.view(), time.parse().unwrap(), state)
    /// };
    /// let mut state = evaluate("2026-01-01T00:00:00Z", NodeState::default()).state;
    /// // Ten seconds later, the clock was set an hour forward.
    /// state.shift_clock(SignedDuration::from_hours(1));
    /// let next = evaluate("2026-01-01T01:00:10Z", state);
    /// assert!(!next.verdict.schedulable);
    /// assert_eq!(next.requeue_at.unwrap().to_string(), "2026-01-01T01:03:00Z");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn shift_clock(&mut self, shift: SignedDuration) {
        self.each_time(|time| time.checked_add(shift).unwrap_or(time));
    }

    /// Takes times in the future for now.
    pub(super) fn end_at(&mut self, now: Timestamp) {
        self.each_time(|time| time.min(now));
    }

    fn each_time(&mut self, change: impl Fn(Timestamp) -> Timestamp) {
        for gate in self.gates.values_mut() {
            let GateState { timer_started_at, first_timer_started_at, true_since, regressions, .. } = gate;
            for time in [timer_started_at, first_timer_started_at, true_since].into_iter().flatten().chain(regressions)
            {
                *time = change(*time);
            }
        }
    }
}
