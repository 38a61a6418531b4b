//! Expiry of `ResourcePoolStatusRequest`s, after which they are deleted.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::elapsed;
use crate::status_request::StatusRequest;

/// Time for which Kubernetes 1.37 keeps a request with a status: 1 hour.
const COMPLETED_TTL: Duration = Duration::from_secs(3_600);

/// Time for which Kubernetes 1.37 keeps a request without a status: 24 hours.
const PENDING_TTL: Duration = Duration::from_secs(24 * 3_600);

/// Interval at which Kubernetes 1.37 deletes expired requests: 10 minutes.
pub const CLEANUP_INTERVAL: Duration = Duration::from_secs(600);

/// Error of a request whose `ttlSecondsAfterComplete` is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ttlSecondsAfterComplete {seconds}: must not be negative")]
#[non_exhaustive]
pub struct TtlError {
    /// The negative time to live, in seconds.
    pub seconds: i64,
}

/// Returns true if more than `ttl_seconds` have passed since the completion of a request, as the KEP plans it for beta.
///
/// A request without a time to live never expires, nor does a request that is pending.
///
/// # Errors
/// A negative time to live.
///
/// ```
/// use poolstatus::lifecycle::is_ttl_expired;
/// let (done, now) = ("2026-11-21T12:00:00Z".parse()?, "2026-11-21T12:01:00Z".parse()?);
/// assert_eq!(is_ttl_expired(Some(59), Some(done), now), Ok(true));
/// assert_eq!(is_ttl_expired(Some(60), Some(done), now), Ok(false));
/// assert_eq!(is_ttl_expired(None, Some(done), now), Ok(false));
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
pub fn is_ttl_expired(
    ttl_seconds: Option<i64>,
    completion: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, TtlError> {
    let Some(seconds) = ttl_seconds else { return Ok(false) };
    if seconds < 0 {
        return Err(TtlError { seconds });
    }
    let expiry = completion.map(|done| done.checked_add(SignedDuration::from_secs(seconds)));
    // An expiry beyond the last timestamp never comes.
    Ok(expiry.is_some_and(|expiry| expiry.is_ok_and(|expiry| now > expiry)))
}

/// Returns true if Kubernetes 1.37 deletes the request at its next cleanup.
///
/// A request with a status is kept for an hour after its first `Complete` or `Failed` condition, or after its
/// creation if it has no such condition. A request without a status is kept for a day after its creation. A
/// request without any of these times is kept.
///
/// ```
/// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
/// use poolstatus::lifecycle::is_retention_expired;
/// let mut request = ResourcePoolStatusRequest::default();
/// request.metadata.creation_timestamp = Some(Time("2026-11-21T12:00:00Z".parse()?));
/// assert!(!is_retention_expired((&request).into(), "2026-11-22T12:00:00Z".parse()?));
/// assert!(is_retention_expired((&request).into(), "2026-11-22T12:00:01Z".parse()?));
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
#[must_use]
pub fn is_retention_expired(request: StatusRequest<'_>, now: Timestamp) -> bool {
    let created = request.metadata().creation_timestamp.as_ref();
    let (start, ttl) =
        if request.is_processed() { (request.completion().or(created), COMPLETED_TTL) } else { (created, PENDING_TTL) };
    start.is_some_and(|Time(start)| elapsed(*start, now) > ttl)
}

/// Returns the age of a status at the time `now`, or zero if `now` is before its observation.
///
/// ```
/// use std::time::Duration;
/// use poolstatus::lifecycle::status_age;
/// let (observed, now) = ("2026-11-21T12:00:00Z".parse()?, "2026-11-21T12:00:07Z".parse()?);
/// assert_eq!(status_age(observed, now), Duration::from_secs(7));
/// assert_eq!(status_age(now, observed), Duration::ZERO);
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
#[must_use]
pub fn status_age(observed: Timestamp, now: Timestamp) -> Duration {
    elapsed(observed, now)
}
