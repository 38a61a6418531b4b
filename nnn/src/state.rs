//! The states of a pod on its way to a node, and the only ways between them (KEP-5278, Confusing semantics of
//! `NominatedNodeName`).
//!
//! The API shows less than a scheduler knows: a pod that waits for victims and one that waits for its binding look the
//! same there ([`State::placement`]). Both mean "planned for this node".

use std::fmt;

use serde::Serialize;

use crate::pod::{Placement, PodView};

/// Where a pod is on its way to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Waiting, without a nomination.
    #[default]
    Pending,
    /// The scheduler has chosen victims on a node.
    NominatedPreempting {
        /// The node.
        node: String,
    },
    /// The pod has a nomination that this scheduler did not make for a preemption: somebody else's, or an earlier
    /// scheduler's.
    NominatedHint {
        /// The node.
        node: String,
    },
    /// The scheduler has chosen a node and announces nothing.
    AssumedQuiet {
        /// The node.
        node: String,
    },
    /// The scheduler has chosen a node, announced it, and waits or works towards the binding.
    AssumedAnnounced {
        /// The node.
        node: String,
    },
    /// Bound.
    Bound {
        /// The node.
        node: String,
    },
    /// Deleted, or ended: it has succeeded or failed.
    Gone,
}

/// A way from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum Transition {
    /// No node fits, victims were chosen.
    Preempts,
    /// No node fits, the nomination is cleared.
    FailsAndClears,
    /// No node fits, the nomination stays.
    FailsAndKeeps,
    /// A node was chosen; nothing is announced.
    AssumesQuietly,
    /// A node was chosen and is announced.
    AssumesAndAnnounces,
    /// Bound.
    Binds,
    /// The binding cycle failed, the nomination is cleared.
    BindingFails,
    /// The binding cycle failed, the nomination stays.
    BindingFailsAndKeeps,
    /// Deleted while assumed.
    DeletedWhileAssumed,
    /// Deleted.
    Deleted,
    /// Bound by somebody else.
    BoundByOther,
    /// The status was updated.
    StatusUpdated,
    /// The scheduler started anew.
    Restarted,
    /// The nominated node is gone.
    NodeDeleted,
}

/// What happens to a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A cycle found no node, but victims on this one.
    CycleNominated {
        /// The node.
        node: String,
    },
    /// A cycle found no node, and the nomination ends.
    CycleCleared,
    /// A cycle found no node and says nothing about the nomination, so that memory follows the status.
    CycleKept {
        /// The nomination in the status.
        status: Option<String>,
    },
    /// A cycle chose a node, and nothing is announced.
    AssumedQuietly {
        /// The node.
        node: String,
    },
    /// A cycle chose a node, and it is announced, or has been.
    AssumedAndAnnounced {
        /// The node.
        node: String,
    },
    /// The binding was accepted.
    Bound,
    /// The binding cycle failed, and the nomination ends.
    BindingFailed,
    /// The binding cycle failed, and the nomination to its node stays.
    BindingFailedKept,
    /// The pod is being deleted.
    DeletionStarted,
    /// The pod is gone.
    Deleted,
    /// Somebody else has bound the pod.
    BoundByOther {
        /// The node.
        node: String,
    },
    /// The status was updated; the nomination that memory has now ([`crate::nominator::Nominator::update`]).
    StatusUpdated {
        /// The node.
        memory: Option<String>,
    },
    /// The scheduler has started anew and reads the status.
    Restarted {
        /// The nomination in the status.
        status: Option<String>,
    },
    /// The nominated node is gone. The reservation stays by name.
    NodeDeleted,
}

/// An event that can't happen in a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event} is not possible for a pod that is {state}")]
#[non_exhaustive]
pub struct IllegalTransition {
    /// The state.
    pub state: State,
    /// The event.
    pub event: Event,
}

impl State {
    /// What a scheduler that starts now makes of a pod.
    ///
    /// ```
    /// use nnn::pod::PodView;
    /// use nnn::state::State;
    /// let pod = PodView::pending("default", "web").nominated_to("node-1");
    /// assert_eq!(State::of(&pod), State::NominatedHint { node: "node-1".to_owned() });
    /// ```
    #[must_use]
    pub fn of(pod: &PodView) -> Self {
        match pod.placement() {
            Placement::Bound(node) => Self::Bound { node: node.to_owned() },
            Placement::Nominated(node) => Self::NominatedHint { node: node.to_owned() },
            Placement::None => Self::Pending,
        }
    }

