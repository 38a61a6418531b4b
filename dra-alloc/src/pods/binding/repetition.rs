//! Times of a binding's calls: the end of a call without an answer, and repetitions.

use jiff::{SignedDuration, Timestamp};

/// Time after which a call counts as one without an answer. An API server works on a request for a minute at most by default.
const ANSWERED_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// Time after which a write without a version whose answer was lost can't be stored any more.
const SETTLED_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Longest time between two repetitions of a call, in seconds.
const LONGEST_BACKOFF: i64 = 30;

/// Number of doublings after which the longest time is reached.
const LARGEST_SHIFT: u32 = 5;

/// Returns the time at which a call counts as one without an answer.
pub(super) fn answered_until(begin: Timestamp) -> Timestamp {
    begin.checked_add(ANSWERED_WITHIN).unwrap_or(Timestamp::MAX)
}

/// Returns the time at which a write without a version, such as a binding, can't be stored any more after its answer was lost.
pub(super) fn settled_from(lost: Timestamp) -> Timestamp {
    lost.checked_add(SETTLED_AFTER).unwrap_or(Timestamp::MAX)
}

/// Returns the time of the next repetition, after some calls in vain: at once, then after one second, two, four…
pub(super) fn again_at(now: Timestamp, in_vain: u32) -> Timestamp {
    let seconds = match in_vain {
        0 | 1 => 0,
        more => (1_i64 << (more - 2).min(LARGEST_SHIFT)).min(LONGEST_BACKOFF),
    };
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_become_rare_and_never_cease() {
        let seconds = |in_vain| again_at(Timestamp::UNIX_EPOCH, in_vain).as_second();
        assert_eq!([0, 1, 2, 3, 4, 7, 66, u32::MAX].map(seconds), [0, 0, 1, 2, 4, 30, 30, 30]);
        assert_eq!(again_at(Timestamp::MAX, 9), Timestamp::MAX);
    }
}
