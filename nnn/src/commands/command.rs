//! Commands of the tracker to its caller, to be executed in order.

use std::fmt;

use serde::Serialize;

use crate::nomination::NominatingInfo;
use crate::pod::{PodKey, ScheduledCondition};

/// An action for the caller of the tracker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Command {
    /// Sends a PATCH of `status.nominatedNodeName`, with the UID as precondition.
    PatchNnn {
        /// Pod to nominate.
        pod: PodKey,
        /// Node to which the pod is nominated.
        node: String,
    },
    /// Sends a PATCH that unsets `status.nominatedNodeName`, with the UID as precondition.
    ClearNnn {
        /// Pod whose nomination is cleared.
        pod: PodKey,
    },
    /// Sends one PATCH with the condition `PodScheduled` and the change of `status.nominatedNodeName`.
    PatchConditionAndNnn {
        /// Pod whose status is patched.
        pod: PodKey,
        /// New condition `PodScheduled` of the pod.
        condition: ScheduledCondition,
        /// Change of `status.nominatedNodeName`.
        nnn: NominatingInfo,
    },
    /// Writes the chosen devices into the status of a claim as its allocation, and adds the pod to
    /// `status.reservedFor`.
    ///
    /// The devices chosen for the claim are forgotten afterwards, also if the write fails.
    PersistAllocation {
        /// The pod for which the claim is reserved.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Adds the pod to `status.reservedFor` of a claim that is allocated, or that an earlier command of another pod
    /// allocates. kubelet refuses a pod that is not in the list.
    PersistReservation {
        /// The pod for which the claim is reserved.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Forgets devices that were chosen for a claim but not written to its status.
    DropAllocation {
        /// Pod for which the devices were chosen.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Removes the pod from `status.reservedFor` of a claim. The allocation stays, because other pods may use it by
    /// now.
    DropReservation {
        /// Pod to remove from `status.reservedFor`.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Reports that the allocations and reservations of the pod's claims are written only after the wait on permit. Until
    /// then API readers see the pod's nomination without its devices. The writes come with
    /// [`TrackerInput::PermitGranted`](crate::TrackerInput::PermitGranted).
    Deferred {
        /// Pod whose claim allocations the API server does not have yet; they are written in `PreBind`.
        pod: PodKey,
    },
    /// Reports that the scheduler's memory now has a nomination of the pod.
    Reserve {
        /// Pod that is nominated.
        pod: PodKey,
        /// Node to which the pod is nominated.
        node: String,
    },
    /// Reports that the scheduler's memory no longer has a nomination of the pod.
    Release {
        /// Pod that is no longer nominated.
        pod: PodKey,
        /// The node of the former nomination.
        node: String,
    },
    /// Requeues the waiting pods whose priority is at most `priority`, because a nomination that reserved room against
    /// them has ended.
    ///
    /// In JSON the type is `WakeLowerOrEqual`.
    #[serde(rename = "WakeLowerOrEqual")]
    RequeueLowerOrEqual {
        /// Highest priority that is requeued.
        priority: i32,
        /// UID of a pod that is not requeued, because it is bound or deleted or has just failed its own cycle.
        except: Option<String>,
    },
    /// Requeues all unschedulable pods, because an assumed pod has given up its node.
    ///
    /// In JSON the type is `WakeAll`.
    #[serde(rename = "WakeAll")]
    RequeueAll {
        /// UID of a pod that is not requeued, because it was itself rejected.
        except: Option<String>,
    },
    /// Rejects a pod that waits on permit, which ends its wait.
    RejectWaiting {
        /// Pod to reject.
        pod: PodKey,
    },
    /// Runs the remaining steps of the binding cycle (wait on permit, `PreBind`), then binds the pod.
    Bind {
        /// Pod to bind.
        pod: PodKey,
        /// Node to bind the pod to.
        node: String,
    },
    /// Puts the pod back into the scheduling queue.
    Requeue {
        /// Pod to put back into the queue.
        pod: PodKey,
    },
    /// Removes the pod from the scheduling queue.
    Done {
        /// Pod to remove from the queue.
        pod: PodKey,
    },
    /// Reports that a status write is not needed, and the reason.
    None {
        /// Pod whose status is not written.
        pod: PodKey,
        /// Reason why nothing is written.
        reason: NoPatchReason,
    },
}

/// Reason why no PATCH of a pod's status is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum NoPatchReason {
    /// The feature gate `NominatedNodeNameForExpectation` is off.
    GateOff,
    /// No `Permit` plugin waits, and every pre-flight returned `Skip`.
    NothingToWaitFor,
    /// `status.nominatedNodeName` has the wanted value already.
    AlreadySet,
    /// The cycle leaves the nomination unchanged ([`NominatingInfo::Noop`]), and the condition `PodScheduled` is
    /// unchanged.
    ModeNoop,
    /// The pod was deleted.
    PodGone,
    /// The pod was deleted and created again under its name, with another UID.
    PodRecreated,
    /// The pod is bound.
    PodBound,
    /// The pod is bound and waits for an in-place resize. Its status is not written.
    DeferredResize,
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PatchNnn { pod, node } => write!(formatter, "nominate {pod} to {node}"),
            Self::ClearNnn { pod } => write!(formatter, "clear the nomination of {pod}"),
            Self::PatchConditionAndNnn { pod, condition, .. } => {
                write!(formatter, "write the condition of {pod}: {} ({})", condition.status, condition.reason)
            }
            Self::PersistAllocation { pod, claim } => write!(formatter, "write the allocation of {claim} for {pod}"),
            Self::PersistReservation { pod, claim } => write!(formatter, "reserve {claim} for {pod}"),
            Self::DropAllocation { pod, claim } => write!(formatter, "drop the allocation of {claim} for {pod}"),
            Self::DropReservation { pod, claim } => write!(formatter, "drop the reservation of {claim} for {pod}"),
            Self::Deferred { pod } => write!(formatter, "write the allocations of {pod} after its permit"),
            Self::Reserve { pod, node } => write!(formatter, "remember {pod} on {node}"),
            Self::Release { pod, node } => write!(formatter, "forget {pod} on {node}"),
            Self::RequeueLowerOrEqual { priority, .. } => {
                write!(formatter, "requeue pods of priority {priority} and below")
            }
            Self::RequeueAll { .. } => formatter.write_str("requeue all pods"),
            Self::RejectWaiting { pod } => write!(formatter, "end the wait of {pod} on permit"),
            Self::Bind { pod, node } => write!(formatter, "bind {pod} to {node}"),
            Self::Requeue { pod } => write!(formatter, "requeue {pod}"),
            Self::Done { pod } => write!(formatter, "take {pod} from the queue"),
            Self::None { pod, reason } => write!(formatter, "write nothing to {pod}: {reason}"),
        }
    }
}

