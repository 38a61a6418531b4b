//! Expiry of `ResourcePoolStatusRequest`s, after which they are deleted.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::elapsed;
use crate::kep;
use crate::status_request::StatusRequest;

/// Time for which Kubernetes 1.37 keeps a request with a status: 1 hour.
const COMPLETED_TTL: Duration = Duration::from_secs(3_600);

/// Time for which Kubernetes 1.37 keeps a request without a status: 24 hours.
const PENDING_TTL: Duration = Duration::from_secs(24 * 3_600);

/// Error of a request whose `ttlSecondsAfterComplete` is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ttlSecondsAfterComplete {seconds}: must not be negative")]
#[non_exhaustive]
pub struct TtlError {
    /// The negative time to live, in seconds.
    pub seconds: i64,
}

impl kep::ResourcePoolStatusRequest {
    /// Returns true if more than `ttlSecondsAfterComplete` have passed since the request was answered, as the KEP plans it for
    /// beta.
    ///
    /// A request without a time to live never expires, nor does a request that is pending.
    ///
    /// # Errors
    /// A negative time to live.
    ///
    /// ```
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    /// use poolstatus::kep::ResourcePoolStatusRequest;
    /// let mut request = ResourcePoolStatusRequest::default();
    /// request.status.observation_time = Some(Time("2026-11-21T12:00:00Z".parse()?));
    /// let now = "2026-11-21T12:01:00Z".parse()?;
    /// assert_eq!(request.is_ttl_expired(now), Ok(false));
    /// request.spec.ttl_seconds_after_complete = Some(59);
    /// assert_eq!(request.is_ttl_expired(now), Ok(true));
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    pub fn is_ttl_expired(&self, now: Timestamp) -> Result<bool, TtlError> {
        let Some(seconds) = self.spec.ttl_seconds_after_complete else { return Ok(false) };
        if seconds < 0 {
            return Err(TtlError { seconds });
        }
        let observed = self.status.observation_time.as_ref();
        let expiry = observed.map(|observed| observed.0.checked_add(SignedDuration::from_secs(seconds)));
        // An expiry beyond the last timestamp never comes.
        Ok(expiry.is_some_and(|expiry| expiry.is_ok_and(|expiry| now > expiry)))
    }
}

impl kep::Status {
    /// Returns the age of the status at the time `now`, or zero if `now` is before its observation; `None` if the request is
    /// not answered yet.
    ///
    /// ```
    /// use k8s_openapi::jiff::Timestamp;
    /// use dra_attrs::Profile;
    /// use poolstatus::{PoolIndex, Query};
    /// use std::time::Duration;
    /// let (observed, now) = ("2026-11-21T12:00:00Z".parse()?, "2026-11-21T12:00:07Z".parse()?);
    /// let status = PoolIndex::new(Profile::V1_37).report(&Query::new("gpu.example.com"), observed).to_kep();
    /// assert_eq!(status.age(now), Some(Duration::from_secs(7)));
    /// assert_eq!(status.age(Timestamp::UNIX_EPOCH), Some(Duration::ZERO));
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        self.observation_time.as_ref().map(|observed| elapsed(observed.0, now))
    }
}

impl StatusRequest<'_> {
    /// Returns true if Kubernetes 1.37 deletes the request at its next cleanup
    /// ([`RequestController::CLEANUP_INTERVAL`](crate::lifecycle::RequestController::CLEANUP_INTERVAL)).
    ///
    /// A request with a status is kept for an hour after its first `Complete` or `Failed` condition, or after its
    /// creation if it has no such condition. A request without a status is kept for a day after its creation. A
    /// request without any of these times is kept.
    ///
    /// ```
    /// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    /// use poolstatus::StatusRequest;
    /// let mut request = ResourcePoolStatusRequest::default();
    /// request.metadata.creation_timestamp = Some(Time("2026-11-21T12:00:00Z".parse()?));
    /// assert!(!StatusRequest::from(&request).is_retention_expired("2026-11-22T12:00:00Z".parse()?));
    /// assert!(StatusRequest::from(&request).is_retention_expired("2026-11-22T12:00:01Z".parse()?));
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn is_retention_expired(self, now: Timestamp) -> bool {
        let created = self.metadata().creation_timestamp.as_ref();
        let (start, ttl) =
            if self.is_processed() { (self.completion().or(created), COMPLETED_TTL) } else { (created, PENDING_TTL) };
        start.is_some_and(|Time(start)| elapsed(*start, now) > ttl)
    }
}
