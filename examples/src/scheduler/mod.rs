//! The example program `scheduler`: pending claims are allocated one after the other, each on the first node that can
//! serve it.

pub mod args;
pub mod print;

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::allocated::of_claim;
use dra_alloc::allocator::Allocator;
use dra_alloc::budget::Budget;
use dra_alloc::error::AllocateError;
use dra_alloc::explain::Detail;
use dra_alloc::features::Features;
use dra_alloc::inventory::Inventory;
use dra_alloc::outcome::{Outcome, Verdict};
use dra_alloc::result::{Share, ShareCounter};
use dra_alloc::selector::SelectorCache;
use dra_alloc::state::{AllocatedState, StateError};
use dra_attrs::profile::Profile;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use crate::manifest::{Manifests, name_of};

/// How to schedule.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Nodes by name, in the order in which they are tried; all nodes if empty.
    pub nodes: Vec<String>,
    /// What is on.
    pub features: Features,
    /// Which text is followed.
    pub profile: Profile,
    /// How much is said about a "no".
    pub detail: Detail,
}

/// A claim, with its allocation if it has one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The claim.
    pub claim: ResourceClaim,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fate {
    /// It was allocated already.
    Before,
    /// It was allocated on a node.
    Allocated {
        /// The node's name.
        node: String,
    },
    /// Each node said "no".
    Nowhere {
        /// The nodes that were tried.
        nodes: Vec<String>,
        /// The answer of each.
        verdicts: Vec<Verdict>,
    },
    /// It can't be allocated, whatever the node.
    Failed(Box<AllocateError>),
}

/// Why nothing can be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A node was asked for that is not among the manifests.
    #[error("no node {name:?}; known: {}", known.join(", "))]
    UnknownNode {
        /// The name.
        name: String,
        /// The nodes that there are.
        known: Vec<String>,
    },
    /// An allocation can't be counted.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Allocates the pending claims in their order, and remembers what it allocated.
///
/// Answers come in the order of the claims. The time of an allocation is not set, and ids of shares are counted: the same
/// manifests give the same answers.
///
/// # Errors
/// See [`ScheduleError`].
///
/// ```
/// use examples::manifest::Manifests;
/// use examples::scheduler::{Fate, Settings, schedule};
/// let mut manifests = Manifests::default();
/// manifests.read("claim.yaml", "kind: ResourceClaim\nmetadata: {name: empty}\n---\nkind: Node\nmetadata: {name: a}\n");
/// let answers = schedule(&manifests, &Settings::default())?;
/// assert_eq!(answers[0].fate, Fate::Allocated { node: "a".to_owned() });
/// # Ok::<(), examples::scheduler::ScheduleError>(())
/// ```
pub fn schedule(manifests: &Manifests, settings: &Settings) -> Result<Vec<Answer>, ScheduleError> {
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
    /// Ids of shares that were there before.
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
            state: AllocatedState::from_claims(&manifests.claims, settings.features)?,
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
        let allocator =
            Allocator::new(&self.inventory, &self.manifests.classes, &self.state, &self.selectors, &share_ids)
                .with_features(self.settings.features)
                .with_profile(self.settings.profile)
                .explaining(self.settings.detail);
        let mut verdicts = Vec::new();
        for node in &self.nodes {
            let verdict = allocator.allocate(node, std::slice::from_ref(claim), Budget::default())?;
            match verdict.outcome {
                Outcome::Allocated(results) => return Ok(Placement::On(name_of(&node.metadata), results)),
                _ => verdicts.push(verdict),
            }
        }
        Ok(Placement::Nowhere(verdicts))
    }

    /// An id that no share has: two shares of one id would count as one.
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
    of_claim(claim).iter().filter_map(|result| result.share_id.clone())
}
