//! State machine of a pod from pending to bound, by its nomination (KEP-5278, Confusing semantics of
//! `NominatedNodeName`).
//!
//! The API shows less than the scheduler knows: a pod that waits for victims and a pod that waits for its binding both
//! have a nomination.

use std::fmt;

use serde::Serialize;

use crate::pod::{PodPlacement, PodSnapshot};

/// State of a pod from pending to bound or deleted, by its nomination.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NominationState {
    /// The pod waits, without a nomination.
    #[default]
    Pending,
    /// The scheduler has chosen victims on a node and nominated the pod to it.
    NominatedPreempting {
        /// Node of the victims, to which the pod is nominated.
        node: String,
    },
    /// The pod has a nomination that comes from another component or from before a restart of the scheduler.
    NominatedHint {
        /// Node to which the pod is nominated.
        node: String,
    },
    /// The pod is assumed on a node, which the scheduler does not write to `nominatedNodeName`.
    AssumedQuiet {
        /// Node on which the pod is assumed.
        node: String,
    },
    /// The pod is assumed on a node, which the scheduler has written to `nominatedNodeName`; the binding cycle runs.
    AssumedAnnounced {
        /// Node on which the pod is assumed.
        node: String,
    },
    /// The pod is bound.
    Bound {
        /// Node to which the pod is bound.
        node: String,
    },
    /// The pod was deleted, has succeeded or has failed.
    Gone,
}

/// Event that may change the [`NominationState`] of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NominationEvent {
    /// A scheduling cycle found no node that fits now, but chose victims on a node.
    CycleNominated {
        /// Node of the chosen victims.
        node: String,
    },
    /// A scheduling cycle found no node and cleared the nomination.
    CycleCleared,
    /// A scheduling cycle found no node and left the nomination unchanged.
    CycleKept {
        /// Value of `status.nominatedNodeName`.
        status: Option<String>,
    },
    /// A scheduling cycle chose a node, whose name is not written to `nominatedNodeName`.
    AssumedQuietly {
        /// Node that the cycle chose.
        node: String,
    },
    /// A scheduling cycle chose a node that is written, or was already written, to `nominatedNodeName`.
    AssumedAndAnnounced {
        /// Node that the cycle chose.
        node: String,
    },
    /// The API server accepted the binding.
    Bound,
    /// The binding cycle failed, and the pod's nomination is cleared.
    BindingFailed,
    /// The pod is gone.
    Deleted,
    /// Another component has bound the pod.
    BoundByOther {
        /// Node to which the pod was bound.
        node: String,
    },
    /// The watch showed a new status of the pod ([`Nominator::update`](super::Nominator::update)).
    StatusUpdated {
        /// Nomination in the scheduler's memory after the update.
        memory: Option<String>,
    },
}

/// Error of an event that can't happen to a pod in its current state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event} is not possible for a pod that is {state}")]
#[non_exhaustive]
pub struct TransitionError {
    /// State of the pod before the event.
    pub(crate) state: NominationState,
    /// Event that is not possible in the state.
    pub(crate) event: NominationEvent,
}

impl NominationState {
    /// Returns the state of a pod that a scheduler infers from the pod object when it starts.
    ///
    /// ```
    /// use nnn::{NominationState, PodSnapshot};
    /// let pod = PodSnapshot::pending("default", "web").with_nomination("node-1");
    /// assert_eq!(NominationState::from_pod(&pod), NominationState::NominatedHint { node: "node-1".to_owned() });
    /// ```
    #[must_use]
    pub fn from_pod(pod: &PodSnapshot) -> Self {
        match pod.placement() {
            PodPlacement::Bound(node) => Self::Bound { node: node.to_owned() },
            PodPlacement::Nominated(node) if !pod.gated => Self::NominatedHint { node: node.to_owned() },
            _ => Self::Pending,
        }
    }

