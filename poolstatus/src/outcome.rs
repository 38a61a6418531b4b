//! What becomes of a shipped request: its status, another try, or a failure.

use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequestStatus;
use k8s_openapi::jiff::Timestamp;

use crate::report::condition;

/// What becomes of a request in the form that Kubernetes 1.37 ships.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The status to write.
    Ready(ResourcePoolStatusRequestStatus),
    /// Pools that would be listed are incomplete. Nothing is written; the request is tried again, and stays pending if that
    /// does not help.
    Incomplete {
        /// The names of these pools, sorted.
        pools: Vec<String>,
        /// The status as it would be.
        preview: ResourcePoolStatusRequestStatus,
    },
    /// An input could not be read. The status says so and is final.
    Failed(ResourcePoolStatusRequestStatus),
}

impl Outcome {
    /// The status to write, if there is one.
    ///
    /// ```
    /// use poolstatus::outcome::{Input, Outcome};
    /// let failed = Outcome::unreadable(Input::ResourceSlices, "timeout", "2026-11-21T12:00:00Z".parse()?);
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

    /// An input could not be read, for a reason that the caller has.
    ///
    /// Only this makes a request fail; what is wrong about objects is part of an answer. The KEP's form knows no failure:
    /// there the request stays pending.
    #[must_use]
    pub fn unreadable(input: Input, reason: &str, now: Timestamp) -> Self {
        let message = format!("Failed to list {}: {reason}", input.name());
        Self::Failed(ResourcePoolStatusRequestStatus {
            conditions: Some(vec![condition("Failed", "CalculationFailed", message, now)]),
            pool_count: 0,
            pools: None,
        })
    }
}

/// A list of objects that a status is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Input {
    /// The slices.
    ResourceSlices,
    /// The claims, of all namespaces.
    ResourceClaims,
    /// The taint rules.
    DeviceTaintRules,
}

impl Input {
    /// The name of the kind, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResourceSlices => "ResourceSlices",
            Self::ResourceClaims => "ResourceClaims",
            Self::DeviceTaintRules => "DeviceTaintRules",
        }
    }
}
