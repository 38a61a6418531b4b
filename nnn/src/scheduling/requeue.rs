//! Requeueing of pods when a nomination ends and the room that it reserved is free again.

use crate::commands::Command;
use crate::config::behavior::RequeueSource;
use crate::pod::PodSnapshot;

/// Change of a pod that may end its nomination.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PodRequeueEvent<'a> {
    /// The watch showed an update of a waiting pod.
    Updated {
        /// The pod before the change.
        old: &'a PodSnapshot,
        /// The pod after the change.
        new: &'a PodSnapshot,
        /// Node of the nomination in the scheduler's memory before the change.
        before: Option<&'a str>,
        /// Node of the nomination in the scheduler's memory after the change.
        after: Option<&'a str>,
    },
    /// The cycle of a pod failed, which changed its nomination in memory before its status.
    Failed {
        /// Pod whose cycle failed.
        pod: &'a PodSnapshot,
        /// Node of the nomination in the scheduler's memory before the change.
        before: Option<&'a str>,
        /// Node of the nomination in the scheduler's memory after the change.
        after: Option<&'a str>,
    },
    /// A waiting pod was deleted.
    Deleted {
        /// The pod as last observed.
        pod: &'a PodSnapshot,
        /// Node of the nomination in the scheduler's memory before the change.
        before: Option<&'a str>,
    },
    /// An assumed pod was deleted, or its deletion started.
    AssumedDeleted,
}

/// Decides which waiting pods to requeue after a change of a pod.
///
/// A pod that loses its nomination by an update is requeued too. It is not if its own cycle has just failed, because it
/// does not fit with the room free either.
///
/// ```
/// use nnn::PodSnapshot;
/// use nnn::behavior::RequeueSource;
/// use nnn::scheduling::{PodRequeueEvent, decide_requeue};
/// let pod = PodSnapshot::pending("default", "web");
/// let event = PodRequeueEvent::Deleted { pod: &pod, before: Some("node-1") };
/// assert!(decide_requeue(event, RequeueSource::Memory).is_some());
/// assert!(decide_requeue(event, RequeueSource::Status).is_none());
/// ```
#[must_use]
pub fn decide_requeue(event: PodRequeueEvent<'_>, by: RequeueSource) -> Option<Command> {
    let (pod, before, after) = match event {
        PodRequeueEvent::AssumedDeleted => return Some(Command::RequeueAll { except: None }),
        PodRequeueEvent::Updated { old, before, after, .. } if by == RequeueSource::Memory => (old, before, after),
        PodRequeueEvent::Updated { old, new, .. } => (old, old.nnn.as_deref(), new.nnn.as_deref()),
        PodRequeueEvent::Failed { pod, before, after } if by == RequeueSource::Memory => (pod, before, after),
        // The update of the status will tell.
        PodRequeueEvent::Failed { .. } => return None,
        PodRequeueEvent::Deleted { pod, before } if by == RequeueSource::Memory => (pod, before, None),
        PodRequeueEvent::Deleted { pod, .. } => (pod, pod.nnn.as_deref(), None),
    };
    // A pod that has lost its place may fit into another one; one that has left needs none.
    let except = match event {
        PodRequeueEvent::Updated { .. } => None,
        _ => Some(pod.key.uid.clone()),
    };
    (before.is_some() && before != after).then_some(Command::RequeueLowerOrEqual { priority: pod.priority, except })
}
