//! Input of a [`NominationTracker`](crate::NominationTracker): events of the watch and of cycles.

use crate::binding::{Assumed, FailedStage};
use crate::nomination::NominatingInfo;
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};
use crate::scheduling::CycleOutcome;

/// Event that the caller reports to the tracker, from the watch or from a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackerInput {
    /// The watch showed a new or changed pod, bound or not. A pod that has succeeded or failed counts as deleted.
    PodObserved(PodSnapshot),
    /// The watch showed the deletion of a pod.
    PodDeleted {
        /// UID of the pod.
        uid: String,
    },
    /// A scheduling cycle ended without a node for the pod.
    CycleFailed {
        /// Pod as it came out of the scheduling queue.
        queued_pod: PodSnapshot,
        /// Result of the cycle.
        outcome: CycleOutcome,
        /// New condition `PodScheduled`.
        condition: ScheduledCondition,
    },
    /// The scheduling cycle of a pod group ended without a node for this member.
    ///
    /// A new nomination means that the group has chosen victims on the node. Lower nominations then end as with
    /// [`Self::CycleFailed`], but not with [`Behavior::KubeScheduler`](crate::Behavior::KubeScheduler).
    MemberFailed {
        /// Pod as it came out of the scheduling queue.
        queued_pod: PodSnapshot,
        /// Change of the nomination that the group decided: the node that its `PostFilter` plugins have for the member, or
        /// else the member's own result.
        info: NominatingInfo,
        /// New condition `PodScheduled`.
        condition: ScheduledCondition,
    },
    /// A scheduling cycle chose a node for the pod.
    CycleSucceeded(Assumed),
    /// The wait of a pod on permit ended well: what [`Command::Deferred`](crate::Command::Deferred) has put off is written.
    PermitGranted {
        /// Pod that has waited.
        pod: PodKey,
    },
    /// A binding cycle failed.
    BindingFailed {
        /// Pod as it came out of the scheduling queue.
        queued_pod: PodSnapshot,
        /// Stage at which the cycle failed.
        stage: FailedStage,
        /// New condition `PodScheduled`.
        condition: ScheduledCondition,
    },
    /// The API server accepted the binding.
    Bound {
        /// Pod that was bound.
        pod: PodKey,
    },
    /// The API server responded to a PATCH of the pod's status. Responses are reported in sending order.
    PatchAnswered {
        /// UID of the pod.
        uid: String,
        /// New resource version of the pod; `None` if the PATCH failed.
        version: Option<u64>,
    },
    /// The watch showed a node.
    NodeObserved {
        /// Name of the node.
        node: String,
    },
    /// The watch showed the deletion of a node. Pods stay nominated to it by name.
    NodeDeleted {
        /// Name of the node.
        node: String,
    },
}
