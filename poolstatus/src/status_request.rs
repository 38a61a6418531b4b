//! A request for the status of pools, in the form of the KEP or of Kubernetes 1.37.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::kep;

/// A `ResourcePoolStatusRequest`, in the form of the KEP or of Kubernetes 1.37.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StatusRequest<'a> {
    /// Request in the KEP's form (`resource.k8s.io/v1alpha1`).
    Kep(&'a kep::ResourcePoolStatusRequest),
    /// Request in the form of Kubernetes 1.37 (`resource.k8s.io/v1alpha3`).
    V1alpha3(&'a v1alpha3::ResourcePoolStatusRequest),
}

impl<'a> From<&'a kep::ResourcePoolStatusRequest> for StatusRequest<'a> {
    fn from(request: &'a kep::ResourcePoolStatusRequest) -> Self {
        Self::Kep(request)
    }
}

impl<'a> From<&'a v1alpha3::ResourcePoolStatusRequest> for StatusRequest<'a> {
    fn from(request: &'a v1alpha3::ResourcePoolStatusRequest) -> Self {
        Self::V1alpha3(request)
    }
}

impl<'a> StatusRequest<'a> {
    /// Default `limit` of a request: maximum number of listed pools.
    pub const DEFAULT_LIMIT: i32 = 100;

    /// Maximum `limit` of a request.
    pub const MAX_LIMIT: i32 = 1000;

    /// Returns the profile that defines the form of the request.
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::Kep(_) => Profile::Kep,
            Self::V1alpha3(_) => Profile::V1_37,
        }
    }

    /// Returns the metadata of the request.
    #[must_use]
    pub const fn metadata(self) -> &'a ObjectMeta {
        match self {
            Self::Kep(request) => &request.metadata,
            Self::V1alpha3(request) => &request.metadata,
        }
    }

    /// Returns true if the request has been answered: it has an observation time (KEP) or a status (`v1alpha3`). An answered
    /// request is never processed again.
    ///
    /// ```
    /// use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
    /// use poolstatus::StatusRequest;
    /// let mut request = ResourcePoolStatusRequest::default();
    /// assert!(!StatusRequest::from(&request).is_processed());
    /// request.status = Some(Default::default());
    /// assert!(StatusRequest::from(&request).is_processed());
    /// ```
    #[must_use]
    pub const fn is_processed(self) -> bool {
        match self {
            Self::Kep(request) => request.status.observation_time.is_some(),
            Self::V1alpha3(request) => request.status.is_some(),
        }
    }

    /// Returns the time at which the request was answered or failed.
    pub(crate) fn completion(self) -> Option<&'a Time> {
        let (conditions, observed) = match self {
            Self::Kep(request) => (request.status.conditions.as_slice(), request.status.observation_time.as_ref()),
            Self::V1alpha3(request) => {
                let status = request.status.as_ref();
                (status.and_then(|status| status.conditions.as_deref()).unwrap_or_default(), None)
            }
        };
        let mut done = conditions.iter().filter(|condition| ["Complete", "Failed"].contains(&condition.type_.as_str()));
        done.next().map(|condition| &condition.last_transition_time).or(observed)
    }

    /// Returns the spec of the request in a form that does not depend on the API version.
    pub(crate) fn spec(self) -> SpecView<'a> {
        match self {
            Self::Kep(request) => SpecView {
                driver: &request.spec.driver,
                // In the KEP's form the field is a string that is empty if unset.
                pool: request.spec.pool_name.as_deref().filter(|name| !name.is_empty()),
                limit: request.spec.limit.unwrap_or(Self::DEFAULT_LIMIT),
                partition_type_attribute: None,
                ttl: request.spec.ttl_seconds_after_complete,
            },
            Self::V1alpha3(request) => SpecView {
                driver: &request.spec.driver,
                pool: request.spec.pool_name.as_deref(),
                limit: request.spec.limit.unwrap_or(Self::DEFAULT_LIMIT),
                partition_type_attribute: request.spec.default_partition_type_attribute.as_deref(),
                ttl: None,
            },
        }
    }
}

/// Spec of a request, independent of the API version, with the default limit filled in.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct SpecView<'a> {
    pub(crate) driver: &'a str,
    pub(crate) pool: Option<&'a str>,
    pub(crate) limit: i32,
    pub(crate) partition_type_attribute: Option<&'a str>,
    pub(crate) ttl: Option<i64>,
}
