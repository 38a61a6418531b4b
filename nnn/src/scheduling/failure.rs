//! Failure handling of a scheduling or binding cycle: memory, status and queue.

use dra_attrs::GateSet;

use crate::behavior::PatchAfterBind;
use crate::command::NoPatchReason;
use crate::gates::NominationGate;
use crate::nominating_info::NominatingInfo;
use crate::patch::{ConditionChange, PatchDecision, decide_patch};
use crate::pod::PodSnapshot;

/// Change of the nomination in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryUpdate {
    /// The nomination is set from the live pod and the result of the cycle.
    Renewed,
    /// The nomination ends, because the pod is not pending.
    Released,
    /// The nomination stays.
    Untouched,
}

/// Change of the scheduling queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueAction {
    /// The pod goes back into the queue.
    Requeue,
    /// The queue is done with the pod.
    Done,
}

/// Consequences of a failed cycle, in this order: memory, so that the next cycle sees it, then the PATCH, then the
/// queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FailureDecision {
    /// Change of the nomination in memory.
    pub memory: MemoryUpdate,
    /// One PATCH with condition and nomination, or the reason for none.
    pub patch: PatchDecision,
    /// Change of the queue.
    pub queue: QueueAction,
}

/// A failed cycle and the current status of its pod.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FailedCycle<'a> {
    /// The pod as it came out of the queue.
    pub queued_pod: &'a PodSnapshot,
    /// The pod that has the same namespace and name now.
    pub live: Option<&'a PodSnapshot>,
    /// Change of the nomination by the cycle.
    pub info: &'a NominatingInfo,
    /// Nomination as last written or observed; that of `queued_pod` if the pod is gone or bound.
    pub current_nnn: Option<&'a str>,
    /// Change of the condition relative to the one last written or observed; to that of `queued_pod` if the pod is gone
    /// or bound.
    pub condition: ConditionChange,
    /// Writes to pods that are gone or bound.
    pub patch_after_bind: PatchAfterBind,
    /// Feature gates. Only [`NominationGate::ResizePreemption`] is read.
    pub gates: GateSet<NominationGate>,
}

impl<'a> FailedCycle<'a> {
    /// Builds the failure of a pod that is unchanged since it came out of the queue.
    #[must_use]
    pub fn new(queued_pod: &'a PodSnapshot, info: &'a NominatingInfo, condition: ConditionChange) -> Self {
        Self {
            queued_pod,
            live: Some(queued_pod),
            info,
            current_nnn: queued_pod.nnn.as_deref(),
            condition,
            patch_after_bind: PatchAfterBind::Suppressed,
            gates: GateSet::default(),
        }
    }

    /// Decides about memory, PATCH and queue.
    ///
    /// ```
    /// use nnn::scheduling::{FailedCycle, QueueAction};
    /// use nnn::{ConditionChange, NominatingInfo, PatchDecision, PodSnapshot};
    /// let pod = PodSnapshot::pending("default", "web");
    /// let failure = FailedCycle::new(&pod, &NominatingInfo::nominate("node-1"), ConditionChange::Same).decide();
    /// assert_eq!((failure.patch, failure.queue), (PatchDecision::Needed, QueueAction::Requeue));
    /// ```
    #[must_use]
    pub fn decide(&self) -> FailureDecision {
        let Some(live) = self.live else { return self.too_late(NoPatchReason::PodGone) };
        let is_same = live.key.uid == self.queued_pod.key.uid;
        if live.node.is_some() && live.resize_deferred && self.gates.has(NominationGate::ResizePreemption) {
            let queue = if is_same { QueueAction::Requeue } else { QueueAction::Done };
            return FailureDecision {
                memory: MemoryUpdate::Untouched,
                patch: PatchDecision::None(NoPatchReason::DeferredResize),
                queue,
            };
        }
        // Upstream asks whether the pod of that name is bound before it asks whether it is the same.
        if live.node.is_some() && (is_same || self.patch_after_bind == PatchAfterBind::Sent) {
            return self.too_late(NoPatchReason::PodBound);
        }
        if !is_same {
            return FailureDecision {
                memory: MemoryUpdate::Untouched,
                patch: PatchDecision::None(NoPatchReason::PodRecreated),
                queue: QueueAction::Done,
            };
        }
        FailureDecision { memory: MemoryUpdate::Renewed, patch: self.patch(), queue: QueueAction::Requeue }
    }

    /// Decides for a pod that does not wait for a node any more.
    fn too_late(&self, reason: NoPatchReason) -> FailureDecision {
        let patch = match self.patch_after_bind {
            PatchAfterBind::Suppressed => PatchDecision::None(reason),
            PatchAfterBind::Sent => self.patch(),
        };
        FailureDecision { memory: MemoryUpdate::Released, patch, queue: QueueAction::Done }
    }

    fn patch(&self) -> PatchDecision {
        decide_patch(self.info, self.current_nnn, self.condition)
    }
}
