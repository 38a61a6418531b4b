//! Errors of prepare and unprepare, with kubelet's messages.

use dra_device::claims::PodClaimError;

use super::operation::Operation;

const PREPARE_PREFIX: &str = "prepare dynamic resources: ";
const UNPREPARE_PREFIX: &str = "unprepare dynamic resources: ";

/// Reason why the response of a driver is not a success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The gRPC call itself failed.
    #[error("{}: {message}", operation.method())]
    Failed {
        /// Operation of the failed call.
        operation: Operation,
        /// Error message of the call.
        message: String,
    },
    /// The response has a result for a claim that was not in the request.
    #[error("{} returned result for unknown claim UID {uid}", operation.method())]
    UnknownClaim {
        /// Operation of the call.
        operation: Operation,
        /// UID of the unknown claim.
        uid: String,
    },
    /// The driver reports an error for a claim.
    #[error("{} failed for ResourceClaim {claim}: {message}", operation.method())]
    Claim {
        /// Operation of the call.
        operation: Operation,
        /// Name of the claim.
        claim: String,
        /// Error message of the driver.
        message: String,
    },
    /// The response has more devices for a claim than the driver can have prepared. Kubelet stores any number.
    #[error(
        "{} failed for ResourceClaim {claim}: driver {driver} returned {devices} devices for {allocated} allocated, which \
         is more than {most}", operation.method()
    )]
    TooManyDevices {
        /// Operation of the call.
        operation: Operation,
        /// Name of the driver.
        driver: String,
        /// Name of the claim.
        claim: String,
        /// Number of devices in the response.
        devices: usize,
        /// Number of devices of the driver that are allocated to the claim.
        allocated: usize,
        /// Largest number of devices that is accepted.
        most: usize,
    },
    /// The response has no result for some claims.
    #[error("{} skipped {claims} ResourceClaims", operation.method())]
    Missing {
        /// Operation of the call.
        operation: Operation,
        /// Number of claims without a result.
        claims: usize,
    },
    /// The claim was removed from the cache, or replaced by another claim of the same name.
    #[error("internal error: unable to get claim info for ResourceClaim {name} in namespace {namespace}")]
    NoClaimInfo {
        /// Name of the claim.
        name: String,
        /// Namespace of the claim.
        namespace: String,
    },
    /// The caller passed a response of a driver that the plan does not call.
    #[error("{} of driver {driver} is not part of the plan", operation.method())]
    NotCalled {
        /// Operation of the plan.
        operation: Operation,
        /// Name of the driver.
        driver: String,
    },
    /// The operation can't be finished, because a driver has not yet responded successfully.
    #[error("{} of driver {driver} has not been answered", operation.method())]
    NotAnswered {
        /// Operation of the plan.
        operation: Operation,
        /// Name of the driver.
        driver: String,
    },
}

/// Reason why the claims of a pod can't be prepared. The pod does not start; the caller retries later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The name of a claim of the pod can't be determined.
    #[error("{}{source}", PREPARE_PREFIX)]
    PodClaim {
        /// Reason why the name can't be determined.
        #[from]
        source: PodClaimError,
    },
    /// The claim of the pod is missing in the claims that the caller read from the API server.
    #[error("{}fetch ResourceClaim {claim}: resourceclaims.resource.k8s.io {claim:?} not found", PREPARE_PREFIX)]
    NotFound {
        /// Name of the claim.
        claim: String,
    },
    /// The claim was created from a template, but for another pod.
    #[error("{}ResourceClaim {claim} was not created for Pod {pod} ({owners})", PREPARE_PREFIX)]
    NotOwner {
        /// Namespace and name of the claim.
        claim: String,
        /// Namespace and name of the pod.
        pod: String,
        /// Text of the problem: `Pod is not owner`, or `neither Pod nor PodGroup … is the owner`.
        owners: String,
    },
    /// The claim is not reserved for the pod.
    #[error("{}pod {pod} ({pod_uid}) is not allowed to use ResourceClaim {claim} ({claim_uid})", PREPARE_PREFIX)]
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
    /// The claim is not allocated.
    #[error("{}ResourceClaim {claim}: not allocated", PREPARE_PREFIX)]
    NotAllocated {
        /// Name of the claim.
        claim: String,
    },
    /// A device of the claim skips node operations, but the gate [`dra_attrs::Gate::OptionalNodeOperations`] is off
    /// (message of Kubernetes 1.37).
    #[error("{}ResourceClaim {claim}: {gate} feature gate is disabled on kubelet", PREPARE_PREFIX)]
    GateDisabled {
        /// Name of the claim.
        claim: String,
        /// Name of the feature gate.
        gate: &'static str,
    },
    /// A device of the claim skips node operations, but the gate [`dra_attrs::Gate::OptionalNodeOperations`] is off
    /// (message of KEP-5945).
    #[error(
        "{}ResourceClaim {claim}: {gate}Disabled: driver {driver} skips node operations for pod {pod}, and the feature gate \
         {gate} is disabled on the kubelet",
        PREPARE_PREFIX
    )]
    PreparationDisabled {
        /// Name of the claim.
        claim: String,
        /// Name of the feature gate.
        gate: &'static str,
        /// Name of the device's driver.
        driver: String,
        /// Namespace and name of the pod.
        pod: String,
    },
    /// A driver that must be called is not registered on the node.
    #[error("{}DRA driver {driver} is not registered", PREPARE_PREFIX)]
    NotRegistered {
        /// Name of the driver.
        driver: String,
    },
    /// A device of the claim has an empty driver name.
    #[error("{}DRA driver name is empty", PREPARE_PREFIX)]
    NoDriverName,
    /// An older claim of the same name, with another UID, is still in the cache, because it has not been unprepared.
    #[error(
        "{}old ResourceClaim with same name {claim} and different UID {old_uid} still exists (previous pod \
         force-deleted?!)",
        PREPARE_PREFIX
    )]
    OldClaim {
        /// Name of the claim.
        claim: String,
        /// UID of the old claim.
        old_uid: String,
    },
    /// The claim is being unprepared for its last pod, and can be prepared again after that has succeeded.
    #[error("{}ResourceClaim {claim}: still being unprepared for another pod", PREPARE_PREFIX)]
    Unpreparing {
        /// Name of the claim.
        claim: String,
    },
    /// A call of a driver was not successful.
    #[error("{}{source}", PREPARE_PREFIX)]
    Call {
        /// Reason why the call was not successful.
        #[from]
        source: CallError,
    },
}

impl PrepareError {
    /// Reason of the event that a kubelet records when prepare fails.
    pub const EVENT_REASON: &str = "FailedPrepareDynamicResources";
}

/// Reason why the claims of a pod can't be unprepared. The pod keeps its claims; the caller retries later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnprepareError {
    /// The cache has no claim of the pod, and the name of one of the pod's claims can't be determined.
    #[error("{}{source}", UNPREPARE_PREFIX)]
    PodClaim {
        /// Reason why the name can't be determined.
        #[from]
        source: PodClaimError,
    },
    /// A driver that must be called is not registered on the node.
    #[error("{}DRA driver {driver} is not registered", UNPREPARE_PREFIX)]
    NotRegistered {
        /// Name of the driver.
        driver: String,
    },
    /// A device of the claim has an empty driver name.
    #[error("{}DRA driver name is empty", UNPREPARE_PREFIX)]
    NoDriverName,
    /// A call of a driver was not successful.
    #[error("{}{source}", UNPREPARE_PREFIX)]
    Call {
        /// Reason why the call was not successful.
        #[from]
        source: CallError,
    },
}
