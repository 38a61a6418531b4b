//! Which events of pods wake others: room that was promised is free, so those may fit who did not.

use serde::Deserialize;

use crate::command::Command;
use crate::pod::PodView;

/// Which nomination counts when a pod loses its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WakeBy {
    /// The one in memory, which is what others did not fit beside.
    #[default]
    Memory,
    /// The one in the status, as upstream: a nomination that was never written wakes nobody when it ends.
    Status,
}

/// An event of a pod that waits, and its nomination in memory before and after.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PodEvent<'a> {
    /// Its status or spec changed.
    Updated {
        /// Before.
        old: &'a PodView,
        /// After.
        new: &'a PodView,
        /// The nomination in memory before.
        before: Option<&'a str>,
        /// The nomination in memory after.
        after: Option<&'a str>,
    },
    /// Its cycle failed, and memory has changed with that, before the status.
    Failed {
        /// The pod.
        pod: &'a PodView,
        /// The nomination in memory before.
        before: Option<&'a str>,
        /// The nomination in memory after.
        after: Option<&'a str>,
    },
    /// It is gone.
    Deleted {
        /// What it was.
        pod: &'a PodView,
        /// The nomination in memory before.
        before: Option<&'a str>,
    },
    /// The deletion of an assumed pod started, or it is gone.
    AssumedDeleted,
}

/// Whom an event wakes. The loss of a nomination wakes the pod itself too, unless its own cycle has just shown that the room
/// does not help it.
///
/// ```
/// use nnn::pod::PodView;
/// use nnn::scheduling::wake::{PodEvent, WakeBy, decide_wake};
/// let pod = PodView::pending("default", "web");
/// let event = PodEvent::Deleted { pod: &pod, before: Some("node-1") };
/// assert!(decide_wake(event, WakeBy::Memory).is_some());
/// assert!(decide_wake(event, WakeBy::Status).is_none());
/// ```
#[must_use]
pub fn decide_wake(event: PodEvent<'_>, by: WakeBy) -> Option<Command> {
    let (pod, before, after) = match event {
        PodEvent::AssumedDeleted => return Some(Command::WakeAll { except: None }),
        PodEvent::Updated { old, before, after, .. } if by == WakeBy::Memory => (old, before, after),
        PodEvent::Updated { old, new, .. } => (old, old.nnn.as_deref(), new.nnn.as_deref()),
        PodEvent::Failed { pod, before, after } if by == WakeBy::Memory => (pod, before, after),
        // The update of the status will tell.
        PodEvent::Failed { .. } => return None,
        PodEvent::Deleted { pod, before } if by == WakeBy::Memory => (pod, before, None),
        PodEvent::Deleted { pod, .. } => (pod, pod.nnn.as_deref(), None),
    };
    // A pod that has lost its place may fit into another one; one that has left needs none.
    let except = match event {
        PodEvent::Updated { .. } => None,
        _ => Some(pod.key.uid.clone()),
    };
    (before.is_some() && before != after).then_some(Command::WakeLowerOrEqual { priority: pod.priority, except })
}
