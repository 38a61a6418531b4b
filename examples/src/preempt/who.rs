//! The question who would have to go so that a pod fits.

use std::fmt;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodIdentity;
use dra_alloc::preemption::{
    Blocker, Eligibility, Harm, HarmProof, NoRoom, Preemption, PreemptionAnswer, PreemptionView, Room,
};
use dra_alloc::{AllocatedState, Allocator, Budget, allocated_devices};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

/// Largest number of pods or claims that a line names.
const MOST_NAMED: usize = 4;

/// Cluster in which pods make room for others.
pub struct WhoGoes<'c> {
    allocator: &'c Allocator<'c>,
    state: &'c AllocatedState,
    view: PreemptionView<'c>,
    pods: Vec<&'c Pod>,
    claims: Vec<&'c ResourceClaim>,
    /// True if there are disruption budgets.
    has_budgets: bool,
    now: Timestamp,
}

/// Answer to the question who would have to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "answer")]
#[non_exhaustive]
pub enum MadeRoom {
    /// The pod fits once these are gone.
    #[serde(rename_all = "camelCase")]
    Room {
        /// Node on which it fits.
        node: String,
        /// Pods that would have to go, the most important first.
        victims: Vec<Victim>,
        /// Claims that nobody uses, and whose devices the pod needs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        idle: Vec<String>,
        /// Number of victims that a disruption budget protects; none if there are no budgets.
        #[serde(skip_serializing_if = "Option::is_none")]
        violations: Option<usize>,
        /// Quality of the choice.
        proof: HarmSaid,
    },
    /// Somebody who may not go is in the way.
    InTheWay {
        /// Those in the way on the node with the fewest of them.
        by: Vec<String>,
    },
    /// The pod fits on no node, whoever goes.
    Hopeless,
    /// The pod may not preempt others.
    MayNot {
        /// Reason.
        reason: String,
    },
    /// The question has no answer: it would take too long, or something in the cluster is invalid.
    Unknown {
        /// Reason.
        reason: String,
    },
}

/// Quality of a choice of victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum HarmSaid {
    /// No other choice does less harm.
    Least,
    /// Kube-scheduler's rule has chosen: others may do less harm.
    Greedy,
    /// The search was stopped before all choices were compared.
    Open,
}

/// Rule by which somebody would have to go, and its answer.
///
/// Displays one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuledRoom {
    /// Rule.
    pub rule: Rule,
    /// Answer.
    #[serde(flatten)]
    pub room: MadeRoom,
}

/// Rule by which victims are chosen, as programs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Rule {
    /// The least harm of all nodes and sets of pods, by the criteria of kube-scheduler.
    Least,
    /// That of kube-scheduler, as KEP-5690 applies it to devices.
    Kube,
    /// Both, with one answer.
    Each,
}

/// Detail with which it is told who would have to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a flag is given or not")]
pub enum Who {
    /// The pods that would make room with the least harm, if there are any.
    #[default]
    Room,
    /// The answer of each rule, and who is in the way if nobody may go.
    Whole,
}

/// Pod that would have to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Victim {
    /// Namespace and name.
    pub pod: String,
    /// Priority.
    pub priority: i32,
    /// Number of devices that its claims hold.
    pub devices: usize,
}

impl<'c> WhoGoes<'c> {
    /// Takes the objects of a cluster: all nodes, pods and claims, and the devices in use.
    pub fn new(
        allocator: &'c Allocator<'c>,
        state: &'c AllocatedState,
        nodes: impl IntoIterator<Item = &'c Node>,
        pods: impl IntoIterator<Item = &'c Pod>,
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
        now: Timestamp,
    ) -> Self {
        let (pods, claims): (Vec<&Pod>, Vec<&ResourceClaim>) =
            (pods.into_iter().collect(), claims.into_iter().collect());
        let view = PreemptionView::new(nodes, pods.iter().copied(), claims.iter().copied());
        Self { allocator, state, view, pods, claims, has_budgets: false, now }
    }

