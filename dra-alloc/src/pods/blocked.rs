//! Problems of a pod's claims that keep it from every node.

use dra_attrs::{FieldErrors, QuantityError, Quoted};
use dra_device::claims::{ClaimKey, PodClaimError};

use super::consumer::ConsumerError;
use super::owner::OwnerError;
use super::status_code::StatusCode;

/// Reason why a pod does not enter the queue (`PreEnqueue`) or why no node is tried (`PreFilter`). Displayed in
/// kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockedError {
    /// The name of a claim can't be determined.
    #[error(transparent)]
    Name(#[from] PodClaimError),
    /// The cache has no claim of that name.
    #[error("could not find resource claim \"{claim}\"")]
    NotFound {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The claim is being deleted.
    #[error("resourceclaim {} is being deleted", Quoted(claim))]
    BeingDeleted {
        /// Name of the claim.
        claim: String,
    },
    /// A claim from a template was not created for the pod.
    #[error(transparent)]
    NotOwner(#[from] OwnerError),
    /// The pod's group does not exist.
    #[error("podgroup.scheduling.k8s.io {} not found", Quoted(group))]
    GroupNotFound {
        /// Name of the group.
        group: String,
    },
    /// The consumer of a claim can't be determined.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// The node selector of an allocation can't be read.
    #[error("{problems}")]
    NodeSelector {
        /// Problems of the selector.
        #[source]
        problems: FieldErrors,
    },
    /// Another pod's attempt is about to allocate the claim.
    #[error("resource claim {claim} is in the process of being allocated")]
    InFlight {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// A request of one of the pod's containers is not a quantity.
    #[error("container requests: {source}")]
    Requests {
        /// Reason why the amount is not a quantity.
        source: QuantityError,
    },
    /// A request names no device class.
    #[error("request {request}: unsupported request type")]
    NoClass {
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
    },
    /// A request names a device class that does not exist.
    #[error("request {request}: device class {class} does not exist")]
    ClassNotFound {
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// Name of the device class.
        class: String,
    },
    /// A request has `firstAvailable`, but the gate `DRAPrioritizedList` is off.
    #[error(
        "resource claim {claim}, request {request}: has subrequests, but the DRAPrioritizedList feature is disabled"
    )]
    PrioritizedListOff {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Name of the request.
        request: String,
    },
    /// A request has neither `exactly` nor `firstAvailable`.
    #[error("resource claim {claim}, request {request}: unknown request type")]
    UnknownRequest {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Name of the request.
        request: String,
    },
}

impl BlockedError {
    /// Returns the status of the extension point: `Error` for a claim that no event mends by itself,
    /// `UnschedulableAndUnresolvable` otherwise.
    #[must_use]
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::NodeSelector { .. } | Self::NoClass { .. } | Self::Requests { .. } => StatusCode::Error,
            _ => StatusCode::UnschedulableAndUnresolvable,
        }
    }
}
