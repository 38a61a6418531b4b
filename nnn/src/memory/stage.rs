//! Stage of a pod on its way to a node.

use serde::Serialize;

/// Stage of a pod on its way to a node, as a scheduler knows it: what the watch shows, or what it has done itself since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "stage")]
#[non_exhaustive]
pub enum PodStage<'m> {
    /// The pod has no node.
    Waiting,
    /// The pod has no node, and one is promised to it: `status.nominatedNodeName`.
    Nominated {
        /// Promised node.
        node: &'m str,
    },
    /// This scheduler has chosen a node, and nothing is known to be stored yet.
    Assumed {
        /// Chosen node.
        node: &'m str,
    },
    /// This scheduler has sent a binding whose answer was lost: it may be stored. Send the same binding once more.
    InDoubt {
        /// Node of the binding.
        node: &'m str,
    },
    /// The pod is bound.
    Bound {
        /// Node of the pod.
        node: &'m str,
    },
    /// The pod has succeeded or failed, and takes nothing of a node any more.
    Ended,
}

impl<'m> PodStage<'m> {
    /// Returns the node of which the pod takes something: where it is bound, or is going to be.
    #[must_use]
    pub const fn placed_on(self) -> Option<&'m str> {
        match self {
            Self::Assumed { node } | Self::InDoubt { node } | Self::Bound { node } => Some(node),
            Self::Waiting | Self::Nominated { .. } | Self::Ended => None,
        }
    }

    /// Returns true if the pod may be tried: it has no node, and none is on its way.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Waiting | Self::Nominated { .. })
    }
}
