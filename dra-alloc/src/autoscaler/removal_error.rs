//! Reasons why nodes can't go.

use dra_device::DeviceId;
use dra_device::claims::ClaimKey;

use super::placing::PlacementError;
use crate::cluster::state::{ClaimId, StateError};
use crate::pods::PodIdentity;

/// Reason why nodes can't go.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RemovalError {
    /// There is no such node.
    #[error("node {node:?} not found")]
    NodeNotFound {
        /// Name of the node.
        node: String,
    },
    /// A pod of the nodes finds no place on the nodes that stay.
    #[error("pod {}/{} on node {node}: {reason}", pod.namespace, pod.name)]
    NoPlace {
        /// The pod.
        pod: PodIdentity,
        /// Node that it would leave.
        node: String,
        /// Reason why it has no place.
        #[source]
        reason: PlacementError,
    },
    /// A claim that stays holds a device of the nodes: another pod's, or one with an allocation in flight.
    #[error("claim {claim}, which stays, holds device {device}")]
    DeviceHeld {
        /// The claim.
        claim: ClaimId,
        /// The device.
        device: DeviceId,
    },
    /// A claim would stay allocated for nodes of which none is left.
    #[error("claim {claim}, which stays, is allocated for none of the nodes that stay")]
    ClaimStranded {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// A pod that stays uses a claim that goes with its owner.
    #[error("claim {claim} goes with the pod that owns it, but others use it")]
    OwnedClaimShared {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The allocation of a claim can't be read.
    #[error(transparent)]
    State(#[from] StateError),
}
