//! Decisions as values. Whoever embeds the crate carries them out, in the given order.

use std::fmt;

use serde::Serialize;

use crate::nominating::NominatingInfo;
use crate::pod::{PodKey, ScheduledCondition};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Command {
    /// PATCH `status.nominatedNodeName`, with the UID as precondition.
    PatchNnn {
        /// The pod.
        pod: PodKey,
        /// The node.
        node: String,
    },
    /// PATCH `status.nominatedNodeName` to unset, with the UID as precondition.
    ClearNnn {
        /// The pod.
        pod: PodKey,
    },
    /// One PATCH with a condition and what becomes of the nomination.
    PatchConditionAndNnn {
        /// The pod.
        pod: PodKey,
        /// The condition `PodScheduled`.
        condition: ScheduledCondition,
        /// The nomination.
        nnn: NominatingInfo,
    },
    /// Write the allocation of a claim into its status, and the pod into `reservedFor`: the other half of a reservation. The
    /// choice of devices is over with it, also if the write fails.
    PersistAllocation {
        /// The pod for which the claim is reserved.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Forget the devices that were chosen for a claim and not written. An allocation in its status stays.
    DropAllocation {
        /// The pod.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// Take the pod, by its UID, out of the claim's `status.reservedFor`, if it is there. The allocation stays: other pods
    /// may use it by now.
    DropReservation {
        /// The pod.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// The pod waits on permit before its claims can be written: its nomination shows without them until then.
    Deferred {
        /// The pod.
        pod: PodKey,
    },
    /// Memory: the pod has a nomination now.
    Reserve {
        /// The pod.
        pod: PodKey,
        /// The node.
        node: String,
    },
    /// Memory: the pod has no nomination any more.
    Release {
        /// The pod.
        pod: PodKey,
        /// Where it was nominated.
        node: String,
    },
    /// Requeue the pods that have at most this priority: the room that they did not see is free.
    WakeLowerOrEqual {
        /// The priority.
        priority: i32,
        /// The UID of a pod that is not woken, since it is gone or bound. A pod that lost its nomination is woken itself.
        except: Option<String>,
    },
    /// Requeue all pods: an assumed pod has given its room back.
    WakeAll {
        /// The UID of a pod that must stay, since it was rejected itself.
        except: Option<String>,
    },
    /// End the pod's wait on permit.
    RejectWaiting {
        /// The pod.
        pod: PodKey,
    },
    /// Run the waits and work of the binding cycle, then bind.
    Bind {
        /// The pod.
        pod: PodKey,
        /// The node.
        node: String,
    },
    /// The pod goes back into the queue.
    Requeue {
        /// The pod.
        pod: PodKey,
    },
    /// The queue is done with the pod.
    Done {
        /// The pod.
        pod: PodKey,
    },
    /// Nothing is written, and why.
    None {
        /// The pod.
        pod: PodKey,
        /// Why.
        reason: NoPatch,
    },
}

/// Why a decision writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum NoPatch {
    /// `NominatedNodeNameForExpectation` is off.
    GateOff,
    /// No permit is waited for, and every pre-flight said skip.
    NothingToWaitFor,
    /// The status has that value already.
    AlreadySet,
    /// The cycle said nothing about the nomination, and the condition is as it was.
    ModeNoop,
    /// The pod is not there any more.
    PodGone,
    /// Another pod has the name now.
    PodRecreated,
    /// The pod is bound.
    PodBound,
    /// The pod is bound and waits for a resize in place.
    DeferredResize,
    /// A later write to the same pod made it needless.
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
            Self::WakeLowerOrEqual { priority, .. } => write!(formatter, "wake pods of priority {priority} and below"),
            Self::WakeAll { .. } => formatter.write_str("wake all pods"),
            Self::RejectWaiting { pod } => write!(formatter, "end the wait of {pod} on permit"),
            Self::Bind { pod, node } => write!(formatter, "bind {pod} to {node}"),
            Self::Requeue { pod } => write!(formatter, "requeue {pod}"),
            Self::Done { pod } => write!(formatter, "take {pod} from the queue"),
            Self::None { pod, reason } => write!(formatter, "write nothing to {pod}: {reason}"),
        }
    }
}

impl fmt::Display for NoPatch {
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
    /// Whether it is a request to the API server that changes the pod's status.
    #[must_use]
    pub const fn is_patch(&self) -> bool {
        self.patched().is_some()
    }

    /// The pod whose status it changes.
    pub(crate) const fn patched(&self) -> Option<&PodKey> {
        match self {
            Self::PatchNnn { pod, .. } | Self::ClearNnn { pod } | Self::PatchConditionAndNnn { pod, .. } => Some(pod),
            _ => None,
        }
    }

    /// The condition that it writes.
    pub(crate) const fn written_condition(&self) -> Option<&ScheduledCondition> {
        match self {
            Self::PatchConditionAndNnn { condition, .. } => Some(condition),
            _ => None,
        }
    }

    /// What it writes into `status.nominatedNodeName`, if it does: the pod, and the node or none.
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
