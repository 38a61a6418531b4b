//! Answers of preemption, as data.

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::AllocationResult;

use super::eligibility::Eligibility;
use super::harm_value::HarmValue;
use crate::pods::{ClaimCalls, ClaimLookup, ClaimTracker, ClaimWrite, PodIdentity, deallocated};

/// Answer of [`Preemption::make_room`](super::Preemption::make_room), and of
/// [`Preemption::make_room_for_gang`](super::Preemption::make_room_for_gang).
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is room or there is none")]
pub enum PreemptionAnswer {
    /// The pod, or the gang, fits once these victims are gone.
    Room(Box<Room>),
    /// Nobody makes room.
    NoRoom(NoRoom),
}

/// Room for a pod on a node, or for a gang on several: the victims, and all that has to be written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Room {
    /// Node of each pod that gets room, for which it is to be nominated, the most important pod first.
    pub places: Vec<PodPlace>,
    /// Pods that have to go, the most important first. None if the pod fits as it is, which kube-scheduler's rule does not
    /// say.
    pub victims: Vec<PodIdentity>,
    /// Number of victims that a disruption budget does not allow.
    pub violations: usize,
    /// Claims that are free once the victims are gone, sorted.
    pub freed: Vec<ClaimKey>,
    /// Claims that nobody uses and that hold devices which the pods need, sorted.
    pub idle: Vec<ClaimKey>,
    /// Claims whose allocation the caller has to take back by a write, sorted: those that nobody uses, and those of victims
    /// that were never bound. Nobody else would do it.
    pub deallocate: Vec<ClaimKey>,
    /// Claims of the pods with the allocations that they get then: pod after pod, in the order of its entries.
    pub results: Vec<(ClaimKey, AllocationResult)>,
    /// Harm of the victims; `None` for kube-scheduler's rule.
    pub value: Option<HarmValue>,
    /// Nodes with the victims on them, of which this room is the best, by name; for a pod by kube-scheduler's rule.
    pub candidates: Vec<PreemptionCandidate>,
    /// Quality of the choice.
    pub proof: HarmProof,
}

/// A pod with its node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodPlace {
    /// The pod.
    pub pod: PodIdentity,
    /// Name of the node.
    pub node: String,
}

impl Room {
    /// Returns the name of the node; for a gang that of the first pod.
    #[must_use]
    pub fn node(&self) -> &str {
        self.places.first().map(|place| place.node.as_str()).unwrap_or_default()
    }

    /// Returns the calls that take back the allocations of [`Room::deallocate`]. A claim that the tracker does not know, or that
    /// somebody uses by now, keeps its allocation.
    ///
    /// # Complexity
    /// A look-up for each of the claims.
    pub fn calls(&self, tracker: &ClaimTracker) -> ClaimCalls {
        let known = self.deallocate.iter().filter_map(|key| tracker.claim(&key.namespace, &key.name));
        let is_victim = |uid: &str| self.victims.iter().any(|victim| victim.uid == uid);
        let mut calls = ClaimCalls::default();
        for claim in known {
            let mut users = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            if users.all(|user| is_victim(&user.uid)) {
                calls.push(ClaimWrite::UpdateStatus { claim: Box::new(deallocated(claim)) });
            }
        }
        calls
    }
}

/// A node on which victims would make room, by kube-scheduler's rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreemptionCandidate {
    /// Name of the node.
    pub node: String,
    /// Pods that would have to go, the most important first.
    pub victims: Vec<PodIdentity>,
    /// Number of them that a disruption budget does not allow.
    pub violations: usize,
}

/// Quality of a choice of victims. Of none of them a victim can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HarmProof {
    /// Kube-scheduler's rule has chosen.
    Greedy,
    /// No other choice has less harm.
    Least,
    /// No other choice has less harm, as far as the caller's check of nodes goes ([`Preemption::with_fit`]): with more pods gone it
    /// must not turn from yes to no.
    ///
    /// [`Preemption::with_fit`]: super::Preemption::with_fit
    LeastByCallersFit,
    /// Not all choices were compared: the work on a node was used up, or a gang's members could divide devices that several of their
    /// nodes see in other ways.
    Irreducible {
        /// No choice has less harm than this.
        bound: HarmValue,
    },
}

/// Reason why nobody makes room for a pod or a gang.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoRoom {
    /// The gate `DRAPreemption` is off.
    GateOff,
    /// The pod, or a member of the gang, may not preempt others.
    MayNotPreempt(Eligibility),
    /// The pod fits on no node, whoever goes; nor does the gang on all of its nodes.
    Hopeless,
    /// Somebody who may not go is in the way.
    Blocked {
        /// Those who are in the way on one node, or on a gang's nodes, such that the devices suffice without them: of the node with
        /// the fewest of them.
        by: Vec<Blocker>,
    },
    /// No places were found for the gang, and it is not known that there are none: members could divide devices that several of
    /// their nodes see in other ways.
    Open,
    /// The work was used up, or the caller stopped it.
    Stopped {
        /// The best choice that was found before.
        best: Option<Box<Room>>,
    },
}

/// Somebody in the way of a pod who may not go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Blocker {
    /// A pod that is as important as the preemptor, or more.
    Priority {
        /// The pod.
        pod: PodIdentity,
        /// Claim through which the pod is in the way, unless it is used by this pod alone.
        claim: Option<ClaimKey>,
    },
    /// A claim that a pod group uses.
    Group {
        /// The claim.
        claim: ClaimKey,
    },
    /// A claim with a device that other nodes reach, too.
    Reach {
        /// The claim.
        claim: ClaimKey,
    },
    /// A claim that is reserved for somebody who is not on the node, or not there.
    Consumer {
        /// The claim.
        claim: ClaimKey,
        /// UID of the consumer.
        uid: String,
    },
    /// A disruption budget that does not allow the eviction of pods.
    Budget {
        /// Namespace of the budget.
        namespace: String,
        /// Name of the budget.
        name: String,
    },
    /// A claim that is allocated and that nobody uses yet.
    InFlight {
        /// The claim.
        claim: ClaimKey,
    },
    /// The caller's check of nodes refuses, though all who may go are gone and the devices are free.
    Fit {
        /// Reason that the check gives.
        reason: String,
    },
}
