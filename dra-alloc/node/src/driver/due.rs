//! Time of the next pass over a pool.
//!
//! Reasons are kept apart, and the earliest one counts: a pass for one reason must not swallow another that is still to
//! come. Upstream's delaying queue keeps one time for a pool.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Delay after an event of others: time for further ones, and for the watch to show what was written.
const FOREIGN_EVENT_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// Delay of a quick repair. A kubelet that restarts deletes the slices of its node, which then has no devices.
const QUICK_REPAIR_DELAY: SignedDuration = SignedDuration::from_secs(2);

/// Time for which a write that the watch has not shown is taken for stored.
pub(crate) const CONFIRMATION_DELAY: SignedDuration = SignedDuration::from_secs(60);

/// Delay after the first failure in a row; it doubles with each further one.
const FIRST_RETRY_DELAY: SignedDuration = SignedDuration::from_millis(5);

/// Longest delay after a failure.
const LONGEST_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(1000);

/// Number of doublings after which the delay is the longest one.
const MAX_DOUBLINGS: u32 = 18;

/// Reason of a pass over a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DueReason {
    /// The driver wants other contents.
    Desired,
    /// A slice was changed by somebody else, or the watch showed an own write.
    ForeignEvent,
    /// A slice of the driver was deleted by somebody else.
    Vanished,
    /// The watch has not shown a write, which may be lost.
    Confirm,
    /// The last pass failed.
    Retry,
}

/// Moments that make a pass over a pool necessary. Callers keep one and set its fields.
///
/// ```
/// use dra_node::driver::{DueReason, Timers};
/// use k8s_openapi::jiff::{SignedDuration, Timestamp};
/// let now = Timestamp::UNIX_EPOCH;
/// let mut timers = Timers::default();
/// timers.first_foreign_event_at = Some(now);
/// assert_eq!(timers.due(now), Some((now + SignedDuration::from_secs(30), DueReason::ForeignEvent)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timers {
    /// Time at which the driver last changed its mind.
    pub desired_changed_at: Option<Timestamp>,
    /// Time of the first event since the last pass that others caused.
    pub first_foreign_event_at: Option<Timestamp>,
    /// Time at which an own slice was seen to be gone.
    pub own_slice_vanished_at: Option<Timestamp>,
    /// True if slices that vanish are written again after 2 instead of 30 seconds. A caller whose slices vanish
    /// repeatedly turns it off for a while.
    pub has_quick_repair: bool,
    /// Time of the last write that the watch has not shown.
    pub last_unconfirmed_write_at: Option<Timestamp>,
    /// Number of failed passes in a row.
    pub failures: u32,
    /// Time of the last failure.
    pub failed_at: Option<Timestamp>,
    /// Time of the last pass. It settles what happened before, but no confirmation that is still to come.
    pub synced_at: Option<Timestamp>,
}

impl Timers {
    /// Returns the time of the next pass over a pool and its reason; `None` if nothing is to be done. A time that has passed
    /// is `now`.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<(Timestamp, DueReason)> {
        let is_open = |at: &Timestamp| self.synced_at.is_none_or(|synced| *at >= synced);
        let after = |at: Timestamp, delay: SignedDuration| at.saturating_add(delay).unwrap_or(Timestamp::MAX);
        let repair = if self.has_quick_repair { QUICK_REPAIR_DELAY } else { FOREIGN_EVENT_DELAY };
        let event = |at: Option<Timestamp>, delay: SignedDuration, reason: DueReason| {
            at.filter(is_open).map(|at| (after(at, delay), reason))
        };
        let confirmation = self.last_unconfirmed_write_at.map(|at| after(at, CONFIRMATION_DELAY));
        let failed_at = self.failed_at.filter(|_| self.failures > 0);
        let reasons = [
            event(self.desired_changed_at, SignedDuration::ZERO, DueReason::Desired),
            event(self.first_foreign_event_at, FOREIGN_EVENT_DELAY, DueReason::ForeignEvent),
            event(self.own_slice_vanished_at, repair, DueReason::Vanished),
            confirmation.filter(is_open).map(|at| (at, DueReason::Confirm)),
            failed_at.map(|at| (after(at, retry_delay(self.failures)), DueReason::Retry)),
        ];
        let (at, reason) = reasons.into_iter().flatten().min()?;
        Some((at.max(now), reason))
    }
}

/// Returns the delay after a number of failures in a row.
fn retry_delay(failures: u32) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(MAX_DOUBLINGS);
    FIRST_RETRY_DELAY.saturating_mul(1 << doublings).min(LONGEST_RETRY_DELAY)
}
