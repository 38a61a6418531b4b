//! Allocation of pending claims in their order, those of one pod together, on the first node that can serve all of them.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::claims::ClaimKey;
use dra_alloc::declared_features::{CandidateNodes, DeclaredFeature};
use dra_alloc::explain::Detail;
use dra_alloc::kubelet::ClaimCache;
use dra_alloc::objective::{ChoiceReason, Objective};
use dra_alloc::pods::PodExplanation;
use dra_alloc::selector::SelectorCache;
use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, GateSet, Inventory, Outcome, Profile, StateError,
    Verdict,
};
use dra_attrs::{Component, Version};
use examples::candidates::candidates;
use examples::manifest::{Manifests, name_of};
use examples::placing::Rank;
use examples::room::RoomError;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

/// Largest work for the claims of a pod, over all nodes: some seconds.
const WORK_PER_POD: u64 = 20_000_000;

/// Options of a scheduling run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Names of the nodes, in the order in which they are tried; all nodes if empty.
    pub(crate) nodes: Vec<String>,
    /// Feature gates of the scheduler.
    pub(crate) gates: GateSet,
    /// Profile of the rules.
    pub(crate) profile: Profile,
    /// Level of detail of explanations.
    pub(crate) detail: Detail,
    /// Version of the scheduler.
    pub(crate) version: Version,
    /// True if a pod goes where the least room is left.
    pub(crate) best_fit: bool,
    /// Rule by which devices are chosen on a node.
    pub(crate) objective: Objective,
}

impl Settings {
    /// Settings of a scheduler with the default gates, which tries all nodes and explains nothing.
    pub(crate) fn new(profile: Profile, version: Version) -> Self {
        Self {
            nodes: Vec::new(),
            gates: GateSet::of(Profile::V1_37),
            profile,
            detail: Detail::default(),
            version,
            best_fit: false,
            objective: Objective::default(),
        }
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

impl Answer {
    /// Answer for a claim that is left as it was read.
    fn before(claim: &ResourceClaim) -> Self {
        Self { claim: claim.clone(), fate: Fate::Before }
    }
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
        /// Reason why the devices are better than the first ones that fit. Claims of one pod have it together.
        choice: Option<ChoiceReason>,
    },
    /// No node can serve the claim.
    Nowhere {
        /// Names of the nodes that were tried.
        nodes: Vec<String>,
        /// Verdict for each node.
        verdicts: Vec<Verdict>,
        /// Nodes that could serve the claims, but do not declare a feature that the allocation requires.
        undeclared: CandidateNodes,
        /// Reasons of nodes that the pod may not use apart from devices.
        kept_off: PodExplanation,
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
    /// An amount of a node or a pod is not a quantity.
    #[error(transparent)]
    Amount(#[from] RoomError),
}

/// Allocates the pending claims in their order; each allocation counts for the later claims. All claims of a pod are
/// allocated together, on one node; claims that are allocated already keep their allocation and bind the pod to its nodes.
///
/// Answers are in the order of the claims. The time of an allocation is not set: equal manifests give equal answers.
///
/// # Errors
/// See [`ScheduleError`].
pub(crate) fn schedule(manifests: &Manifests, settings: &Settings) -> Result<Schedule, ScheduleError> {
    let nodes = chosen_nodes(&manifests.nodes, &settings.nodes)?;
    let mut simulation = Simulation::new(manifests, settings, nodes)?;
    let groups = groups(manifests, settings.profile);
    for group in &groups {
        simulation.place_group(group)?;
    }
    let restricted = groups.iter().filter_map(|group| simulation.restricted(group)).collect();
    Ok(Schedule { answers: simulation.answers, restricted })
}

/// Result of a scheduling run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// Answers in the order of the claims.
    pub(crate) answers: Vec<Answer>,
    /// Pods that may run only on nodes that declare a feature.
    pub(crate) restricted: Vec<RestrictedPod>,
}

/// Pod that may run only on nodes that declare a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestrictedPod {
    /// Pod, as `namespace/name`.
    pub(crate) pod: String,
    /// Nodes that declare the feature, and the others.
    pub(crate) nodes: CandidateNodes,
}

/// Claims that need one node.
struct Group<'a> {
    /// Pod that uses the claims.
    pod: Option<&'a Pod>,
    /// Positions of the claims, sorted.
    claims: Vec<usize>,
}

