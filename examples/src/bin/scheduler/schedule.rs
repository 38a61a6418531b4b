//! Example program `scheduler`: allocates pending claims one after the other, each on the first node that can serve it.

pub(crate) mod args;
pub(crate) mod print;

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, Detail, DraGate, GateSet, Inventory, Outcome, Profile,
    SelectorCache, Share, ShareCounter, StateError, Verdict, allocated_devices,
};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use examples::manifest::{Manifests, name_of};

/// Options of a scheduling run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Names of the nodes, in the order in which they are tried; all nodes if empty.
    pub(crate) nodes: Vec<String>,
    /// Feature gates of the scheduler.
    pub(crate) gates: GateSet<DraGate>,
    /// Profile of the rules.
    pub(crate) profile: Profile,
    /// Level of detail of explanations.
    pub(crate) detail: Detail,
}

impl Settings {
    /// Settings of a scheduler with the default gates, which tries all nodes and explains nothing.
    pub(crate) fn new(profile: Profile) -> Self {
        Self { nodes: Vec::new(), gates: GateSet::default(), profile, detail: Detail::default() }
    }
}

/// Claim, with its allocation if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Claim as read, with its new status.
    pub(crate) claim: ResourceClaim,
    /// Result for the claim.
    pub(crate) fate: Fate,
}

/// Result of scheduling a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fate {
    /// The claim was allocated before.
    Before,
    /// The claim was allocated on a node.
    Allocated {
        /// Name of the node.
        node: String,
    },
    /// No node can serve the claim.
    Nowhere {
        /// Names of the nodes that were tried.
        nodes: Vec<String>,
        /// Verdict for each node.
        verdicts: Vec<Verdict>,
    },
    /// The claim can't be allocated on any node.
    Failed(Box<AllocateError>),
}

/// Reason that nothing can be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScheduleError {
    /// A requested node is not among the manifests.
    #[error("no node {name:?}; known: {}", known.join(", "))]
    UnknownNode {
        /// Name of the node.
        name: String,
        /// Names of the known nodes.
        known: Vec<String>,
    },
    /// An existing allocation can't be counted.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Allocates the pending claims in their order; each allocation counts for the later claims.
///
/// Answers are in the order of the claims. The time of an allocation is not set, and share IDs are numbered: equal
/// manifests give equal answers.
///
/// # Errors
/// See [`ScheduleError`].
///
/// ```
/// use examples::manifest::Manifests;
/// use examples::scheduler::{Fate, Settings, schedule};
/// let mut manifests = Manifests::default();
/// manifests.read("claim.yaml", "kind: ResourceClaim\nmetadata: {name: empty}\n---\nkind: Node\nmetadata: {name: a}\n");
/// let answers = schedule(&manifests, &Settings::new(dra_attrs::Profile::V1_37))?;
/// assert_eq!(answers[0].fate, Fate::Allocated { node: "a".to_owned() });
/// # Ok::<(), examples::scheduler::ScheduleError>(())
/// ```
pub(crate) fn schedule(manifests: &Manifests, settings: &Settings) -> Result<Vec<Answer>, ScheduleError> {
    let nodes = chosen_nodes(&manifests.nodes, &settings.nodes)?;
    let mut simulation = Simulation::new(manifests, settings, nodes)?;
    manifests.claims.iter().map(|claim| simulation.answer(claim)).collect()
}

struct Simulation<'a> {
    manifests: &'a Manifests,
    settings: &'a Settings,
    nodes: Vec<&'a Node>,
    inventory: Inventory,
    state: AllocatedState,
    selectors: SelectorCache,
    shares: ShareCounter,
    /// Share IDs of existing allocations.
    taken: BTreeSet<String>,
}

impl<'a> Simulation<'a> {
    fn new(manifests: &'a Manifests, settings: &'a Settings, nodes: Vec<&'a Node>) -> Result<Self, StateError> {
        let slices = manifests.slices.iter().cloned();
        Ok(Self {
            manifests,
            settings,
            nodes,
            inventory: Inventory::new(slices, manifests.taint_rules.iter().cloned().map(Arc::new)),
            state: AllocatedState::from_claims(&manifests.claims, settings.gates)?,
            selectors: SelectorCache::default(),
            shares: ShareCounter::default(),
            taken: manifests.claims.iter().flat_map(share_ids).collect(),
        })
    }

    fn answer(&mut self, claim: &ResourceClaim) -> Result<Answer, ScheduleError> {
        if allocation(claim).is_some() {
            return Ok(Answer { claim: claim.clone(), fate: Fate::Before });
        }
        let mut claim = claim.clone();
        let fate = match self.place(&claim) {
            Err(error) => Fate::Failed(Box::new(error)),
            Ok(Placement::Nowhere(verdicts)) => {
                let nodes = self.nodes.iter().map(|node| name_of(&node.metadata));
                Fate::Nowhere { nodes: nodes.collect(), verdicts }
            }
            Ok(Placement::On(node, results)) => {
                self.state.assume(&results)?;
                claim.status.get_or_insert_default().allocation = results.into_iter().next();
                Fate::Allocated { node }
            }
        };
        Ok(Answer { claim, fate })
    }

    /// Tries the nodes until one can serve the claim.
    fn place(&self, claim: &ResourceClaim) -> Result<Placement, AllocateError> {
        let share_ids = |_: Share<'_>| self.next_share_id();
        let classes = Classes::new(&self.manifests.classes);
        let allocator = Allocator::new(self.settings.profile, &self.inventory, &classes)
            .with_selector_cache(&self.selectors)
            .with_share_ids(&share_ids)
            .with_gates(self.settings.gates)
            .with_explanation(self.settings.detail);
        let mut verdicts = Vec::new();
        for node in &self.nodes {
            let verdict = allocator.allocate(&self.state, node, std::slice::from_ref(claim), Budget::default())?;
            match verdict.outcome {
                Outcome::Allocated(results) => return Ok(Placement::On(name_of(&node.metadata), results)),
                _ => verdicts.push(verdict),
            }
        }
        Ok(Placement::Nowhere(verdicts))
    }

    /// Returns an unused share ID: two shares of one ID would count as one.
    fn next_share_id(&self) -> String {
        loop {
            let id = self.shares.next_id();
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }
}

enum Placement {
    On(String, Vec<AllocationResult>),
    Nowhere(Vec<Verdict>),
}

fn chosen_nodes<'a>(nodes: &'a [Node], names: &[String]) -> Result<Vec<&'a Node>, ScheduleError> {
    if names.is_empty() {
        return Ok(nodes.iter().collect());
    }
    let chosen = names.iter().map(|name| {
        let node = nodes.iter().find(|node| name_of(&node.metadata) == *name);
        node.ok_or_else(|| {
            let known = nodes.iter().map(|node| name_of(&node.metadata)).collect();
            ScheduleError::UnknownNode { name: name.clone(), known }
        })
    });
    chosen.collect()
}

fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

fn share_ids(claim: &ResourceClaim) -> impl Iterator<Item = String> {
    allocated_devices(claim).iter().filter_map(|result| result.share_id.clone())
}