    /// Adds disruption budgets and pod groups.
    #[must_use]
    pub fn with_guards(self, budgets: &'c [PodDisruptionBudget], groups: &'c [PodGroup]) -> Self {
        let view = self.view.with_budgets(budgets).with_groups(groups);
        Self { view, has_budgets: !budgets.is_empty(), ..self }
    }

    /// Asks for a pod with the detail of a program. Nodes of `kept_off` can't run the pod for other reasons than devices.
    #[must_use]
    pub fn tell(&self, pod: &Pod, who: Who, kept_off: &[&str], budget: Budget<'_>) -> Vec<RuledRoom> {
        let ask = |rule, harm| RuledRoom { rule, room: self.ask(pod, harm, kept_off.iter().copied(), budget) };
        let least = ask(Rule::Least, Harm::KubeExact);
        match who {
            Who::Room if matches!(least.room, MadeRoom::Room { .. }) => vec![least],
            Who::Room => Vec::new(),
            Who::Whole => match ask(Rule::Kube, Harm::Kube) {
                kube if kube.room.is_same_choice(&least.room) => vec![RuledRoom { rule: Rule::Each, ..least }],
                kube => vec![least, kube],
            },
        }
    }

    /// Asks for a pod. Nodes of `kept_off` can't run the pod for other reasons than devices.
    pub fn ask<'n>(
        &'n self,
        pod: &Pod,
        harm: Harm,
        kept_off: impl IntoIterator<Item = &'n str>,
        budget: Budget<'_>,
    ) -> MadeRoom {
        let preemption = Preemption::new(self.allocator, self.state, &self.view, self.now).with_harm(harm);
        match preemption.with_unresolvable(kept_off).make_room(pod, budget) {
            Ok(PreemptionAnswer::Room(room)) => self.room(&room),
            Ok(PreemptionAnswer::NoRoom(reason)) => self.no_room(reason),
            Err(error) => MadeRoom::Unknown { reason: error.to_string() },
        }
    }

    fn room(&self, room: &Room) -> MadeRoom {
        if room.victims.is_empty() && room.idle.is_empty() {
            // For example a claim for extended resources that is not made yet.
            return MadeRoom::Unknown { reason: "its claims are not what keeps it off".to_owned() };
        }
        MadeRoom::Room {
            node: room.node().to_owned(),
            victims: room.victims.iter().map(|pod| self.victim(pod)).collect(),
            idle: room.idle.iter().map(ClaimKey::to_string).collect(),
            violations: self.has_budgets.then_some(room.violations),
            proof: match room.proof {
                HarmProof::Least => HarmSaid::Least,
                HarmProof::Greedy => HarmSaid::Greedy,
                _ => HarmSaid::Open,
            },
        }
    }

    fn no_room(&self, reason: NoRoom) -> MadeRoom {
        match reason {
            NoRoom::Hopeless => MadeRoom::Hopeless,
            NoRoom::Blocked { by } => {
                MadeRoom::InTheWay { by: by.iter().map(|blocker| self.blocker(blocker)).collect() }
            }
            NoRoom::Stopped { best: Some(best) } => self.room(&best),
            NoRoom::Stopped { best: None } => MadeRoom::Unknown { reason: "the search took too long".to_owned() },
            NoRoom::MayNotPreempt(eligibility) => MadeRoom::MayNot { reason: ineligible(eligibility) },
            other => MadeRoom::Unknown { reason: format!("{other:?}") },
        }
    }

    fn victim(&self, identity: &PodIdentity) -> Victim {
        let known = self.pods.iter().find(|pod| pod.metadata.uid.as_deref() == Some(&identity.uid));
        let priority = known.and_then(|pod| pod.spec.as_ref()?.priority).unwrap_or_default();
        let uses = |claim: &&&ResourceClaim| {
            let reserved = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            reserved.into_iter().any(|user| user.uid == identity.uid)
        };
        let devices = self.claims.iter().filter(uses).map(|claim| allocated_devices(claim).len()).sum();
        Victim { pod: format!("{}/{}", identity.namespace, identity.name), priority, devices }
    }

    fn blocker(&self, blocker: &Blocker) -> String {
        match blocker {
            Blocker::Priority { pod, claim } => {
                let Victim { pod, priority, .. } = self.victim(pod);
                let through = claim.as_ref().map(|claim| format!(", by claim {claim}")).unwrap_or_default();
                format!("{pod} (priority {priority}{through})")
            }
            Blocker::Group { claim } => format!("claim {claim}, which a pod group uses"),
            Blocker::Reach { claim } => format!("claim {claim}, with a device that other nodes reach"),
            Blocker::Consumer { claim, uid } => format!("claim {claim}, reserved for {uid}, which is not on the node"),
            Blocker::Budget { namespace, name } => format!("disruption budget {namespace}/{name}"),
            Blocker::InFlight { claim } => format!("claim {claim}, which is being allocated"),
            other => format!("{other:?}"),
        }
    }
}