/// Returns the groups of claims that need one node: the claims of each pod, and each claim that no pod uses.
fn groups(manifests: &Manifests, profile: Profile) -> Vec<Group<'_>> {
    let options = Component::of(profile);
    let mut positions: BTreeMap<ClaimKey, Vec<usize>> = BTreeMap::new();
    for (index, claim) in manifests.claims.iter().enumerate() {
        positions.entry(ClaimKey::from_metadata(&claim.metadata)).or_default().push(index);
    }
    let mut groups = Vec::new();
    for pod in &manifests.pods {
        let claims = ClaimCache::claims_of_pod(pod, options).filter_map(Result::ok).map(|used| used.claim);
        let found: BTreeSet<usize> = claims.filter_map(|claim| positions.get(&claim)).flatten().copied().collect();
        if !found.is_empty() {
            groups.push(Group { pod: Some(pod), claims: found.into_iter().collect() });
        }
    }
    let used: BTreeSet<usize> = groups.iter().flat_map(|group| &group.claims).copied().collect();
    let unused = (0..manifests.claims.len()).filter(|claim| !used.contains(claim));
    groups.extend(unused.map(|claim| Group { pod: None, claims: vec![claim] }));
    groups.sort_by_key(|group| group.claims.first().copied());
    groups
}

struct Simulation<'a> {
    settings: &'a Settings,
    nodes: Vec<&'a Node>,
    inventory: Inventory,
    classes: Classes,
    state: AllocatedState,
    selectors: SelectorCache,
    /// Answers so far, in the order of the claims.
    answers: Vec<Answer>,
}

impl<'a> Simulation<'a> {
    fn new(manifests: &'a Manifests, settings: &'a Settings, nodes: Vec<&'a Node>) -> Result<Self, StateError> {
        let rules = manifests.taint_rules.iter().cloned();
        Ok(Self {
            settings,
            nodes,
            inventory: Inventory::new(manifests.slices.iter().cloned()).with_taint_rules(rules),
            classes: Classes::new(manifests.classes.iter().cloned()),
            state: AllocatedState::from_claims(&manifests.claims, Component::new(Profile::V1_37, settings.gates))?,
            selectors: SelectorCache::default(),
            answers: manifests.claims.iter().map(Answer::before).collect(),
        })
    }

    /// Allocates the claims of a group that are still pending, on the first node that can serve all claims of the group.
    fn place_group(&mut self, group: &Group<'_>) -> Result<(), ScheduleError> {
        let is_pending = |answer: &Answer| allocation(&answer.claim).is_none();
        let claims = self.claims(group);
        if claims.iter().all(|claim| allocation(claim).is_some()) {
            return Ok(());
        }
        let (fate, results) = match self.place(group.pod, &claims) {
            Err(error) => (Fate::Failed(Box::new(error)), Vec::new()),
            Ok(Placement::Nowhere { nodes, verdicts, undeclared, kept_off }) => {
                (Fate::Nowhere { nodes, verdicts, undeclared, kept_off }, Vec::new())
            }
            Ok(Placement::On { node, choice, results }) => (Fate::Allocated { node, choice }, results),
        };
        for (position, index) in group.claims.iter().enumerate() {
            let Some(answer) = self.answers.get_mut(*index).filter(|answer| is_pending(answer)) else { continue };
            answer.fate = fate.clone();
            if let Some(result) = results.get(position) {
                self.state.assume(&answer.claim, result)?;
                answer.claim.status.get_or_insert_default().allocation = Some(result.clone());
            }
        }
        Ok(())
    }

    fn claims(&self, group: &Group<'_>) -> Vec<ResourceClaim> {
        let answers = group.claims.iter().filter_map(|index| self.answers.get(*index));
        answers.map(|answer| answer.claim.clone()).collect()
    }

