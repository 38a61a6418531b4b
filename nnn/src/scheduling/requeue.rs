//! Requeueing of pods when a nomination ends and the room that it reserved is free again.

use crate::commands::Command;
use crate::config::Behavior;
use crate::pod::PodSnapshot;

/// Change of a pod that may end its nomination.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PodRequeueEvent<'a> {
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
pub(crate) fn decide_requeue(event: PodRequeueEvent<'_>, behavior: Behavior) -> Option<Command> {
    let by_memory = behavior.requeues_by_memory();
    let (pod, before, after) = match event {
        PodRequeueEvent::AssumedDeleted => return Some(Command::RequeueAll { except: None }),
        PodRequeueEvent::Updated { old, before, after, .. } if by_memory => (old, before, after),
        PodRequeueEvent::Updated { old, new, .. } => (old, old.nnn.as_deref(), new.nnn.as_deref()),
        PodRequeueEvent::Failed { pod, before, after } if by_memory => (pod, before, after),
        // The update of the status will tell.
        PodRequeueEvent::Failed { .. } => return None,
        PodRequeueEvent::Deleted { pod, before } if by_memory => (pod, before, None),
        PodRequeueEvent::Deleted { pod, .. } => (pod, pod.nnn.as_deref(), None),
    };
    // A pod that has lost its place may fit into another one; one that has left needs none.
    let except = match event {
        PodRequeueEvent::Updated { .. } => None,
        _ => Some(pod.key.uid.clone()),
    };
    (before.is_some() && before != after).then_some(Command::RequeueLowerOrEqual { priority: pod.priority, except })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodSnapshot {
        PodSnapshot::pending("default", "p").with_priority(7)
    }

    #[test]
    fn who_is_woken() {
        let (before, after, moved) = (pod().with_nomination("a"), pod(), pod().with_nomination("b"));
        // Who loses a nomination is woken with the others, who is gone is not.
        let wake = |except: Option<&str>| {
            Some(Command::RequeueLowerOrEqual { priority: 7, except: except.map(str::to_owned) })
        };
        let (lost, gone) = (wake(None), wake(Some("p")));
        let updated = |old, new, before, after| PodRequeueEvent::Updated { old, new, before, after };
        let rows = [
            // The status says so, and so does memory.
            (updated(&before, &after, Some("a"), None), lost.clone(), lost.clone()),
            (updated(&before, &moved, Some("a"), Some("b")), lost.clone(), lost.clone()),
            // The nomination was never written.
            (updated(&after, &after, Some("a"), None), lost, None),
            (updated(&after, &before, None, Some("a")), None, None),
            (updated(&before, &before, Some("a"), Some("a")), None, None),
            // MemoryUpdate goes first, the status will follow.
            (PodRequeueEvent::Failed { pod: &before, before: Some("a"), after: None }, gone.clone(), None),
            (PodRequeueEvent::Failed { pod: &before, before: Some("a"), after: Some("b") }, gone.clone(), None),
            (PodRequeueEvent::Failed { pod: &before, before: Some("a"), after: Some("a") }, None, None),
            (PodRequeueEvent::Failed { pod: &after, before: None, after: Some("a") }, None, None),
            (PodRequeueEvent::Deleted { pod: &before, before: Some("a") }, gone.clone(), gone.clone()),
            (PodRequeueEvent::Deleted { pod: &after, before: Some("a") }, gone, None),
            (PodRequeueEvent::Deleted { pod: &after, before: None }, None, None),
            (
                PodRequeueEvent::AssumedDeleted,
                Some(Command::RequeueAll { except: None }),
                Some(Command::RequeueAll { except: None }),
            ),
        ];
        for (event, by_memory, by_status) in rows {
            assert_eq!(decide_requeue(event, Behavior::Safe), by_memory, "{event:?}");
            assert_eq!(decide_requeue(event, Behavior::KubeScheduler), by_status, "{event:?}");
        }
    }
}
