//! Handling of a failed scheduling or binding cycle: nomination in memory, status and queue.

use dra_attrs::GateSet;

use crate::commands::{ConditionChange, NoPatchReason, PatchDecision, decide_patch};
use crate::config::NominationGate;
use crate::config::behavior::PatchAfterBind;
use crate::nomination::NominatingInfo;
use crate::pod::PodSnapshot;

/// Change of the pod's nomination in the scheduler's memory after a failed cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryUpdate {
    /// The nomination is set again, from the pod's current state and the result of the cycle.
    Renewed,
    /// The nomination is removed, because the pod is bound or deleted.
    Released,
    /// The nomination is left unchanged.
    Untouched,
}

/// Change of the scheduling queue after a failed cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueAction {
    /// The pod goes back into the queue.
    Requeue,
    /// The pod leaves the queue.
    Done,
}

/// Changes after a failed cycle, to be made in this order: memory, status, queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FailureDecision {
    /// Change of the nomination in the scheduler's memory.
    pub memory: MemoryUpdate,
    /// Decision to send one PATCH with condition and nomination.
    pub patch: PatchDecision,
    /// Change of the scheduling queue.
    pub queue: QueueAction,
}

/// Input of the decision after a failed cycle: the pod, its current status, and the result of the cycle.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FailedCycle<'a> {
    /// The pod as it came out of the queue.
    pub queued_pod: &'a PodSnapshot,
    /// Latest observed pod of the same namespace and name; `None` if it was deleted.
    pub live: Option<&'a PodSnapshot>,
    /// Change of the nomination that the cycle decided.
    pub info: &'a NominatingInfo,
    /// `status.nominatedNodeName` as last written or observed; of `queued_pod` if the pod was bound or deleted.
    pub current_nnn: Option<&'a str>,
    /// Comparison of the new condition with the current status (of `queued_pod`, if the pod was bound or deleted).
    pub condition: ConditionChange,
    /// Treatment of status writes to a pod that was bound or deleted while its cycle ran.
    pub patch_after_bind: PatchAfterBind,
    /// Feature gates. Only [`NominationGate::ResizePreemption`] is read.
    pub gates: GateSet<NominationGate>,
}

impl<'a> FailedCycle<'a> {
    /// Builds the input for a pod that is unchanged since it came out of the queue.
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

    /// Decides the changes of memory, status and queue.
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

    /// Returns the changes for a pod that was bound or deleted while its cycle ran.
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
