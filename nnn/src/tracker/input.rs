//! Input of a [`NominationTracker`](crate::NominationTracker): events of the watch and of cycles.

use crate::binding::claims::BindingClaim;
use crate::binding::failure::FailedStage;
use crate::binding::start::{PermitWait, PreFlight};
use crate::nomination::NominatingInfo;
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};
use crate::scheduling::cycle_result::CycleOutcome;

/// Result of a successful scheduling cycle: a pod and the node on which it is assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assumed {
    /// Pod for which the cycle chose a node.
    pub pod: PodKey,
    /// Node on which the pod is assumed.
    pub node: String,
    /// Results of `PreBindPreFlight` of all plugins.
    pub pre_flights: Vec<PreFlight>,
    /// Result of the `Permit` plugins.
    pub permit: PermitWait,
    /// Claims of the pod.
    pub claims: Vec<BindingClaim>,
}

impl Assumed {
    /// Builds the result for a pod without claims whose binding cycle neither waits on permit nor runs `PreBind`.
    #[must_use]
    pub fn new(pod: &PodKey, node: &str) -> Self {
        let (pod, node) = (pod.clone(), node.to_owned());
        Self { pod, node, pre_flights: Vec::new(), permit: PermitWait::None, claims: Vec::new() }
    }

    /// Sets the results of `PreBindPreFlight`.
    #[must_use]
    pub fn with_pre_flights(self, pre_flights: Vec<PreFlight>) -> Self {
        Self { pre_flights, ..self }
    }

    /// Sets the result of the `Permit` plugins.
    #[must_use]
    pub fn with_permit(self, permit: PermitWait) -> Self {
        Self { permit, ..self }
    }

    /// Sets the claims of the pod.
    #[must_use]
    pub fn with_claims(self, claims: Vec<BindingClaim>) -> Self {
        Self { claims, ..self }
    }
}

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
    /// [`Self::CycleFailed`], unless [`Behavior::group_preemption`](crate::Behavior::group_preemption) keeps them.
    MemberFailed {
        /// Pod as it came out of the scheduling queue.
        queued_pod: PodSnapshot,
        /// Change of the nomination that the group decided ([`decide_member`](crate::scheduling::decide_member)).
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
