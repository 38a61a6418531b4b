//! Writes to the API server, as values, and the answers to them.

use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::{Pod, PodExtendedResourceClaimStatus};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

/// Number of times that a claim is written before conflicts are an error.
pub(super) const ATTEMPTS: u32 = 5;

/// A call to the API server for the caller to make, with the object's `resourceVersion` as precondition of an update.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClaimWrite {
    /// Updates the metadata of a claim.
    Update {
        /// The claim as it shall be.
        claim: Box<ResourceClaim>,
    },
    /// Updates the status of a claim.
    UpdateStatus {
        /// The claim as it shall be.
        claim: Box<ResourceClaim>,
    },
    /// Removes one entry of a claim's `status.reservedFor`, by a strategic merge patch of the status.
    PatchReservation {
        /// Namespace of the claim.
        namespace: String,
        /// Name of the claim.
        name: String,
        /// UID of the claim, the precondition of the patch.
        uid: String,
        /// UID of the pod or group that is removed.
        consumer: String,
    },
    /// Creates the claim for the extended resources of a pod (KEP-5004). The API server completes its name from
    /// `metadata.generateName`, and answers with the claim.
    Create {
        /// The claim as it shall be.
        claim: Box<ResourceClaim>,
    },
    /// Deletes a claim, with its UID as precondition.
    Delete {
        /// Namespace of the claim.
        namespace: String,
        /// Name of the claim.
        name: String,
        /// UID of the claim.
        uid: String,
    },
    /// Writes the claim for extended resources into a pod's status, by a strategic merge patch of the status.
    PatchPodStatus {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// The claim, and the requests that serve the containers.
        extended_resource_claim: Box<PodExtendedResourceClaimStatus>,
    },
    /// Reads a claim anew.
    Get {
        /// Namespace of the claim.
        namespace: String,
        /// Name of the claim.
        name: String,
    },
}

impl ClaimWrite {
    /// Finalizer that keeps an allocated claim from being removed.
    pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

    /// Returns the body of a patch; `None` for other calls.
    ///
    /// ```
    /// use dra_alloc::pods::ClaimWrite;
    /// let [namespace, name, uid, consumer] = ["ns", "c", "c-uid", "p-uid"].map(str::to_owned);
    /// let patch = ClaimWrite::PatchReservation { namespace, name, uid, consumer }.patch().unwrap();
    /// assert_eq!(patch["status"]["reservedFor"][0]["$patch"], "delete");
    /// ```
    #[must_use]
    pub fn patch(&self) -> Option<Value> {
        match self {
            Self::PatchReservation { uid, consumer, .. } => {
                let entry = json!({"$patch": "delete", "uid": consumer});
                Some(json!({"metadata": {"uid": uid}, "status": {"reservedFor": [entry]}}))
            }
            Self::PatchPodStatus { extended_resource_claim, .. } => {
                Some(json!({"status": {"extendedResourceClaimStatus": extended_resource_claim}}))
            }
            _ => None,
        }
    }

    /// Returns namespace and name of the claim that the call is about; `None` for a claim without a name yet, and for a pod.
    pub(super) fn claim(&self) -> Option<ClaimKey> {
        match self {
            Self::Update { claim } | Self::UpdateStatus { claim } => Some(ClaimKey::from_metadata(&claim.metadata)),
            Self::PatchReservation { namespace, name, .. }
            | Self::Delete { namespace, name, .. }
            | Self::Get { namespace, name } => Some(ClaimKey::new(namespace, name)),
            Self::Create { .. } | Self::PatchPodStatus { .. } => None,
        }
    }

    pub(super) fn remove_consumer(claim: &ResourceClaim, consumer: &str) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let metadata = &claim.metadata;
        Self::PatchReservation {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            consumer: consumer.to_owned(),
        }
    }
}

/// Answer of the API server to a [`ClaimWrite`], or to a [`BindingRequest`](super::BindingRequest).
///
/// A write without an answer may have been stored. Say [`Lost`](Self::Lost): the claim is read, and the binding goes on from what
/// is stored. [`Conflict`](Self::Conflict) and [`Unavailable`](Self::Unavailable) are as safe, since the claim is read
/// after them as well; [`Failed`](Self::Failed) is not: say it only where the server itself has refused the call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ApiResponse {
    /// The claim as it is stored now.
    Object(Box<ResourceClaim>),
    /// The pod as it is stored now, in the answer to a call about a pod.
    Pod(Box<Pod>),
    /// The call has succeeded, and the answer shows no object, or the object is gone. As the answer to a call that reads:
    /// there is no such object.
    Done,
    /// The object has changed since it was read. The text is the server's.
    Conflict(String),
    /// Nobody knows if the call was carried out: there was no answer, or it was cut off. The text says what was missed.
    Lost(String),
    /// The server could not handle the call: an internal error, a gateway's timeout, service unavailable. It may have been
    /// carried out nevertheless. The text is the server's.
    Unavailable(String),
    /// The server has refused the call, which was not carried out. The text is the server's.
    Failed(String),
}