    /// The state after an event, and the way that was taken. A bound pod can only be deleted; one that is gone stays so.
    ///
    /// # Errors
    /// The event is not one that can happen in this state.
    ///
    /// ```
    /// use nnn::state::{Event, State, Transition};
    /// let node = || "node-1".to_owned();
    /// let (state, way) = State::Pending.next(&Event::AssumedAndAnnounced { node: node() })?;
    /// assert_eq!((state, way), (State::AssumedAnnounced { node: node() }, Transition::AssumesAndAnnounces));
    /// assert!(State::Bound { node: node() }.next(&Event::CycleCleared).is_err());
    /// # Ok::<(), nnn::state::IllegalTransition>(())
    /// ```
    pub fn next(&self, event: &Event) -> Result<(Self, Transition), IllegalTransition> {
        let next = match self {
            Self::Pending | Self::NominatedPreempting { .. } | Self::NominatedHint { .. } => self.of_waiting(event),
            Self::AssumedQuiet { node } | Self::AssumedAnnounced { node } => self.of_assumed(node, event),
            Self::Bound { .. } => (*event == Event::Deleted).then_some((Self::Gone, Transition::Deleted)),
            Self::Gone => None,
        };
        next.ok_or_else(|| IllegalTransition { state: self.clone(), event: event.clone() })
    }

    fn of_waiting(&self, event: &Event) -> Option<(Self, Transition)> {
        Some(match event {
            Event::CycleNominated { node } => (Self::NominatedPreempting { node: node.clone() }, Transition::Preempts),
            Event::CycleCleared => (Self::Pending, Transition::FailsAndClears),
            Event::CycleKept { status } => (self.following(status.as_deref()), Transition::FailsAndKeeps),
            Event::AssumedQuietly { node } => (Self::AssumedQuiet { node: node.clone() }, Transition::AssumesQuietly),
            Event::AssumedAndAnnounced { node } => {
                (Self::AssumedAnnounced { node: node.clone() }, Transition::AssumesAndAnnounces)
            }
            Event::Deleted => (Self::Gone, Transition::Deleted),
            Event::BoundByOther { node } => (Self::Bound { node: node.clone() }, Transition::BoundByOther),
            Event::StatusUpdated { memory } => (self.following(memory.as_deref()), Transition::StatusUpdated),
            Event::NodeDeleted if self.node().is_some() => (self.clone(), Transition::NodeDeleted),
            _ => return None,
        })
    }

    fn of_assumed(&self, node: &str, event: &Event) -> Option<(Self, Transition)> {
        let node = || node.to_owned();
        let announced = matches!(self, Self::AssumedAnnounced { .. });
        Some(match event {
            Event::Bound => (Self::Bound { node: node() }, Transition::Binds),
            Event::BindingFailed => (Self::Pending, Transition::BindingFails),
            Event::BindingFailedKept if announced => {
                (Self::NominatedPreempting { node: node() }, Transition::BindingFailsAndKeeps)
            }
            Event::DeletionStarted => (self.clone(), Transition::DeletedWhileAssumed),
            Event::Deleted => (Self::Gone, Transition::DeletedWhileAssumed),
            Event::BoundByOther { node } => (Self::Bound { node: node.clone() }, Transition::BoundByOther),
            Event::Restarted { status } if announced => {
                (Self::Pending.following(status.as_deref()), Transition::Restarted)
            }
            _ => return None,
        })
    }

    /// A waiting pod whose nomination is `nomination` now: it stays what it was if the node is the same.
    fn following(&self, nomination: Option<&str>) -> Self {
        match nomination {
            None => Self::Pending,
            Some(node) if self.node() == Some(node) => self.clone(),
            Some(node) => Self::NominatedHint { node: node.to_owned() },
        }
    }

    /// The node of the nomination, of the assumption or of the binding.
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

    /// The scheduler looks for a node.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self, Self::Pending | Self::NominatedPreempting { .. } | Self::NominatedHint { .. })
    }

    /// The scheduler has chosen a node, and the pod is not bound yet.
    #[must_use]
    pub const fn is_assumed(&self) -> bool {
        matches!(self, Self::AssumedQuiet { .. } | Self::AssumedAnnounced { .. })
    }

    /// What readers of the API see, once all writes have arrived and if nobody else writes. Nominations for a preemption,
    /// hints and announcements are one and the same there. Of a pod that is assumed quietly an earlier nomination may still
    /// be seen, until the binding clears it.
    #[must_use]
    pub fn placement(&self) -> Placement<'_> {
        match self {
            Self::Pending | Self::AssumedQuiet { .. } | Self::Gone => Placement::None,
            Self::NominatedPreempting { node } | Self::NominatedHint { node } | Self::AssumedAnnounced { node } => {
                Placement::Nominated(node)
            }
            Self::Bound { node } => Placement::Bound(node),
        }
    }
}

impl fmt::Display for State {
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CycleNominated { .. } => "a cycle that chooses victims",
            Self::CycleCleared => "a cycle that clears the nomination",
            Self::CycleKept { .. } => "a cycle that keeps the nomination",
            Self::AssumedQuietly { .. } => "a cycle that chooses a node",
            Self::AssumedAndAnnounced { .. } => "a cycle that announces a node",
            Self::Bound => "a binding",
            Self::BindingFailed => "a failed binding cycle",
            Self::BindingFailedKept => "a failed binding cycle that keeps the nomination",
            Self::DeletionStarted => "the start of a deletion",
            Self::Deleted => "a deletion",
            Self::BoundByOther { .. } => "a binding by somebody else",
            Self::StatusUpdated { .. } => "an update of the status",
            Self::Restarted { .. } => "a restart of the scheduler",
            Self::NodeDeleted => "the end of the nominated node",
        })
    }
}
