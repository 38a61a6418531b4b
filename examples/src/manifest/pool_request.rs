//! Requests for the status of pools, in the form of their KEP or of Kubernetes 1.37.

use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::jiff::Timestamp;
use poolstatus::lifecycle::TtlError;
use poolstatus::{StatusRequest, kep};

/// A `ResourcePoolStatusRequest`, with its form.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are two forms")]
pub enum PoolStatusRequest {
    /// Form of KEP-5677 (`v1alpha1`).
    Kep(Box<kep::ResourcePoolStatusRequest>),
    /// Form of Kubernetes 1.37 (`v1alpha3`).
    V1alpha3(Box<v1alpha3::ResourcePoolStatusRequest>),
}

impl PoolStatusRequest {
    /// Returns the request as decisions take it.
    #[must_use]
    pub fn view(&self) -> StatusRequest<'_> {
        match self {
            Self::Kep(request) => request.as_ref().into(),
            Self::V1alpha3(request) => request.as_ref().into(),
        }
    }

    /// Returns true if the request was kept for long enough: an hour after its answer in Kubernetes 1.37, as long as it says in
    /// the KEP.
    ///
    /// # Errors
    /// It says a negative time.
    ///
    /// ```
    /// use examples::manifest::PoolStatusRequest;
    /// let request = PoolStatusRequest::Kep(Box::default());
    /// assert_eq!(request.is_expired("2026-11-21T12:00:00Z".parse()?), Ok(false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_expired(&self, now: Timestamp) -> Result<bool, TtlError> {
        match self {
            Self::Kep(request) => request.is_ttl_expired(now),
            Self::V1alpha3(request) => Ok(StatusRequest::from(request.as_ref()).is_retention_expired(now)),
        }
    }
}
