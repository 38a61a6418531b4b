//! Change of a pod's nomination after its scheduling cycle (KEP-5278, The scheduler clears `NominatedNodeName` after
//! scheduling failure).

use dra_attrs::internal::release::{NominationAfterCycle, NominationAfterFailure};
use dra_attrs::{Component, Gate};
use serde::{Deserialize, Serialize};

use crate::nomination::NominatingInfo;

/// Result of a scheduling cycle.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CycleOutcome {
    /// The scheduler could not refresh its snapshot of the cluster.
    SnapshotFailed,
    /// The cluster has no nodes.
    NoNodes,
    /// A plugin or the scheduler itself failed with an error.
    Error,
    /// The pod, a member of a pod group, fits no node. The group's cycle decides about its nomination.
    NoFitInPodGroup,
    /// The pod fits no node, and there is no `PostFilter` plugin.
    NoFitNoPostFilter,
    /// The pod fits no node now, but a `PostFilter` plugin chose victims on a node.
    Nominated {
        /// Node of the chosen victims.
        node: String,
    },
    /// The pod fits no node, and no eviction would make room.
    NoCandidates,
    /// The pod fits no node, and its `preemptionPolicy` is `Never`.
    PolicyNever,
    /// The pod fits no node, and victims of an earlier preemption on its nominated node are still terminating.
    VictimsTerminating,
    /// The pod fits no node, and a claim of a victim of its earlier preemption is still allocated (KEP-5690).
    DevicesReclaimed,
    /// The pod fits no node, and extenders refused every node on which evictions would make room.
    ExtendersLeftNone,
    /// The pod fits no node, and a `PostFilter` plugin or an extender failed while looking for victims.
    PostFilterError,
    /// The pod fits a node, but could not be assumed there.
    AssumeFailed,
    /// The pod fits a node, but a `Reserve` plugin failed or rejected it.
    ReserveFailed,
    /// The pod fits a node, but a `Permit` plugin failed or rejected it.
    PermitFailed,
    /// The scheduler chose a node for the pod.
    Scheduled {
        /// Node that the scheduler chose.
        node: String,
    },
}

impl CycleOutcome {
    /// Decides the change of the pod's nomination after a scheduling cycle.
    ///
    /// The profiles differ in three results: a pod that must not preempt, a failed search for victims, and victims that
    /// extenders refused. The KEP clears the nomination, releases keep it. After an error, or a failure after a node was
    /// found, only 1.34 keeps it, while the gate is on.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use nnn::{CycleOutcome, NominatingInfo};
    /// assert_eq!(CycleOutcome::NoCandidates.nominating_info(Profile::V1_37), NominatingInfo::clear());
    /// assert_eq!(CycleOutcome::PolicyNever.nominating_info(Profile::V1_37), NominatingInfo::Noop);
    /// assert_eq!(CycleOutcome::PolicyNever.nominating_info(Profile::Kep), NominatingInfo::clear());
    /// ```
    #[must_use]
    pub fn nominating_info(&self, scheduler: impl Into<Component>) -> NominatingInfo {
        let scheduler: Component = scheduler.into();
        match self {
            Self::Nominated { node } => NominatingInfo::nominate(node),
            Self::PolicyNever | Self::ExtendersLeftNone | Self::PostFilterError => match scheduler.rules().nomination {
                NominationAfterCycle::Kept => NominatingInfo::Noop,
                NominationAfterCycle::Cleared => NominatingInfo::clear(),
            },
            Self::NoFitInPodGroup | Self::VictimsTerminating | Self::DevicesReclaimed | Self::Scheduled { .. } => {
                NominatingInfo::Noop
            }
            Self::Error | Self::AssumeFailed | Self::ReserveFailed | Self::PermitFailed => {
                match scheduler.rules().nomination_after_failure {
                    NominationAfterFailure::KeptByGate if scheduler.has(Gate::NominatedNodeNameForExpectation) => {
                        NominatingInfo::Noop
                    }
                    NominationAfterFailure::KeptByGate | NominationAfterFailure::Cleared => NominatingInfo::clear(),
                }
            }
            Self::SnapshotFailed | Self::NoNodes | Self::NoFitNoPostFilter | Self::NoCandidates => {
                NominatingInfo::clear()
            }
        }
    }
}
