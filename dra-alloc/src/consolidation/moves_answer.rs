//! Answers to the question who has to move.

use super::move_plan::MovePlan;
use crate::autoscaler::PlacementError;
use crate::pods::PodIdentity;

/// Answer to the question who has to move.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are moves or there are none")]
pub enum MovesAnswer {
    /// The pods fit after these moves; without any if they fit as it is.
    Moves(Box<MovePlan>),
    /// No moves help.
    NoMoves(NoMovesError),
}

/// Reason why no moves help.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoMovesError {
    /// The pods need more devices than are free: only fewer pods help, or more nodes.
    #[error("{wanted} devices are wanted, and {free} are free")]
    NotEnough {
        /// Number of free devices on nodes that take pods, of all kinds.
        free: usize,
        /// Number of devices that the pods need at least.
        wanted: usize,
    },
    /// The pods fit on no node, whoever leaves.
    #[error("the pods fit on no node, whoever leaves")]
    Hopeless,
    /// Pods that must not move are in the way: by the rules, or since they belong to their node, as those of daemon sets.
    #[error("{} pods that must not move are in the way", by.len())]
    Pinned {
        /// Those pods, of each node where the pods would fit without them.
        by: Vec<PodIdentity>,
    },
    /// The pods would fit, but those that would have to move find no place within the number of moves that the rules allow.
    #[error("pod {}/{} finds no other place", pod.namespace, pod.name)]
    NoPlace {
        /// A pod that would have to move: the one with the most devices, of the cheapest set.
        pod: PodIdentity,
        /// Reason why no node has a place for it as it is; `None` if it has a place, and others take it.
        reason: Option<Box<PlacementError>>,
    },
    /// Something about a pod keeps it from all nodes.
    #[error("pod {}/{}: {reason}", pod.namespace, pod.name)]
    Blocked {
        /// The pod.
        pod: PodIdentity,
        /// The reason.
        #[source]
        reason: Box<PlacementError>,
    },
    /// A pod asks for extended resources, which become another claim on each node. This search does not know them.
    #[error("pod {}/{} asks for extended resources", pod.namespace, pod.name)]
    ExtendedResources {
        /// The pod.
        pod: PodIdentity,
    },
    /// The budget is used up, and no moves were found so far.
    #[error("the search was stopped")]
    Stopped,
}
