//! Pods to requeue when a nomination ends and its room is free again.

use crate::behavior::RequeueSource;
use crate::command::Command;
use crate::pod::PodSnapshot;

/// Change of a pod that may free a node, with the pod's nomination in memory before and after.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PodRequeueEvent<'a> {
    /// Status or spec of a waiting pod changed.
    Updated {
        /// The pod before the change.
        old: &'a PodSnapshot,
        /// The pod after the change.
        new: &'a PodSnapshot,
        /// The nomination in memory before.
        before: Option<&'a str>,
        /// The nomination in memory after.
        after: Option<&'a str>,
    },
    /// The cycle of a pod failed, and memory changed with it, before the status.
    Failed {
        /// The pod.
        pod: &'a PodSnapshot,
        /// The nomination in memory before.
        before: Option<&'a str>,
        /// The nomination in memory after.
        after: Option<&'a str>,
    },
    /// A waiting pod was deleted.
    Deleted {
        /// The pod as last observed.
        pod: &'a PodSnapshot,
        /// The nomination in memory before.
        before: Option<&'a str>,
    },
    /// The deletion of an assumed pod started, or it was deleted.
    AssumedDeleted,
}

/// Decides which pods are requeued.
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
