//! Reasons why a gang is not placed.

use dra_attrs::Index;
use k8s_openapi::api::core::v1::Pod;

use super::blocked::BlockedError;
use super::explanation::PodExplanation;
use super::filter::NodeFilterError;
use super::identity::PodIdentity;
use super::reserve::ReserveError;

/// Reason why a gang is not placed. Nothing of it is in flight.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("pod {}/{}: {reason}", pod.namespace, pod.name)]
#[non_exhaustive]
pub struct GangError {
    /// Position of the first pod without a node.
    pub member: Index<Pod>,
    /// That pod.
    pub pod: PodIdentity,
    /// Reason why the pod has no node.
    #[source]
    pub reason: MemberError,
}

/// Reason why one pod of a gang has no node.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// A claim keeps the pod from every node.
    #[error(transparent)]
    Blocked(#[from] BlockedError),
    /// The filter of a node ended the attempt.
    #[error(transparent)]
    Ended(NodeFilterError),
    /// No node fits.
    #[error("{0}")]
    NoNode(Box<PodExplanation>),
    /// The allocations can't be kept in flight.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// All pods have a node, and there are too few of them. The pod is the first one.
    #[error("the gang has {members} pods, of which at least {quorum} have to be placed")]
    TooFew {
        /// Number of pods.
        members: usize,
        /// Number of pods that make the gang.
        quorum: usize,
    },
}
