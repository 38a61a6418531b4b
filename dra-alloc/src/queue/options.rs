//! Times of a queue: how long a pod backs off, and when a refused pod is tried without an event.
//!
//! Source: `backoff_queue.go`, `DefaultPodMaxInUnschedulablePodsDuration`; KEP-5142.

use jiff::{SignedDuration, Timestamp};

/// Windows into which the ends of pauses are gathered, so that pods of one window come back in the order of the queue.
const WINDOW: SignedDuration = SignedDuration::from_secs(1);

/// Rule for a queue that has no active pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a pod that backs off waits or does not")]
pub enum WhenIdle {
    /// A pod that backs off after a refusal is tried early, as in kube-scheduler with the gate `SchedulerPopFromBackoffQ`, which is
    /// on since 1.33. Pauses end with whole seconds.
    TryBackingOff,
    /// All pauses are kept to their end.
    Wait,
}

/// Times of a [`SchedulingQueue`](super::SchedulingQueue), kube-scheduler's by default: pauses of 1 to 10 seconds, and five
/// minutes until a refused pod is tried without an event.
///
/// ```
/// use dra_alloc::queue::{QueueOptions, WhenIdle};
/// use k8s_openapi::jiff::SignedDuration;
/// let seconds = SignedDuration::from_secs;
/// let options = QueueOptions::default().with_backoff(seconds(2), seconds(60))?.when_idle(WhenIdle::Wait);
/// assert!(options.with_flush_after(seconds(600)).is_ok());
/// assert_eq!(options.with_backoff(seconds(0), seconds(1)).unwrap_err().to_string(), "initial backoff: must be positive");
/// # Ok::<(), dra_alloc::queue::QueueOptionsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    initial_backoff: SignedDuration,
    max_backoff: SignedDuration,
    flush_after: SignedDuration,
    when_idle: WhenIdle,
}

/// Time that a queue can't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueOptionsError {
    /// The first pause is not positive.
    #[error("initial backoff: must be positive")]
    InitialBackoff,
    /// The longest pause is shorter than the first.
    #[error("max backoff: must not be less than the initial backoff")]
    MaxBackoff,
    /// The time after which a refused pod is tried again is not positive.
    #[error("flush after: must be positive")]
    FlushAfter,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            initial_backoff: SignedDuration::from_secs(1),
            max_backoff: SignedDuration::from_secs(10),
            flush_after: SignedDuration::from_mins(5),
            when_idle: WhenIdle::TryBackingOff,
        }
    }
}

impl QueueOptions {
    /// Sets the first pause and the longest one; each pause is twice the one before.
    ///
    /// # Errors
    /// The first pause is not positive, or longer than the longest.
    pub fn with_backoff(self, initial: SignedDuration, max: SignedDuration) -> Result<Self, QueueOptionsError> {
        if !initial.is_positive() {
            return Err(QueueOptionsError::InitialBackoff);
        }
        if max < initial {
            return Err(QueueOptionsError::MaxBackoff);
        }
        Ok(Self { initial_backoff: initial, max_backoff: max, ..self })
    }

    /// Sets the time after which a refused pod is tried again without an event.
    ///
    /// # Errors
    /// The time is not positive.
    pub fn with_flush_after(self, time: SignedDuration) -> Result<Self, QueueOptionsError> {
        if !time.is_positive() {
            return Err(QueueOptionsError::FlushAfter);
        }
        Ok(Self { flush_after: time, ..self })
    }

    /// Sets the rule for a queue that has no active pod.
    #[must_use]
    pub const fn when_idle(self, when_idle: WhenIdle) -> Self {
        Self { when_idle, ..self }
    }

    /// Returns true if pods that back off are tried early when no pod is active.
    pub(super) fn tries_backing_off(self) -> bool {
        self.when_idle == WhenIdle::TryBackingOff
    }

    /// Returns the time at which a pod that was refused at `since` is tried again without an event.
    pub(super) fn flush_at(self, since: Timestamp) -> Timestamp {
        later(since, self.flush_after)
    }

    /// Returns the end of the pause after the attempt number `count` in a row that ended at `since` like the ones before it; none
    /// for a pod that was not tried. The longest pause grows with the square root of the number of pods that are tried together.
    pub(super) fn back_at(self, since: Timestamp, count: u32, pods: usize) -> Option<Timestamp> {
        let doublings = count.checked_sub(1)?;
        let factor = i32::try_from(1_u64.checked_shl(doublings).unwrap_or(u64::MAX)).unwrap_or(i32::MAX);
        let longest = self.longest_pause(pods);
        let pause = self.initial_backoff.checked_mul(factor).unwrap_or(longest).min(longest);
        let end = later(since, pause);
        Some(if self.tries_backing_off() { end_of_window(end) } else { end })
    }

    fn longest_pause(self, pods: usize) -> SignedDuration {
        let longest = self.max_backoff.as_millis().unsigned_abs();
        let grown = longest.saturating_mul(longest).saturating_mul(pods as u128).isqrt();
        SignedDuration::from_millis(i64::try_from(grown).unwrap_or(i64::MAX)).max(self.max_backoff)
    }
}

/// Returns the end of the window in which a pause ends.
fn end_of_window(end: Timestamp) -> Timestamp {
    let begin = Timestamp::from_second(end.as_second() - i64::from(end.subsec_nanosecond() < 0));
    begin.map_or(Timestamp::MAX, |begin| later(begin, WINDOW))
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: fn(i64) -> SignedDuration = SignedDuration::from_secs;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let options = QueueOptions::default().when_idle(WhenIdle::Wait);
        let pause = |count, pods| options.back_at(Timestamp::UNIX_EPOCH, count, pods).map(Timestamp::as_millisecond);
        let table = [(0, 1, None), (1, 1, Some(1_000)), (2, 1, Some(2_000)), (4, 1, Some(8_000)), (5, 1, Some(10_000))];
        let groups = [(5, 2, Some(14_142)), (6, 9, Some(30_000)), (1, 9, Some(1_000)), (u32::MAX, 0, Some(10_000))];
        for (count, pods, expected) in table.into_iter().chain(groups) {
            assert_eq!(pause(count, pods), expected, "{count} attempts of {pods} pods");
        }
    }

    #[test]
    fn pauses_end_with_their_window() {
        let back_at = |since| QueueOptions::default().back_at(Timestamp::from_millisecond(since).unwrap(), 1, 1);
        let table = [(0, 2_000), (1, 2_000), (999, 2_000), (1_000, 3_000), (-500, 1_000), (-1_500, 0)];
        for (since, end) in table {
            assert_eq!(back_at(since).map(Timestamp::as_millisecond), Some(end), "{since}");
        }
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let options = QueueOptions::default().with_backoff(SECONDS(1), SignedDuration::MAX).unwrap();
        assert_eq!(options.back_at(Timestamp::MAX, u32::MAX, usize::MAX), Some(Timestamp::MAX));
        assert_eq!(options.flush_at(Timestamp::MAX), Timestamp::MAX);
    }
}
