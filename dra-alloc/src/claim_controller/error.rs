//! Reasons why work on a key ends.

use dra_device::claims::{ClaimKey, PodClaimError};

use crate::pods::{ClaimFullError, ConsumerError, GroupClaimError, OwnerError};

/// Reason why the claim of an entry can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimMakingError {
    /// The name of a pod's claim can't be determined.
    #[error("checking for claim before creating it: {0}")]
    Name(#[source] PodClaimError),
    /// The name of a group's claim can't be determined.
    #[error("checking for claim before creating it: {0}")]
    GroupName(#[source] GroupClaimError),
    /// The consumer of the claim can't be determined.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// The pod's group does not exist.
    #[error("podgroup.scheduling.k8s.io {group:?} not found")]
    GroupNotFound {
        /// Name of the group.
        group: String,
    },
    /// The template does not exist.
    #[error("resource claim template {template:?}: resourceclaimtemplate.resource.k8s.io {template:?} not found")]
    TemplateNotFound {
        /// Name of the template.
        template: String,
    },
    /// The template asks for admin access, but the gate `DRAAdminAccess` is off.
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccessOff,
    /// The template has subrequests, but the gate `DRAPrioritizedList` is off.
    #[error("template includes a prioritized list of subrequests, but the feature is disabled")]
    PrioritizedListOff,
    /// The API server refused the claim.
    #[error("create ResourceClaim : {text}")]
    Refused {
        /// Text of the server.
        text: String,
    },
}

/// Reason why the work on a key has ended. The caller puts the key back into its queue, with a delay that grows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The claim of an entry can't be made. See [`SyncError::event`].
    #[error("{owner}, {entry}: {error}")]
    NotMade {
        /// Kind, namespace and name of the pod or pod group.
        owner: String,
        /// Kind and name of the entry.
        entry: String,
        /// Reason.
        #[source]
        error: ClaimMakingError,
    },
    /// The names of claims could not be recorded.
    #[error("update {owner} ResourceClaimStatuses: {text}")]
    NotRecorded {
        /// Kind, namespace and name of the pod or pod group.
        owner: String,
        /// Text of the server.
        text: String,
    },
    /// The name of a claim of a pod on a node can't be determined, or was recorded only now.
    #[error(transparent)]
    Name(#[from] PodClaimError),
    /// A claim of a pod on a node was not created for it.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The consumer of a claim can't be determined.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// A claim can't be reserved for one more pod.
    #[error("reserve claim {claim} for pod: {full}")]
    Full {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Reason.
        #[source]
        full: ClaimFullError,
    },
    /// A claim could not be reserved.
    #[error("reserve claim {claim} for pod: {text}")]
    NotReserved {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Text of the server.
        text: String,
    },
    /// A claim could not be deleted.
    #[error("delete claim {claim}: {text}")]
    NotDeleted {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Text of the server.
        text: String,
    },
    /// Another call failed.
    #[error("{text}")]
    Call {
        /// Text of the server.
        text: String,
    },
}

impl SyncError {
    /// Reason of the warning event about a claim that can't be made.
    pub const EVENT_REASON: &str = "FailedResourceClaimCreation";

    /// Returns the message of a warning event about the pod or group; `None` if there is none.
    #[must_use]
    pub fn event(&self) -> Option<String> {
        match self {
            Self::NotMade { entry, error, .. } => Some(format!("{entry}: {error}")),
            _ => None,
        }
    }
}
