//! Phase of a `ResourcePoolStatusRequest`: pending, complete or failed.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::elapsed;
use crate::status_request::StatusRequest;

/// Phase of a `ResourcePoolStatusRequest`: pending, complete or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestPhase {
    /// The request has no status yet.
    Pending {
        /// Time since the creation of the request, if its creation time is known.
        waiting: Option<Duration>,
    },
    /// The request has a status.
    Complete,
    /// No status could be computed, because a list of objects could not be read. Only `v1alpha3` has this phase.
    Failed,
}

impl RequestPhase {
    /// Determines the phase of a request at the time `now`.
    ///
    /// ```
    /// use poolstatus::kep::ResourcePoolStatusRequest;
    /// use poolstatus::lifecycle::RequestPhase;
    /// let request = ResourcePoolStatusRequest::default();
    /// let phase = RequestPhase::from_request((&request).into(), "2026-11-21T12:00:00Z".parse()?);
    /// assert_eq!(phase, RequestPhase::Pending { waiting: None });
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn from_request(request: StatusRequest<'_>, now: Timestamp) -> Self {
        if !request.is_processed() {
            let created = request.metadata().creation_timestamp.as_ref();
            return Self::Pending { waiting: created.map(|created| elapsed(created.0, now)) };
        }
        if has_failed(request) { Self::Failed } else { Self::Complete }
    }
}

fn has_failed(request: StatusRequest<'_>) -> bool {
    let StatusRequest::V1alpha3(request) = request else { return false };
    let conditions = request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Failed" && condition.status == "True")
}
