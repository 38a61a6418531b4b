//! Commands: decisions as values, which the caller carries out in order.

use std::fmt;

use serde::Serialize;

use crate::nominating_info::NominatingInfo;
use crate::pod::{PodKey, ScheduledCondition};

/// An action for the caller of the tracker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Command {
    /// Sends a PATCH of `status.nominatedNodeName`, with the UID as precondition.
    PatchNnn {
        /// The pod.
        pod: PodKey,
        /// The node to nominate.
        node: String,
    },
    /// Sends a PATCH that unsets `status.nominatedNodeName`, with the UID as precondition.
    ClearNnn {
        /// The pod.
        pod: PodKey,
    },
    /// Sends one PATCH with a condition and the change of the nomination.
    PatchConditionAndNnn {
        /// The pod.
        pod: PodKey,
        /// The condition `PodScheduled`.
        condition: ScheduledCondition,
        /// Change of the nomination.
        nnn: NominatingInfo,
    },
    /// Writes the allocation of a claim into its status, and the pod into `reservedFor`.
    ///
    /// The devices chosen for the claim are forgotten afterwards, also if the write fails.
    PersistAllocation {
        /// The pod for which the claim is reserved.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Forgets the devices that were chosen for a claim and not written. An allocation in its status stays.
    DropAllocation {
        /// The pod.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Removes the pod, by its UID, from `status.reservedFor` of a claim, if it is there. The allocation stays, because
    /// other pods may use it by now.
    DropReservation {
        /// The pod.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Reports that the allocations are written only after the wait on permit: until then readers see the nomination
    /// alone.
    Deferred {
        /// The pod.
        pod: PodKey,
    },
    /// Reports that the pod has a nomination in memory now.
    Reserve {
        /// The pod.
        pod: PodKey,
        /// The node.
        node: String,
    },
    /// Reports that the pod has no nomination in memory any more.
    Release {
        /// The pod.
        pod: PodKey,
        /// The node of the former nomination.
        node: String,
    },
    /// Requeues the pods of at most this priority, because a nomination ended that their filters had counted.
    ///
    /// In JSON the type is `WakeLowerOrEqual`.
    #[serde(rename = "WakeLowerOrEqual")]
    RequeueLowerOrEqual {
        /// Highest priority that is requeued.
        priority: i32,
        /// UID of a pod that is not requeued because it is gone or bound. A waiting pod that lost its nomination is
        /// requeued too.
        except: Option<String>,
    },
    /// Requeues all pods, because an assumed pod has released its node.
    ///
    /// In JSON the type is `WakeAll`.
    #[serde(rename = "WakeAll")]
    RequeueAll {
        /// UID of the pod that is not requeued because it was rejected itself.
        except: Option<String>,
    },
    /// Ends the pod's wait on permit.
    RejectWaiting {
        /// The pod.
        pod: PodKey,
    },
    /// Runs the waits and the plugins of the binding cycle, then binds.
    Bind {
        /// The pod.
        pod: PodKey,
        /// The node.
        node: String,
    },
    /// Puts the pod back into the queue.
    Requeue {
        /// The pod.
        pod: PodKey,
    },
    /// Removes the pod from the queue.
    Done {
        /// The pod.
        pod: PodKey,
    },
    /// Writes nothing.
    None {
        /// The pod.
        pod: PodKey,
        /// The reason for writing nothing.
        reason: NoPatchReason,
    },
}

/// Reason for which a decision writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum NoPatchReason {
    /// `NominatedNodeNameForExpectation` is off.
    GateOff,
    /// No `Permit` plugin waits, and every pre-flight returned `Skip`.
    NothingToWaitFor,
    /// The status has this value already.
    AlreadySet,
    /// The cycle leaves the nomination ([`NominatingInfo::Noop`]), and the condition is unchanged.
    ModeNoop,
    /// The pod is gone.
    PodGone,
    /// Another pod has the same name by now.
    PodRecreated,
    /// The pod is bound.
    PodBound,
    /// The pod is bound and waits for an in-place resize.
    DeferredResize,
    /// A later write to the same pod replaces it.
    PatchSuperseded,
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
            Self::PatchSuperseded => "a later write made it needless",
        })
    }
}

impl Command {
    /// Returns true for a request to the API server that changes the status of the pod.
    #[must_use]
    pub const fn is_patch(&self) -> bool {
        self.patched().is_some()
    }

    /// Returns the pod whose status the command changes.
    pub(crate) const fn patched(&self) -> Option<&PodKey> {
        match self {
            Self::PatchNnn { pod, .. } | Self::ClearNnn { pod } | Self::PatchConditionAndNnn { pod, .. } => Some(pod),
            _ => None,
        }
    }

    /// Returns the condition that the command writes.
    pub(crate) const fn written_condition(&self) -> Option<&ScheduledCondition> {
        match self {
            Self::PatchConditionAndNnn { condition, .. } => Some(condition),
            _ => None,
        }
    }

    /// Returns the pod and the new value of `status.nominatedNodeName`, if the command writes the field.
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
