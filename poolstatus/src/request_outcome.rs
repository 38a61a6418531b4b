//! Outcome of processing a `v1alpha3` request: a status, a retry, or a failure.

use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequestStatus;
use k8s_openapi::jiff::Timestamp;

use crate::condition::true_condition;

/// Outcome of processing a request in the form of Kubernetes 1.37 (`resource.k8s.io/v1alpha3`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// The request is answered, with this status to write.
    Ready(ResourcePoolStatusRequestStatus),
    /// Listed pools have missing slices. No status is written: the request stays pending and is retried until no slice
    /// is missing.
    Incomplete {
        /// Names of the incomplete pools, sorted.
        pools: Vec<String>,
        /// The status as computed, which must not be written.
        preview: ResourcePoolStatusRequestStatus,
    },
    /// The request has failed, because a list of objects could not be read. The status has a `Failed` condition and is
    /// final.
    Failed(ResourcePoolStatusRequestStatus),
}

impl RequestOutcome {
    /// Returns the status to write; `None` if the request must stay pending.
    ///
    /// ```
    /// use poolstatus::{InputKind, RequestOutcome};
    /// let failed = RequestOutcome::from_list_error(InputKind::ResourceSlices, "timeout", "2026-11-21T12:00:00Z".parse()?);
    /// let conditions = failed.status().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    /// assert_eq!(conditions[0].message, "Failed to list ResourceSlices: timeout");
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub const fn status(&self) -> Option<&ResourcePoolStatusRequestStatus> {
        match self {
            Self::Ready(status) | Self::Failed(status) => Some(status),
            Self::Incomplete { .. } => None,
        }
    }

    /// Builds the outcome of a request that failed because the objects of one kind could not be listed.
    ///
    /// Nothing else makes a request fail: inconsistent objects are reported in a status. The KEP's form has no failure, so
    /// that a request in that form stays pending.
    #[must_use]
    pub fn from_list_error(input: InputKind, reason: &str, now: Timestamp) -> Self {
        let message = format!("Failed to list {}: {reason}", input.name());
        Self::Failed(ResourcePoolStatusRequestStatus {
            conditions: Some(vec![true_condition("Failed", "CalculationFailed", message, now)]),
            pool_count: 0,
            pools: None,
        })
    }
}

/// Kind of objects from which a status is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InputKind {
    /// `ResourceSlice`s.
    ResourceSlices,
    /// `ResourceClaim`s of all namespaces.
    ResourceClaims,
    /// `DeviceTaintRule`s.
    DeviceTaintRules,
}

impl InputKind {
    /// Returns the name of the kind, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResourceSlices => "ResourceSlices",
            Self::ResourceClaims => "ResourceClaims",
            Self::DeviceTaintRules => "DeviceTaintRules",
        }
    }
}
