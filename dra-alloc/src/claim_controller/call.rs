//! Calls to the API server, as values, and the answers to them.

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use serde_json::Value;

use super::queue::QueueKey;

/// Version of the API of pod groups that a cluster serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PodGroupVersion {
    /// `scheduling.k8s.io/v1alpha2` of Kubernetes 1.36.
    V1Alpha2,
    /// `scheduling.k8s.io/v1beta1` of Kubernetes 1.37.
    #[default]
    V1Beta1,
}

impl PodGroupVersion {
    /// Returns the `apiVersion` of pod groups.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1Alpha2 => "scheduling.k8s.io/v1alpha2",
            Self::V1Beta1 => "scheduling.k8s.io/v1beta1",
        }
    }
}

/// A call to the API server for the caller to make. An update has the object's `resourceVersion` as precondition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControllerCall {
    /// Creates a claim, to which the API server gives a name. The caller shows the created claim to the controller at
    /// once, so that it is not made twice.
    CreateClaim {
        /// The claim to create.
        claim: Box<ResourceClaim>,
    },
    /// Records names of claims in the status of a pod or pod group, by a forced server-side apply of
    /// [`ControllerCall::FIELD_MANAGER`].
    RecordClaims {
        /// The pod or pod group.
        owner: QueueKey,
        /// Body of the apply.
        body: Value,
    },
    /// Updates the status of a claim.
    UpdateStatus {
        /// The claim as it shall be.
        claim: Box<ResourceClaim>,
    },
    /// Updates the metadata of a claim.
    Update {
        /// The claim as it shall be.
        claim: Box<ResourceClaim>,
    },
    /// Deletes a claim. The UID is the call's precondition: another claim of the name, made meanwhile, stays.
    DeleteClaim {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// UID of the claim.
        uid: String,
    },
    /// Reads a pod or pod group that the controller does not know, although a claim is reserved for it.
    GetConsumer {
        /// Namespace of the claim and of its consumer.
        namespace: String,
        /// Entry of the claim's `status.reservedFor`.
        consumer: ResourceClaimConsumerReference,
    },
}

impl ControllerCall {
    /// Field manager of the controller.
    pub const FIELD_MANAGER: &str = "ResourceClaimController";
}

/// Answer of the API server to a [`ControllerCall`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ControllerResponse {
    /// The claim as it was created or is stored now.
    Claim(Box<ResourceClaim>),
    /// The UID of a pod or pod group; `None` if there is none of that name.
    Consumer(Option<String>),
    /// The call has been carried out, and the answer tells nothing.
    Done,
    /// An error, a conflict included. The text is the server's.
    Failed(String),
}