impl MadeRoom {
    /// Returns true if two answers name the same node and the same pods, whatever is proved of them.
    fn is_same_choice(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Room { node, victims, idle, .. }, Self::Room { node: on, victims: pods, idle: unused, .. }) => {
                (node, victims, idle) == (on, pods, unused)
            }
            _ => self == other,
        }
    }
}

impl fmt::Debug for WhoGoes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WhoGoes").field("pods", &self.pods.len()).finish_non_exhaustive()
    }
}

fn ineligible(eligibility: Eligibility) -> String {
    match eligibility {
        Eligibility::PolicyNever => "its preemptionPolicy is Never".to_owned(),
        Eligibility::TerminatingVictim => "a pod that was preempted for it still terminates".to_owned(),
        Eligibility::DevicesReclaimed => "the devices of a pod that was preempted for it are not free yet".to_owned(),
        other => other.message().map_or_else(|| format!("{other:?}"), str::to_owned),
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, priority, devices } = self;
        let unit = if *devices == 1 { "device" } else { "devices" };
        write!(f, "{pod} (priority {priority}, {devices} {unit})")
    }
}

impl fmt::Display for RuledRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Rule::Least => self.room.fmt(f),
            Rule::Kube => write!(f, "by kube-scheduler's rule: {}", self.room),
            Rule::Each => write!(f, "{}, by kube-scheduler's rule as well", self.room),
        }
    }
}

impl fmt::Display for MadeRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room { node, victims, idle, violations, proof } => {
                write!(f, "would fit on {node}")?;
                if !victims.is_empty() {
                    write!(f, " if {} went", named(victims))?;
                }
                if !idle.is_empty() {
                    let joined = if victims.is_empty() { "if" } else { "and" };
                    let noun = if idle.len() == 1 { "claim" } else { "claims" };
                    write!(f, " {joined} {noun} {}, which nobody uses, were deallocated", named(idle))?;
                }
                match (violations, victims.len()) {
                    (None, _) | (_, 0) => {}
                    (Some(0), _) => f.write_str("; disruption budgets allow it")?,
                    (Some(some), _) => write!(f, "; disruption budgets forbid it for {some} of them")?,
                }
                match proof {
                    HarmSaid::Open => f.write_str("; others may do less harm"),
                    HarmSaid::Least | HarmSaid::Greedy => Ok(()),
                }
            }
            Self::InTheWay { by } => write!(f, "no pod may go for it; in the way: {}", named(by)),
            Self::Hopeless => f.write_str("no pod could make room for it, whoever went"),
            Self::MayNot { reason } => write!(f, "may not preempt others: {reason}"),
            Self::Unknown { reason } => write!(f, "who would have to go is not known: {reason}"),
        }
    }
}

/// Returns the first names, and the number of the others.
fn named<T: fmt::Display>(all: &[T]) -> String {
    let first: Vec<String> = all.iter().take(MOST_NAMED).map(T::to_string).collect();
    match all.len().saturating_sub(MOST_NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