    /// Tries the nodes until one can serve the claims; with an objective, all, for the one where the devices are best. What the pod requires of its node is inferred from the allocation
    /// on each node, before the pod is bound there.
    fn place(&self, pod: Option<&Pod>, claims: &[ResourceClaim]) -> Result<Placement, AllocateError> {
        let allocator =
            Allocator::new(Component::new(self.settings.profile, self.settings.gates), &self.inventory, &self.classes)
                .with_selector_cache(&self.selectors)
                .with_explanation(self.settings.detail)
                .with_objective(&self.settings.objective);
        let (mut nodes, mut verdicts, mut undeclared) = (Vec::new(), Vec::new(), CandidateNodes::default());
        let mut work = WORK_PER_POD;
        let nodes_of_all = self.nodes.iter().copied();
        let (usable, kept_off) = match pod {
            Some(pod) => candidates(pod, nodes_of_all),
            None => (nodes_of_all.collect(), PodExplanation::default()),
        };
        let attempt = allocator.attempt(&self.state, claims);
        let mut best: Option<(Rank, Placement)> = None;
        for node in usable {
            let verdict = attempt.allocate(node, Budget::default().with_work_per_call(work))?;
            work = work.saturating_sub(verdict.work);
            let Outcome::Allocated(results) = verdict.outcome else {
                nodes.push(name_of(&node.metadata));
                verdicts.push(verdict);
                continue;
            };
            let feature = pod.and_then(|pod| self.required_feature(pod, &with_results(claims, &results)));
            let candidate = CandidateNodes::from_nodes([node], feature.as_slice());
            if !candidate.rejected.is_empty() {
                undeclared.rejected.extend(candidate.rejected);
                continue;
            }
            let rank = Rank::new(0, verdict.score.as_deref());
            if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                let choice = verdict.score.and_then(|score| score.reason);
                best = Some((rank, Placement::On { node: name_of(&node.metadata), choice, results }));
            }
            if self.settings.objective.is_empty() {
                break;
            }
        }
        let nowhere = || Placement::Nowhere { nodes, verdicts, undeclared, kept_off };
        Ok(best.map_or_else(nowhere, |(_, placement)| placement))
    }

    /// Returns the feature that the pod requires of its node, inferred from its allocated claims.
    fn required_feature(&self, pod: &Pod, claims: &[ResourceClaim]) -> Option<&'static str> {
        let feature = DeclaredFeature::new(self.settings.profile);
        let of_claim = || claims.iter().find_map(|claim| feature.required_by_claim(claim));
        feature.required_by(pod, claims, &self.settings.version).or_else(of_claim)
    }

    /// Returns the pod of a group with the nodes that it may run on, if it requires a feature.
    fn restricted(&self, group: &Group<'_>) -> Option<RestrictedPod> {
        let pod = group.pod?;
        let feature = self.required_feature(pod, &self.claims(group))?;
        let nodes = CandidateNodes::from_nodes(self.nodes.iter().copied(), &[feature]);
        Some(RestrictedPod { pod: name_of(&pod.metadata), nodes })
    }
}

/// Returns the claims with new allocations, in the order of the claims. A claim that has an allocation keeps it.
fn with_results(claims: &[ResourceClaim], results: &[AllocationResult]) -> Vec<ResourceClaim> {
    let mut claims = claims.to_vec();
    for (claim, result) in claims.iter_mut().zip(results) {
        claim.status.get_or_insert_default().allocation.get_or_insert_with(|| result.clone());
    }
    claims
}

enum Placement {
    On { node: String, choice: Option<ChoiceReason>, results: Vec<AllocationResult> },
    Nowhere { nodes: Vec<String>, verdicts: Vec<Verdict>, undeclared: CandidateNodes, kept_off: PodExplanation },
}

pub(crate) fn chosen_nodes<'a>(nodes: &'a [Node], names: &[String]) -> Result<Vec<&'a Node>, ScheduleError> {
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

pub(crate) fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}