    /// Returns the state after an event. A bound pod can only be deleted; a deleted pod stays deleted.
    ///
    /// # Errors
    /// The event can't happen in this state.
    pub(crate) fn next(&self, event: &NominationEvent) -> Result<Self, TransitionError> {
        let next = match self {
            Self::Pending | Self::NominatedPreempting { .. } | Self::NominatedHint { .. } => self.next_waiting(event),
            Self::AssumedQuiet { node } | Self::AssumedAnnounced { node } => Self::next_assumed(node, event),
            Self::Bound { .. } => (*event == NominationEvent::Deleted).then_some(Self::Gone),
            Self::Gone => None,
        };
        next.ok_or_else(|| TransitionError { state: self.clone(), event: event.clone() })
    }

    fn next_waiting(&self, event: &NominationEvent) -> Option<Self> {
        Some(match event {
            NominationEvent::CycleNominated { node } => Self::NominatedPreempting { node: node.clone() },
            NominationEvent::CycleCleared => Self::Pending,
            NominationEvent::CycleKept { status: nomination }
            | NominationEvent::StatusUpdated { memory: nomination } => self.following(nomination.as_deref()),
            NominationEvent::AssumedQuietly { node } => Self::AssumedQuiet { node: node.clone() },
            NominationEvent::AssumedAndAnnounced { node } => Self::AssumedAnnounced { node: node.clone() },
            NominationEvent::Deleted => Self::Gone,
            NominationEvent::BoundByOther { node } => Self::Bound { node: node.clone() },
            _ => return None,
        })
    }

    fn next_assumed(node: &str, event: &NominationEvent) -> Option<Self> {
        Some(match event {
            NominationEvent::Bound => Self::Bound { node: node.to_owned() },
            NominationEvent::BindingFailed => Self::Pending,
            NominationEvent::Deleted => Self::Gone,
            NominationEvent::BoundByOther { node } => Self::Bound { node: node.clone() },
            _ => return None,
        })
    }

    /// Returns the state of a waiting pod after its nomination became `nomination`; unchanged if the node did not
    /// change.
    fn following(&self, nomination: Option<&str>) -> Self {
        match nomination {
            None => Self::Pending,
            Some(node) if self.node() == Some(node) => self.clone(),
            Some(node) => Self::NominatedHint { node: node.to_owned() },
        }
    }

    /// Returns the node to which the pod is nominated, assumed or bound.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Pending | Self::Gone => None,
            Self::NominatedPreempting { node }
            | Self::NominatedHint { node }
            | Self::AssumedQuiet { node }
            | Self::AssumedAnnounced { node }
            | Self::Bound { node } => Some(node),
        }
    }

    /// Returns true if the pod is not assumed, bound or deleted.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self, Self::Pending | Self::NominatedPreempting { .. } | Self::NominatedHint { .. })
    }

    /// Returns true if the pod is assumed: the scheduler has chosen a node, and the pod is not bound yet.
    #[must_use]
    pub const fn is_assumed(&self) -> bool {
        matches!(self, Self::AssumedQuiet { .. } | Self::AssumedAnnounced { .. })
    }
}

impl fmt::Display for NominationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Pending => "pending",
            Self::NominatedPreempting { .. } => "nominated and waiting for victims",
            Self::NominatedHint { .. } => "nominated by a hint",
            Self::AssumedQuiet { .. } => "assumed",
            Self::AssumedAnnounced { .. } => "assumed and announced",
            Self::Bound { .. } => "bound",
            Self::Gone => "gone",
        };
        match self.node() {
            Some(node) => write!(f, "{name} ({node})"),
            None => f.write_str(name),
        }
    }
}

impl fmt::Display for NominationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CycleNominated { .. } => "a cycle that chooses victims",
            Self::CycleCleared => "a cycle that clears the nomination",
            Self::CycleKept { .. } => "a cycle that keeps the nomination",
            Self::AssumedQuietly { .. } => "a cycle that chooses a node",
            Self::AssumedAndAnnounced { .. } => "a cycle that announces a node",
            Self::Bound => "a binding",
            Self::BindingFailed => "a failed binding cycle",
            Self::Deleted => "a deletion",
            Self::BoundByOther { .. } => "a binding by somebody else",
            Self::StatusUpdated { .. } => "an update of the status",
        })
    }
}

#[cfg(test)]
mod tests;
