//! What a failed cycle writes and where the pod goes (DT-5).

use serde::Deserialize;

use crate::command::NoPatch;
use crate::nominating::NominatingInfo;
use crate::patch::{Change, needs_patch};
use crate::pod::PodView;

/// Whether the status of a pod that is gone or bound is still written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LatePatch {
    /// No: a late "not scheduled" on a bound pod misleads.
    #[default]
    Suppressed,
    /// Yes, as upstream.
    Sent,
}

/// What happens to the nomination in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// It follows the live copy and what the cycle says.
    Renewed,
    /// It ends: the pod is not pending.
    Released,
    /// It stays.
    Untouched,
}

/// Where the pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Queue {
    /// Back into the queue.
    Requeue,
    /// Nowhere.
    Done,
}

/// What a failed cycle comes to. Memory is served first, so that the next cycle sees it, then the PATCH; the pod is
/// requeued last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Failure {
    /// The nomination in memory.
    pub memory: Memory,
    /// One PATCH with condition and nomination, or why none.
    pub patch: Result<(), NoPatch>,
    /// The pod.
    pub queue: Queue,
}

/// What was failed, and what is known about the pod's status.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FailedCycle<'a> {
    /// The copy that came out of the queue.
    pub popped: &'a PodView,
    /// The pod that has its namespace and name now.
    pub live: Option<&'a PodView>,
    /// What the cycle says about the nomination.
    pub info: &'a NominatingInfo,
    /// The nomination that was last written or observed.
    pub known_nnn: Option<&'a str>,
    /// Whether the condition differs from the one last written or observed.
    pub condition: Change,
    /// Writing to pods that are gone or bound.
    pub late_patch: LatePatch,
}

impl<'a> FailedCycle<'a> {
    /// A failure of a pod that is there as it was.
    #[must_use]
    pub fn new(popped: &'a PodView, info: &'a NominatingInfo, condition: Change) -> Self {
        Self {
            popped,
            live: Some(popped),
            info,
            known_nnn: popped.nnn.as_deref(),
            condition,
            late_patch: LatePatch::default(),
        }
    }

    /// What it comes to.
    ///
    /// ```
    /// use nnn::nominating::NominatingInfo;
    /// use nnn::patch::Change;
    /// use nnn::pod::PodView;
    /// use nnn::scheduling::failure::{FailedCycle, Queue};
    /// let pod = PodView::pending("default", "web");
    /// let failure = FailedCycle::new(&pod, &NominatingInfo::to("node-1"), Change::Same).decide();
    /// assert_eq!((failure.patch, failure.queue), (Ok(()), Queue::Requeue));
    /// ```
    #[must_use]
    pub fn decide(&self) -> Failure {
        let late = |reason| match self.late_patch {
            LatePatch::Suppressed => Err(reason),
            LatePatch::Sent => Ok(()),
        };
        let Some(live) = self.live else {
            return Failure { memory: Memory::Released, patch: late(NoPatch::PodGone), queue: Queue::Done };
        };
        let is_same = live.key.uid == self.popped.key.uid;
        if live.node.is_some() && live.resize_deferred {
            let queue = if is_same { Queue::Requeue } else { Queue::Done };
            return Failure { memory: Memory::Untouched, patch: Err(NoPatch::DeferredResize), queue };
        }
        if !is_same {
            return Failure { memory: Memory::Untouched, patch: Err(NoPatch::PodRecreated), queue: Queue::Done };
        }
        if live.node.is_some() {
            return Failure { memory: Memory::Released, patch: late(NoPatch::PodBound), queue: Queue::Done };
        }
        let patch = needs_patch(self.info, self.known_nnn, self.condition);
        Failure { memory: Memory::Renewed, patch, queue: Queue::Requeue }
    }
}
