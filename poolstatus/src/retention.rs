//! When requests are deleted.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::request::Request;
use crate::time::since;

/// How long Kubernetes 1.37 keeps a request with an answer.
pub const COMPLETED: Duration = Duration::from_secs(3_600);

/// How long Kubernetes 1.37 keeps a request without an answer.
pub const PENDING: Duration = Duration::from_secs(24 * 3_600);

/// How often Kubernetes 1.37 looks for requests to delete.
pub const SWEEP: Duration = Duration::from_secs(600);

/// A time to live below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ttlSecondsAfterComplete {seconds}: must not be negative")]
#[non_exhaustive]
pub struct NegativeTtl {
    /// The value.
    pub seconds: i64,
}

/// Whether `ttl_seconds` have passed since a request was completed (KEP, beta): `now` is after completion plus these. A
/// request without a time to live never expires, nor does one that is pending.
///
/// # Errors
/// A negative time to live.
///
/// ```
/// use poolstatus::retention::is_expired;
/// let (done, now) = ("2026-11-21T12:00:00Z".parse()?, "2026-11-21T12:01:00Z".parse()?);
/// assert_eq!(is_expired(Some(59), Some(done), now), Ok(true));
/// assert_eq!(is_expired(Some(60), Some(done), now), Ok(false));
/// assert_eq!(is_expired(None, Some(done), now), Ok(false));
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
pub fn is_expired(
    ttl_seconds: Option<i64>,
    completion: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, NegativeTtl> {
    let Some(seconds) = ttl_seconds else { return Ok(false) };
    if seconds < 0 {
        return Err(NegativeTtl { seconds });
    }
    let expiry = completion.map(|done| done.checked_add(SignedDuration::from_secs(seconds)));
    // An expiry beyond the end of time never comes.
    Ok(expiry.is_some_and(|expiry| expiry.is_ok_and(|expiry| now > expiry)))
}

/// Whether Kubernetes 1.37 deletes a request at its next sweep.
///
/// One with an answer is kept for [`COMPLETED`] from its first `Complete` or `Failed` condition on (or from its creation,
/// without such a condition), any other for [`PENDING`] from its creation on. Without a time it is kept.
///
/// ```
/// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
/// use poolstatus::retention::is_swept;
/// let mut request = ResourcePoolStatusRequest::default();
/// request.metadata.creation_timestamp = Some(Time("2026-11-21T12:00:00Z".parse()?));
/// assert!(!is_swept((&request).into(), "2026-11-22T12:00:00Z".parse()?));
/// assert!(is_swept((&request).into(), "2026-11-22T12:00:01Z".parse()?));
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
#[must_use]
pub fn is_swept(request: Request<'_>, now: Timestamp) -> bool {
    let created = request.metadata().creation_timestamp.as_ref();
    let (start, kept) =
        if request.is_processed() { (request.completion().or(created), COMPLETED) } else { (created, PENDING) };
    start.is_some_and(|Time(start)| since(*start, now) > kept)
}

/// How old an answer is: never less than nothing, also if `now` is before its observation.
///
/// ```
/// use std::time::Duration;
/// use poolstatus::retention::age;
/// let (observed, now) = ("2026-11-21T12:00:00Z".parse()?, "2026-11-21T12:00:07Z".parse()?);
/// assert_eq!(age(observed, now), Duration::from_secs(7));
/// assert_eq!(age(now, observed), Duration::ZERO);
/// # Ok::<(), k8s_openapi::jiff::Error>(())
/// ```
#[must_use]
pub fn age(observed: Timestamp, now: Timestamp) -> Duration {
    since(observed, now)
}