impl fmt::Display for NoPatchReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::GateOff => "the gate is off",
            Self::NothingToWaitFor => "there is nothing to wait for",
            Self::AlreadySet => "it stands there already",
            Self::ModeNoop => "nothing has changed",
            Self::PodGone => "the pod is gone",
            Self::PodRecreated => "another pod has the name now",
            Self::PodBound => "the pod is bound",
            Self::DeferredResize => "the pod is bound and waits for a resize",
        })
    }
}

impl Command {
    /// Returns true if the command is a PATCH of a pod's status.
    #[must_use]
    pub const fn is_patch(&self) -> bool {
        self.patched().is_some()
    }

    /// Returns the pod whose status the command patches.
    pub(crate) const fn patched(&self) -> Option<&PodKey> {
        match self {
            Self::PatchNnn { pod, .. } | Self::ClearNnn { pod } | Self::PatchConditionAndNnn { pod, .. } => Some(pod),
            _ => None,
        }
    }

    /// Returns the condition `PodScheduled` that the command writes.
    pub(crate) const fn written_condition(&self) -> Option<&ScheduledCondition> {
        match self {
            Self::PatchConditionAndNnn { condition, .. } => Some(condition),
            _ => None,
        }
    }

    /// Returns the pod and the new value of `status.nominatedNodeName` (`None` to unset it), if the command writes the
    /// field.
    #[must_use]
    pub fn written_nnn(&self) -> Option<(&PodKey, Option<&str>)> {
        match self {
            Self::PatchNnn { pod, node } => Some((pod, Some(node))),
            Self::ClearNnn { pod } => Some((pod, None)),
            Self::PatchConditionAndNnn { pod, nnn: NominatingInfo::Override(node), .. } => Some((pod, node.as_deref())),
            _ => None,
        }
    }
}
