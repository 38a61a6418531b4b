//! Rate limit of requests: a token bucket for each user (KEP-5677, planned for beta).

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

/// Rate limiter with a token bucket for each user.
///
/// A bucket holds `burst` tokens. A request takes one token, and one token comes back after each `refill`. The limiter
/// stores only the time at which a bucket is full again, so that nothing is rounded and full buckets need no memory.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use poolstatus::lifecycle::RateLimiter;
///
/// let mut limiter = RateLimiter::new(NonZeroU32::new(2).unwrap(), Duration::from_secs(30));
/// let now = "2026-11-21T12:00:00Z".parse()?;
/// assert_eq!(limiter.take("alice", now), None);
/// assert_eq!(limiter.take("alice", now), None);
/// assert_eq!(limiter.take("alice", now), Some(Duration::from_secs(30)));
/// assert_eq!(limiter.take("bob", now), None);
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimiter {
    burst: NonZeroU32,
    refill: Duration,
    /// Time at which the bucket of each user is full again, in nanoseconds since the Unix epoch.
    full_at: BTreeMap<String, i128>,
}

impl RateLimiter {
    /// Creates full buckets of `burst` tokens, to which one token comes back after each `refill`.
    #[must_use]
    pub const fn new(burst: NonZeroU32, refill: Duration) -> Self {
        Self { burst, refill, full_at: BTreeMap::new() }
    }

    /// Takes a token from the bucket of `user`, for one request, and returns `None`. If the bucket is empty, the request is
    /// refused: returns the time until the bucket has a token again. A refusal takes no token.
    #[must_use]
    pub fn take(&mut self, user: &str, now: Timestamp) -> Option<Duration> {
        let now = now.as_nanosecond();
        let refill = i128::try_from(self.refill.as_nanos()).unwrap_or(i128::MAX);
        let full_at = self.full_at.get(user).copied().unwrap_or(now).max(now).saturating_add(refill);
        let room = refill.saturating_mul(self.burst.get().into());
        let wait = full_at.saturating_sub(now).saturating_sub(room);
        if wait > 0 {
            return Some(duration(wait));
        }
        self.full_at.insert(user.to_owned(), full_at);
        None
    }

    /// Removes the entries of users whose buckets are full, so that memory use follows the number of active users.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.full_at.retain(|_, full_at| *full_at > now.as_nanosecond());
    }

    /// Returns the number of users for whom the limiter has an entry.
    #[must_use]
    pub fn len(&self) -> usize {
        self.full_at.len()
    }

    /// Returns true if the limiter has no entry for any user.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full_at.is_empty()
    }
}

fn duration(nanos: i128) -> Duration {
    let seconds = u64::try_from(nanos.div_euclid(1_000_000_000)).unwrap_or(u64::MAX);
    Duration::new(seconds, u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or_default())
}
