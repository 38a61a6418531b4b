//! What a failed cycle writes and where the pod goes.

use serde::Deserialize;

use crate::command::NoPatch;
use crate::gates::{Gate, Gates};
use crate::nominating::NominatingInfo;
use crate::patch::{Change, Patch, decide_patch};
use crate::pod::PodView;

/// Whether the status of a pod that is gone or bound is still written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LatePatch {
    /// No: a late "not scheduled" on a bound pod misleads.
    #[default]
    Suppressed,
    /// Yes, as upstream, if it differs from the copy that came out of the queue.
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
    pub patch: Patch,
    /// The pod.
    pub queue: Queue,
}

/// What has failed, and what is known about the pod's status.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FailedCycle<'a> {
    /// The copy that came out of the queue.
    pub popped: &'a PodView,
    /// The pod that has its namespace and name now.
    pub live: Option<&'a PodView>,
    /// What the cycle says about the nomination.
    pub info: &'a NominatingInfo,
    /// The nomination that was last written or observed; that of the popped copy if the pod is gone or bound.
    pub known_nnn: Option<&'a str>,
    /// Whether the condition differs from the one last written or observed, or from that of the popped copy likewise.
    pub condition: Change,
    /// Writing to pods that are gone or bound.
    pub late_patch: LatePatch,
    /// The gates: whether bound pods are looked at that wait for a resize in place.
    pub gates: Gates,
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
            gates: Gates::default(),
        }
    }

    /// What it comes to.
    ///
    /// ```
    /// use nnn::nominating::NominatingInfo;
    /// use nnn::patch::{Change, Patch};
    /// use nnn::pod::PodView;
    /// use nnn::scheduling::failure::{FailedCycle, Queue};
    /// let pod = PodView::pending("default", "web");
    /// let failure = FailedCycle::new(&pod, &NominatingInfo::to("node-1"), Change::Same).decide();
    /// assert_eq!((failure.patch, failure.queue), (Patch::Needed, Queue::Requeue));
    /// ```
    #[must_use]
    pub fn decide(&self) -> Failure {
        let Some(live) = self.live else { return self.too_late(NoPatch::PodGone) };
        let is_same = live.key.uid == self.popped.key.uid;
        if live.node.is_some() && live.resize_deferred && self.gates.has(Gate::ResizePreemption) {
            let queue = if is_same { Queue::Requeue } else { Queue::Done };
            return Failure { memory: Memory::Untouched, patch: Patch::None(NoPatch::DeferredResize), queue };
        }
        // Upstream asks whether the pod of that name is bound before it asks whether it is the same.
        if live.node.is_some() && (is_same || self.late_patch == LatePatch::Sent) {
            return self.too_late(NoPatch::PodBound);
        }
        if !is_same {
            return Failure {
                memory: Memory::Untouched,
                patch: Patch::None(NoPatch::PodRecreated),
                queue: Queue::Done,
            };
        }
        Failure { memory: Memory::Renewed, patch: self.patch(), queue: Queue::Requeue }
    }

    /// The pod waits for no node any more.
    fn too_late(&self, reason: NoPatch) -> Failure {
        let patch = match self.late_patch {
            LatePatch::Suppressed => Patch::None(reason),
            LatePatch::Sent => self.patch(),
        };
        Failure { memory: Memory::Released, patch, queue: Queue::Done }
    }

    fn patch(&self) -> Patch {
        decide_patch(self.info, self.known_nnn, self.condition)
    }
}
