//! Plans of moves: steps in an order in which each is feasible, and what has to be kept meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_attrs::Index;
use dra_device::claims::ClaimKey;
use dra_device::internal::controller;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceSlice};

use crate::autoscaler::NodeTemplate;
use crate::pods::{ClaimLookup, ClaimTracker, PodIdentity, PodOptions};

/// Label with the name of a node, which a copy has its own value of.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// A pod that gets another place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PodMove {
    /// The pod.
    pub pod: PodIdentity,
    /// UID of the controller that makes another pod in place of this one; `None` without one.
    pub controller: Option<String>,
    /// Name of the node that it leaves; `None` for a pod that waits.
    pub from: Option<String>,
    /// Name of the node that it gets; `None` if it is evicted and waits.
    pub to: Option<String>,
    /// Claims of the pod with the allocations that they get.
    pub results: Vec<(ClaimKey, AllocationResult)>,
}

impl PodMove {
    pub(super) fn new(pod: &Pod, options: PodOptions, from: Option<&str>, to: Option<&str>) -> Self {
        Self {
            pod: PodIdentity::new(pod, options),
            controller: controller(&pod.metadata).map(|owner| owner.uid.clone()),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            results: Vec::new(),
        }
    }
}

/// A node that does not exist yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewNode {
    /// Position of the offer.
    pub offer: Index<NodeTemplate>,
    /// Price of the node, in the caller's unit.
    pub price: u64,
    /// The node.
    pub node: Node,
    /// Slices that come with the node.
    pub slices: Vec<Arc<ResourceSlice>>,
    /// Pods of daemon sets that it runs. They get their devices before any other pod comes.
    pub daemons: Vec<NewDaemon>,
}

/// Pod of a daemon set on a node that does not exist yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewDaemon {
    /// The pod as its daemon set would make it.
    pub pod: Pod,
    /// Claims that are made for it, without allocation.
    pub claims: Vec<ResourceClaim>,
    /// Its place, with the devices that it gets.
    pub place: PodMove,
}

impl NewDaemon {
    /// Makes the claims of the pod known where they are not there yet.
    pub(super) fn make_claims(claims: &[ResourceClaim], tracker: &mut ClaimTracker) {
        for claim in claims {
            let key = ClaimKey::from_metadata(&claim.metadata);
            if tracker.claim(&key.namespace, &key.name).is_none() {
                // Without an allocation there is nothing to read, and so nothing to fail.
                let _ = tracker.observe(claim.clone());
            }
        }
    }
}

impl NewNode {
    /// Returns the name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Quality of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveProof {
    /// No other plan costs less.
    Least,
    /// Other plans may cost less, but no less than this.
    AtLeast {
        /// Lower bound of the cost, or of the price of new nodes.
        cost: u64,
    },
}

/// Moves in waves, with the nodes that come before and go after them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MovePlan {
    /// Nodes that come first.
    pub new_nodes: Vec<NewNode>,
    /// Moves, in an order in which each pod finds its devices free. Those of a wave may be made at once: budgets allow it.
    pub waves: Vec<Vec<PodMove>>,
    /// Pods that fit after the moves, with their places.
    pub placed: Vec<PodMove>,
    /// Names of the nodes that are empty afterwards and go.
    pub removed: Vec<String>,
    /// UIDs of the pods that the controllers of the moved pods had. Others of theirs have been made since.
    pub known_pods: BTreeSet<String>,
    /// Sum of what the moves cost.
    pub cost: u64,
    /// Sum of the prices of new nodes.
    pub price: u64,
    /// Quality of the plan.
    pub proof: MoveProof,
}

/// A step of a plan. Each is feasible once those before it are made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever carries a plan out handles each kind of step")]
pub enum PlanStep<'p> {
    /// Create a node, and wait for its slices, and until the pods of daemon sets on it have their devices.
    Create(&'p NewNode),
    /// Cordon a node that will go.
    Cordon(&'p str),
    /// Evict these pods, and wait until those that replace them run.
    Move(&'p [PodMove]),
    /// Let these pods be scheduled.
    Place(&'p [PodMove]),
    /// Remove a node.
    Remove(&'p str),
}

/// Condition that has to hold while a plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveGuard {
    /// A node takes no pod: it will go.
    Cordoned {
        /// Name of the node.
        node: String,
    },
    /// The devices of a move stay free for its pod: nominate the pod for the node, or keep others away by a taint.
    Reserved {
        /// Name of the node.
        node: String,
        /// The pod.
        pod: PodIdentity,
    },
}

impl MovePlan {
    /// Returns the steps in their order: new nodes first, then cordons, moves, the pods that were to fit, and the nodes that go.
    pub fn steps(&self) -> impl Iterator<Item = PlanStep<'_>> {
        let created = self.new_nodes.iter().map(PlanStep::Create);
        let cordoned = self.removed.iter().map(|node| PlanStep::Cordon(node));
        let moves = self.waves.iter().map(|wave| PlanStep::Move(wave));
        let placed = (!self.placed.is_empty()).then_some(PlanStep::Place(&self.placed));
        let removed = self.removed.iter().map(|node| PlanStep::Remove(node));
        created.chain(cordoned).chain(moves).chain(placed).chain(removed)
    }

    /// Returns what has to be kept from the begin of the plan to its end.
    pub fn guards(&self) -> impl Iterator<Item = MoveGuard> {
        let cordoned = self.removed.iter().map(|node| MoveGuard::Cordoned { node: node.clone() });
        let reserved = self
            .waves
            .iter()
            .flatten()
            .chain(&self.placed)
            .filter_map(|one| Some(MoveGuard::Reserved { node: one.to.clone()?, pod: one.pod.clone() }));
        cordoned.chain(reserved)
    }

    /// Returns all moves in their order.
    pub(super) fn moves(&self) -> impl Iterator<Item = &PodMove> {
        self.waves.iter().flatten().chain(&self.placed)
    }

    /// Gives a new node of the plan the name that it has got, so that [`MovePlan::check`] finds it. Returns false if the plan has no
    /// new node with the first name.
    ///
    /// Whoever creates nodes rarely chooses their names, and the plan can't know them. The moves to the node lose their
    /// allocations: these name pools of the planned node.
    ///
    /// # Complexity
    /// Linear in the moves of the plan.
    pub fn name_node(&mut self, planned: &str, name: &str) -> bool {
        let Some(new) = self.new_nodes.iter_mut().find(|new| new.name() == planned) else { return false };
        let metadata = &mut new.node.metadata;
        metadata.name = Some(name.to_owned());
        if let Some(label) = metadata.labels.as_mut().and_then(|labels| labels.get_mut(HOSTNAME)) {
            name.clone_into(label);
        }
        for slice in new.slices.iter_mut().filter(|slice| slice.spec.node_name.is_some()) {
            Arc::make_mut(slice).spec.node_name = Some(name.to_owned());
        }
        let daemons = self.new_nodes.iter_mut().flat_map(|new| &mut new.daemons).map(|daemon| &mut daemon.place);
        for moved in daemons.chain(self.waves.iter_mut().flatten()).chain(&mut self.placed) {
            if moved.to.as_deref() == Some(planned) {
                moved.to = Some(name.to_owned());
                moved.results.clear();
            }
        }
        true
    }

    pub(super) const fn new() -> Self {
        Self {
            new_nodes: Vec::new(),
            waves: Vec::new(),
            placed: Vec::new(),
            removed: Vec::new(),
            known_pods: BTreeSet::new(),
            cost: 0,
            price: 0,
            proof: MoveProof::AtLeast { cost: 0 },
        }
    }
}
