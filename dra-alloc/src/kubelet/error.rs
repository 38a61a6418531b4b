//! Why an operation on a pod's claims ends. The texts are kubelet's.

use super::plan::Operation;
use super::pod_claims::PodClaimError;

const PREPARE: &str = "prepare dynamic resources: ";
const UNPREPARE: &str = "unprepare dynamic resources: ";

/// What is wrong with the answer of a driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call failed.
    #[error("{}: {message}", operation.method())]
    Failed {
        /// The call.
        operation: Operation,
        /// Why.
        message: String,
    },
    /// The response names a claim that was not asked about.
    #[error("{} returned result for unknown claim UID {uid}", operation.method())]
    UnknownClaim {
        /// The call.
        operation: Operation,
        /// The UID in the response.
        uid: String,
    },
    /// The driver failed for a claim.
    #[error("{} failed for ResourceClaim {claim}: {message}", operation.method())]
    Claim {
        /// The call.
        operation: Operation,
        /// Name of the claim.
        claim: String,
        /// The driver's words.
        message: String,
    },
    /// The response does not name every claim.
    #[error("{} skipped {claims} ResourceClaims", operation.method())]
    Missing {
        /// The call.
        operation: Operation,
        /// How many claims have no answer.
        claims: usize,
    },
    /// The claim has gone from the cache, or has been replaced.
    #[error("internal error: unable to get claim info for ResourceClaim {name} in namespace {namespace}")]
    NoClaimInfo {
        /// Name of the claim.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The plan has no call to the driver.
    #[error("{} of driver {driver} is not part of the plan", operation.method())]
    NotCalled {
        /// The call.
        operation: Operation,
        /// The driver.
        driver: String,
    },
    /// The operation can't end, since a driver has not answered well.
    #[error("{} of driver {driver} has not been answered", operation.method())]
    NotAnswered {
        /// The call.
        operation: Operation,
        /// The driver.
        driver: String,
    },
}

/// Why the claims of a pod are not prepared. The pod does not start; the caller tries again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The name of a claim is not known.
    #[error("{}{error}", PREPARE)]
    PodClaim {
        /// Why.
        error: PodClaimError,
    },
    /// The API server does not have the claim.
    #[error("{}fetch ResourceClaim {claim}: resourceclaims.resource.k8s.io {claim:?} not found", PREPARE)]
    NotFound {
        /// Name of the claim.
        claim: String,
    },
    /// The claim was made from a template, and not for this pod.
    #[error("{}ResourceClaim {claim} was not created for Pod {pod} ({owners})", PREPARE)]
    NotOwner {
        /// Namespace and name of the claim.
        claim: String,
        /// Namespace and name of the pod.
        pod: String,
        /// Who could have been the owner: the pod, or its group as well.
        owners: String,
    },
    /// The claim is not reserved for the pod.
    #[error("{}pod {pod} ({pod_uid}) is not allowed to use ResourceClaim {claim} ({claim_uid})", PREPARE)]
    NotReserved {
        /// Name of the pod.
        pod: String,
        /// UID of the pod.
        pod_uid: String,
        /// Name of the claim.
        claim: String,
        /// UID of the claim.
        claim_uid: String,
    },
    /// The claim has no devices yet.
    #[error("{}ResourceClaim {claim}: not allocated", PREPARE)]
    NotAllocated {
        /// Name of the claim.
        claim: String,
    },
    /// A device skips operations, and the gate of the kubelet is off (Kubernetes 1.37).
    #[error("{}ResourceClaim {claim}: {gate} feature gate is disabled on kubelet", PREPARE)]
    GateDisabled {
        /// Name of the claim.
        claim: String,
        /// The gate.
        gate: &'static str,
    },
    /// A device skips operations, and the gate of the kubelet is off (KEP-5945).
    #[error(
        "{}ResourceClaim {claim}: {gate}Disabled: driver {driver} skips node operations for pod {pod}, and the feature gate \
         {gate} is disabled on the kubelet",
        PREPARE
    )]
    PreparationDisabled {
        /// Name of the claim.
        claim: String,
        /// The gate.
        gate: &'static str,
        /// The driver of the device.
        driver: String,
        /// Namespace and name of the pod.
        pod: String,
    },
    /// A driver that must be called is not there.
    #[error("{}DRA driver {driver} is not registered", PREPARE)]
    NotRegistered {
        /// The driver.
        driver: String,
    },
    /// A device of the claim has no driver.
    #[error("{}DRA driver name is empty", PREPARE)]
    NoDriverName,
    /// A claim of the same name, since replaced, has not been unprepared.
    #[error(
        "{}old ResourceClaim with same name {claim} and different UID {old_uid} still exists (previous pod \
         force-deleted?!)",
        PREPARE
    )]
    OldClaim {
        /// Name of the claim.
        claim: String,
        /// UID of the old claim.
        old_uid: String,
    },
    /// The claim is being taken from its last pod. When that has succeeded it can be prepared anew.
    #[error("{}ResourceClaim {claim}: still being unprepared for another pod", PREPARE)]
    Unpreparing {
        /// Name of the claim.
        claim: String,
    },
    /// A driver's answer is no success.
    #[error("{}{error}", PREPARE)]
    Call {
        /// What is wrong with it.
        error: CallError,
    },
}

/// Why the claims of a pod are not unprepared. The pod stays, with its claims; the caller tries again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnprepareError {
    /// The cache has no claim of the pod, and the name of one is not known.
    #[error("{}{error}", UNPREPARE)]
    PodClaim {
        /// Why.
        error: PodClaimError,
    },
    /// A driver that must be called is not there.
    #[error("{}DRA driver {driver} is not registered", UNPREPARE)]
    NotRegistered {
        /// The driver.
        driver: String,
    },
    /// A device of the claim has no driver.
    #[error("{}DRA driver name is empty", UNPREPARE)]
    NoDriverName,
    /// A driver's answer is no success.
    #[error("{}{error}", UNPREPARE)]
    Call {
        /// What is wrong with it.
        error: CallError,
    },
}

impl From<PodClaimError> for PrepareError {
    fn from(error: PodClaimError) -> Self {
        Self::PodClaim { error }
    }
}

impl From<CallError> for PrepareError {
    fn from(error: CallError) -> Self {
        Self::Call { error }
    }
}

impl From<PodClaimError> for UnprepareError {
    fn from(error: PodClaimError) -> Self {
        Self::PodClaim { error }
    }
}

impl From<CallError> for UnprepareError {
    fn from(error: CallError) -> Self {
        Self::Call { error }
    }
}
