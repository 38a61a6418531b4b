//! Places of pods: one workload after the other, each pod on the first node that can run it.
//!
//! The pods of a workload are alike, and nothing is given back meanwhile: a node that has refused one of them refuses all that
//! follow, and is not asked again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dra_alloc::explain::{Detail, Suggestion};
use dra_alloc::objective::Objective;
use dra_alloc::pods::{
    BindStep, ClaimTracker, ClaimWrite, CycleClaim, GroupRound, PodCycle, PodExplanation, PodOptions, PreBind,
    pre_enqueue,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Classes, DeviceId, Gate, Inventory};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod, PodExtendedResourceClaimStatus, PodSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use nnn::memory::PodUsage;

use super::accept::{Objects, unknown_claim};
use super::question::{Devices, TermAnswer, terms_of_claims};
use super::{PlacedPod, PlanError, PlannedWorkload, Rules, WaitingPods};
use crate::candidates::candidates;
use crate::claim_store::ClaimStore;
use crate::manifest::{Manifests, name_of};
use crate::placing::{NodeVerdict, Rank, judge, with_shared_budget};
use crate::room::{Room, usage_with_devices};
use crate::workload::{Made, Workload, controller, counted, node_of};

/// Number of nodes that can run a pod among which the best one is chosen, if they are not equal: the least number of
/// kube-scheduler.
const COMPARED: usize = 100;

/// Number of times that all searches of a plan may ask if they go on: once for 16 units of work, which is half a minute.
pub(super) const MOST_QUESTIONS: u64 = 10_000_000;

/// Largest number of suggestions that are told.
const MOST_HELP: usize = 3;

/// Largest number of nodes of which it is told that they were passed over.
const MOST_PASSED_OVER: usize = 3;

/// Time of a plan: nothing of it depends on the time.
pub(super) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Cluster of a plan, with the pods that were placed so far.
pub(super) struct Cluster<'o> {
    pub(super) rules: Rules,
    objective: &'o Objective,
    pub(super) options: PodOptions,
    pub(super) nodes: Vec<Node>,
    /// Positions of the nodes by name.
    by_name: BTreeMap<String, usize>,
    slices: Vec<Arc<ResourceSlice>>,
    pods: Vec<Pod>,
    pub(super) budgets: Vec<PodDisruptionBudget>,
    pub(super) groups: Vec<PodGroup>,
    /// Pods that the plan has placed, by their positions, with their nodes.
    pub(super) placed: Vec<(usize, String)>,
    pub(super) inventory: Inventory,
    pub(super) classes: Classes,
    pub(super) selectors: SelectorCache,
    pub(super) tracker: ClaimTracker,
    store: ClaimStore,
    /// Claims for extended resources, by namespace and name of the pod.
    of_extended_resources: BTreeMap<String, PodExtendedResourceClaimStatus>,
    pub(super) room: Room,
    /// Number of pods for which it was asked who would have to move or go.
    pub(super) asked: usize,
    /// Number of times that searches have asked if they go on.
    pub(super) questions: AtomicU64,
}

/// Nodes that pods of one workload may still use.
pub(super) struct Search {
    /// Nodes that the pods may use apart from devices and room.
    pub(super) usable: Vec<usize>,
    /// Those of them that have refused none of the pods.
    left: VecDeque<usize>,
    /// Reasons of the nodes that they may not use.
    kept_off: PodExplanation,
    /// It was told, with the first pod, which nodes were passed over.
    is_told: bool,
}

/// Reason that a pod has no place.
pub(super) enum NoPlace {
    /// It is told.
    Told(String),
    /// The search for a node failed.
    Failed(String),
    /// No node can run it.
    Nowhere,
}

impl<'o> Cluster<'o> {
    /// Takes the objects of manifests.
    pub(super) fn new(manifests: &mut Manifests, rules: Rules, objective: &'o Objective) -> Result<Self, PlanError> {
        let component = Component::new(rules.profile, rules.gates);
        let (mut tracker, mut store) = (ClaimTracker::new(component), ClaimStore::default());
        for mut claim in take(&mut manifests.claims) {
            let name = name_of(&claim.metadata);
            claim.metadata.uid.get_or_insert(name);
            tracker.observe(store.put(claim))?;
        }
        let slices: Vec<Arc<ResourceSlice>> = take(&mut manifests.slices).into_iter().map(Arc::new).collect();
        let (nodes, pods) = (take(&mut manifests.nodes), take(&mut manifests.pods));
        let names = nodes.iter().enumerate();
        let by_name = names.map(|(index, node)| (node.metadata.name.clone().unwrap_or_default(), index)).collect();
        Ok(Self {
            rules,
            objective,
            options: PodOptions::new(component),
            room: Room::new(&nodes, &pods)?,
            inventory: Inventory::new(slices.iter().cloned()).with_taint_rules(take(&mut manifests.taint_rules)),
            classes: Classes::new(take(&mut manifests.classes)),
            selectors: SelectorCache::default(),
            nodes,
            budgets: take(&mut manifests.budgets),
            groups: take(&mut manifests.pod_groups),
            placed: Vec::new(),
            by_name,
            slices,
            pods,
            tracker,
            store,
            of_extended_resources: BTreeMap::new(),
            asked: 0,
            questions: AtomicU64::new(0),
        })
    }

    /// Returns the remark about a cluster that can't run anything.
    pub(super) fn note(&self) -> Option<String> {
        self.nodes.is_empty().then(|| "no Node among the manifests: no pod has a place".to_owned())
    }

    /// Places the pods of a workload.
    pub(super) fn place(&mut self, workload: &Workload, made: &Made, objects: &Objects, planned: &mut PlannedWorkload) {
        let pods = take(&mut self.pods);
        let (first, own) = (workload.pods.start, pods.get(workload.pods.clone()).unwrap_or_default());
        if let Some(spec) = own.first().and_then(|pod| pod.spec.as_ref()) {
            planned.unchecked = unchecked(spec);
        }
        let refusal = objects.refusal(workload).or_else(|| own.first().and_then(unknown_claim));
        let mut search: Option<Search> = None;
        for (index, pod) in own.iter().enumerate() {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let is_pinned = node_of(pod).is_some();
            let nodes = match &mut search {
                Some(search) if !is_pinned => search,
                search => search.insert(self.search(pod)),
            };
            let failure = refusal.clone().or_else(|| made.failures.get(&name_of(&pod.metadata)).cloned());
            let placed = match failure {
                Some(failure) => Err(NoPlace::Told(failure)),
                None => self.place_pod(pod, nodes),
            };
            match placed {
                Ok(placed) => {
                    self.placed.push((first.saturating_add(index), placed.node.clone()));
                    planned.placed.push(placed);
                }
                Err(NoPlace::Told(reason)) => add_waiting(planned, name, reason),
                Err(NoPlace::Failed(reason)) => {
                    let selectors = self.selectors_of(pod);
                    let waiting = WaitingPods { pods: vec![name], reason, selectors, ..WaitingPods::default() };
                    merge(planned, waiting);
                }
                Err(NoPlace::Nowhere) => {
                    if let Some(known) = planned.waiting.last_mut().filter(|_| !is_pinned) {
                        known.pods.push(name);
                    } else {
                        let waiting = self.explain(pod, nodes, &planned.placed);
                        let (moves, room) = self.others_of(pod, nodes, &pods);
                        merge(planned, WaitingPods { pods: vec![name], moves, room, ..waiting });
                    }
                }
            }
            if workload.one_by_one && !planned.waiting.is_empty() {
                let rest = own.iter().skip(index.saturating_add(1));
                let before = pod.metadata.name.as_deref().unwrap_or_default();
                let reason = format!("not made until {before} is ready");
                for pod in rest {
                    add_waiting(planned, pod.metadata.name.clone().unwrap_or_default(), reason.clone());
                }
                break;
            }
        }
        self.pods = pods;
    }

    /// Finds the nodes that a pod may use apart from devices and room. A pod of a daemon set has one.
    fn search(&self, pod: &Pod) -> Search {
        let one = node_of(pod).map(|node| self.by_name.get(node).copied());
        let nodes: Vec<usize> = match one {
            Some(node) => node.into_iter().collect(),
            None => (0..self.nodes.len()).collect(),
        };
        let (mut usable, mut kept_off) = (Vec::new(), PodExplanation::default());
        for index in nodes {
            let Some(node) = self.nodes.get(index) else { continue };
            let (fitting, reasons) = candidates(pod, std::iter::once(node));
            if fitting.is_empty() {
                kept_off.add(&reasons);
            } else {
                usable.push(index);
            }
        }
        Search { left: usable.iter().copied().collect(), usable, kept_off, is_told: false }
    }

    pub(super) fn allocator(&self) -> Allocator<'_> {
        Allocator::new(Component::new(self.rules.profile, self.rules.gates), &self.inventory, &self.classes)
            .with_selector_cache(&self.selectors)
            .with_objective(self.objective)
    }

    /// Begins the cycle of a pod; none if it has no claims.
    pub(super) fn begin(&self, pod: &Pod) -> Result<Option<PodCycle>, NoPlace> {
        let begun = pre_enqueue(pod, &self.tracker, self.options).and_then(|()| {
            PodCycle::pre_filter(pod, None, &self.tracker, &self.classes, &GroupRound::default(), self.options)
        });
        begun.map_err(|blocked| NoPlace::Told(blocked.to_string()))
    }

    fn place_pod(&mut self, pod: &Pod, search: &mut Search) -> Result<PlacedPod, NoPlace> {
        let spec = pod.spec.clone().unwrap_or_default();
        if let Some(reason) = held_back(&spec) {
            return Err(NoPlace::Told(reason));
        }
        let told = |error: &dyn std::fmt::Display| NoPlace::Told(error.to_string());
        let mut demand = PodUsage::wanted_by(pod).map_err(|error| told(&error))?;
        let mut cycle = self.begin(pod)?;
        let node = self.choose(pod, cycle.as_mut(), &mut demand, search)?;
        let name = self.nodes.get(node).and_then(|node| node.metadata.name.clone()).unwrap_or_default();
        let passed_over = self.passed_over(pod, node, search);
        let (mut devices, mut remarks, mut choice) = (Vec::new(), BTreeMap::new(), None);
        if let Some(mut cycle) = cycle {
            (devices, remarks) = devices_on(&cycle, &name);
            choice = reason_on(&cycle, &name);
            cycle
                .reserve(&name, &mut self.tracker, &mut GroupRound::default())
                .map_err(|error| NoPlace::Told(error.to_string()))?;
            self.bind(cycle).map_err(NoPlace::Told)?;
        }
        self.room.take(&name, &demand);
        let pod = pod.metadata.name.clone().unwrap_or_default();
        Ok(PlacedPod { name: pod, node: name, devices, remarks, choice, passed_over })
    }

    /// Explains, for the first pod of a workload that has a place, why nodes before its own were passed over that would do without
    /// a constraint.
    fn passed_over(&self, pod: &Pod, chosen: usize, search: &mut Search) -> Option<String> {
        if std::mem::replace(&mut search.is_told, true) {
            return None;
        }
        let mut cycle = self.begin(pod).ok().flatten().filter(has_constraints)?;
        let allocator = self.allocator().with_explanation(Detail::Summary);
        let refused =
            search.usable.iter().filter(|index| **index < chosen && search.left.binary_search(index).is_err());
        let refused = refused.filter_map(|index| self.nodes.get(*index)).take(MOST_PASSED_OVER);
        let mut explanation = PodExplanation::default();
        with_shared_budget(&self.questions, MOST_QUESTIONS, |budget| {
            for node in refused {
                let Ok(NodeVerdict::Refused(reasons)) =
                    judge(&mut cycle, node, &allocator, self.tracker.state(), NOW, budget)
                else {
                    continue;
                };
                if changes(&reasons).any(|change| matches!(change, Suggestion::WithoutConstraint { .. })) {
                    explanation.add(&reasons);
                }
            }
        });
        let told = explanation.groups.iter().map(|group| {
            let nodes: Vec<&str> = group.nodes.iter().map(String::as_str).collect();
            format!("{}: {}", nodes.join(", "), group.reason)
        });
        Some(told.collect::<Vec<_>>().join("; ")).filter(|told| !told.is_empty())
    }

    /// Chooses the first node that can run a pod; the best of some if the alternatives of a prioritized list make a difference, or an
    /// objective.
    fn choose(
        &self,
        pod: &Pod,
        mut cycle: Option<&mut PodCycle>,
        demand: &mut PodUsage,
        search: &mut Search,
    ) -> Result<usize, NoPlace> {
        let allocator = self.allocator();
        let differ = |cycle: &PodCycle| has_alternatives(cycle) || !self.objective.is_empty();
        let compared = if cycle.as_deref().is_some_and(differ) { COMPARED } else { 1 };
        let counts_devices = self.rules.gates.has(Gate::NodeAllocatableResources);
        let (mut best, mut fitting, mut position): (Option<(Rank, usize, PodUsage)>, usize, usize) = (None, 0, 0);
        with_shared_budget(&self.questions, MOST_QUESTIONS, |budget| {
            while let Some(index) = search.left.get(position).copied() {
                let Some(node) = self.nodes.get(index) else { break };
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let mut taken = demand.clone();
                let mut rank = self.room.refusal(name, demand, &self.classes).is_none().then(|| Rank::new(0, None));
                if let (Some(_), Some(cycle)) = (&rank, cycle.as_deref_mut()) {
                    rank = match judge(cycle, node, &allocator, self.tracker.state(), NOW, budget) {
                        Ok(NodeVerdict::Fits(rank)) => Some(rank),
                        Ok(NodeVerdict::Refused(_)) => None,
                        Err(error) => return Err(NoPlace::Failed(error.to_string())),
                    };
                    if rank.is_some() && counts_devices {
                        taken = usage_with_devices(pod, cycle, &self.inventory, node).map_err(NoPlace::Told)?;
                        rank = rank.filter(|_| self.room.refusal(name, &taken, &self.classes).is_none());
                    }
                }
                let Some(rank) = rank else {
                    search.left.remove(position);
                    continue;
                };
                if best.as_ref().is_none_or(|(known, ..)| rank < *known) {
                    best = Some((rank, index, taken));
                }
                (fitting, position) = (fitting.saturating_add(1), position.saturating_add(1));
                if fitting >= compared {
                    break;
                }
            }
            Ok(())
        })?;
        let (_, index, taken) = best.ok_or(NoPlace::Nowhere)?;
        *demand = taken;
        Ok(index)
    }

    /// Makes the calls of a binding.
    fn bind(&mut self, mut cycle: PodCycle) -> Result<(), String> {
        let mut binding = PreBind::default();
        loop {
            match binding.next(&mut cycle, &mut self.tracker, NOW) {
                BindStep::Write(write) => {
                    if let ClaimWrite::PatchPodStatus { namespace, name, extended_resource_claim } = &write {
                        let pod = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
                        self.of_extended_resources.insert(pod, (**extended_resource_claim).clone());
                    }
                    let answer = self.store.call(&write);
                    binding.answer(&mut cycle, &mut self.tracker, answer, NOW);
                }
                BindStep::Failed(error) => return Err(error.to_string()),
                // Bound; or its devices are allocated, and it waits for their conditions on its node.
                _ => return Ok(()),
            }
        }
    }

    /// Returns the pods, the claims, and the claims of pods for extended resources by namespace and name of the pod.
    pub(super) fn into_pods_and_claims(
        self,
    ) -> (Vec<Pod>, Vec<ResourceClaim>, BTreeMap<String, PodExtendedResourceClaimStatus>) {
        (self.pods, self.store.claims().values().cloned().collect(), self.of_extended_resources)
    }

    /// Explains why no node can run a pod. `own` are the pods of its workload that have a place.
    fn explain(&self, pod: &Pod, search: &Search, own: &[PlacedPod]) -> WaitingPods {
        let allocator = self.allocator().with_explanation(Detail::Summary);
        let (mut explanation, mut failed) = (search.kept_off.clone(), None);
        let demand = PodUsage::wanted_by(pod).unwrap_or_default();
        let mut cycle = self.begin(pod).ok().flatten();
        // Nodes on which nothing but claims is in the way.
        let mut taken: BTreeSet<String> = BTreeSet::new();
        with_shared_budget(&self.questions, MOST_QUESTIONS, |budget| {
            for node in search.usable.iter().filter_map(|index| self.nodes.get(*index)) {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                if let Some(reason) = self.room.refusal(name, &demand, &self.classes) {
                    explanation.add_other(name, reason);
                    continue;
                }
                let Some(cycle) = &mut cycle else { continue };
                match judge(cycle, node, &allocator, self.tracker.state(), NOW, budget) {
                    Ok(NodeVerdict::Refused(reasons)) => {
                        if changes(&reasons).any(|change| matches!(change, Suggestion::Release)) {
                            taken.insert(name.to_owned());
                        }
                        explanation.add(&reasons);
                    }
                    Ok(NodeVerdict::Fits(_)) => {
                        let taken = usage_with_devices(pod, cycle, &self.inventory, node).unwrap_or_default();
                        let short = self.room.refusal(name, &taken, &self.classes);
                        explanation.add_other(name, short.unwrap_or_else(|| "its devices are gone".to_owned()));
                    }
                    Err(error) => {
                        failed = Some(error.to_string());
                        return;
                    }
                }
            }
        });
        let own = own.iter().filter(|pod| !pod.devices.is_empty() && taken.contains(&pod.node)).count();
        let help = help(&mut explanation, own);
        let reason = failed.unwrap_or_else(|| explanation.to_string());
        WaitingPods { reason, selectors: self.selectors_of(pod), help, ..WaitingPods::default() }
    }

    /// Returns the priority of the pods of a workload.
    pub(super) fn priority(&self, workload: &Workload) -> i32 {
        let pods = self.pods.get(workload.pods.clone()).unwrap_or_default();
        pods.first().and_then(|pod| pod.spec.as_ref()?.priority).unwrap_or_default()
    }

    /// Asks the selectors of the claims of a pod that are not allocated.
    fn selectors_of(&self, pod: &Pod) -> Vec<TermAnswer> {
        let cycle = self.begin(pod).ok().flatten();
        let claims =
            cycle.iter().flat_map(PodCycle::claims).map(CycleClaim::claim).filter(|claim| !is_allocated(claim));
        let devices = Devices::new(self.slices.iter().map(|slice| &**slice));
        terms_of_claims(claims, &self.classes, &devices, self.rules.profile)
    }
}

impl WaitingPods {
    fn is_alike(&self, other: &Self) -> bool {
        self.reason == other.reason
            && self.help == other.help
            && self.selectors == other.selectors
            && self.moves == other.moves
            && self.room == other.room
    }
}

fn add_waiting(planned: &mut PlannedWorkload, name: String, reason: String) {
    merge(planned, WaitingPods { pods: vec![name], reason, ..WaitingPods::default() });
}

/// Adds pods that wait to those which wait for the same reason.
fn merge(planned: &mut PlannedWorkload, waiting: WaitingPods) {
    match planned.waiting.iter_mut().find(|known| known.is_alike(&waiting)) {
        Some(known) => known.pods.extend(waiting.pods),
        None => planned.waiting.push(waiting),
    }
}

/// Takes the suggestions out of an explanation, the one for the most nodes first. `own` is the number of pods of the same workload
/// that hold devices there.
fn help(explanation: &mut PodExplanation, own: usize) -> Vec<String> {
    let mut changes = take(&mut explanation.suggestions);
    changes.sort_by_key(|change| std::cmp::Reverse(change.nodes));
    changes.truncate(MOST_HELP);
    let told = changes.iter().map(|change| {
        let unit = if change.nodes == 1 { "node" } else { "nodes" };
        let own = match change.change {
            Suggestion::Release if own > 0 => {
                format!("; among them {} of this workload above", counted(own, "pod"))
            }
            _ => String::new(),
        };
        format!("possible on {} {unit} {}{own}", change.nodes, change.change)
    });
    let requests: BTreeSet<&str> = changes.iter().filter_map(|change| request_of(&change.change)).collect();
    let in_words = requests.iter().filter_map(|request| Some((request, explanation.extended_requests.get(*request)?)));
    let in_words = in_words.map(|(request, what)| format!("request {request} is {what}"));
    told.chain(in_words).collect()
}

/// Returns the request that a change is about.
fn request_of(change: &Suggestion) -> Option<&str> {
    match change {
        Suggestion::Fewer { at, .. } | Suggestion::Tolerate { at, .. } => Some(&at.request),
        _ => None,
    }
}

/// Returns the changes with which a pod could use nodes.
fn changes(explanation: &PodExplanation) -> impl Iterator<Item = &Suggestion> {
    explanation.suggestions.iter().map(|suggested| &suggested.change)
}

/// Returns true if a claim of the pod has constraints.
fn has_constraints(cycle: &PodCycle) -> bool {
    let mut specs = cycle.claims().iter().filter_map(|claim| claim.claim().spec.as_ref()?.devices.as_ref());
    specs.any(|devices| devices.constraints.as_ref().is_some_and(|list| !list.is_empty()))
}

fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

fn has_alternatives(cycle: &PodCycle) -> bool {
    let requests =
        cycle.claims().iter().filter_map(|claim| claim.claim().spec.as_ref()?.devices.as_ref()?.requests.as_ref());
    requests.flatten().any(|request| request.first_available.is_some())
}

/// Returns the devices that a pod would have on a node, and remarks about them.
fn devices_on(cycle: &PodCycle, node: &str) -> (Vec<String>, BTreeMap<String, String>) {
    let (mut devices, mut remarks) = (Vec::new(), BTreeMap::new());
    for (claim, allocation) in cycle.allocations_on(node) {
        for result in allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten()) {
            let device = DeviceId::new(&result.driver, &result.pool, &result.device).to_string();
            let remark = remark(claim, result);
            if !remark.is_empty() {
                remarks.insert(device.clone(), remark);
            }
            devices.push(device);
        }
    }
    (devices, remarks)
}

/// Returns what is special about a device: an alternative of a list, a share, a claim that is not the pod's own.
fn remark(claim: &ResourceClaim, result: &DeviceRequestAllocationResult) -> String {
    let alternative = result.request.split_once('/').map(|(_, name)| format!("alternative {name}"));
    let share = result.consumed_capacity.iter().flatten().map(|(capacity, amount)| format!("{capacity} {}", amount.0));
    let is_own = controller(&claim.metadata).is_some_and(|owner| owner.kind == "Pod");
    let named = (!is_own).then(|| format!("claim {}", claim.metadata.name.as_deref().unwrap_or_default()));
    alternative.into_iter().chain(share).chain(named).collect::<Vec<_>>().join(", ")
}

/// Returns the reason why the devices on a node are better than the first ones that fit.
fn reason_on(cycle: &PodCycle, node: &str) -> Option<String> {
    cycle.choice_on(node)?.reason.as_ref().map(ToString::to_string)
}

/// Returns the reason that a scheduler does not try a pod at all.
fn held_back(spec: &PodSpec) -> Option<String> {
    let gates: Vec<&str> = spec.scheduling_gates.iter().flatten().map(|gate| gate.name.as_str()).collect();
    if !gates.is_empty() {
        return Some(format!("held back by scheduling gates: {}", gates.join(", ")));
    }
    let is_placed = spec.node_name.as_deref().is_some_and(|node| !node.is_empty());
    let has_claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    (is_placed && has_claims).then(|| {
        "spec.nodeName skips the scheduler, so its claims are never allocated; use nodeSelector instead".to_owned()
    })
}

/// Returns the wishes of a pod that are not looked at.
fn unchecked(spec: &PodSpec) -> Vec<&'static str> {
    let affinity = spec.affinity.as_ref();
    let has_volume =
        spec.volumes.iter().flatten().any(|it| it.persistent_volume_claim.is_some() || it.ephemeral.is_some());
    let wishes = [
        (affinity.is_some_and(|it| it.pod_affinity.is_some()), "pod affinity"),
        (affinity.is_some_and(|it| it.pod_anti_affinity.is_some()), "pod anti-affinity"),
        (spec.topology_spread_constraints.as_ref().is_some_and(|it| !it.is_empty()), "topology spread"),
        (spec.scheduling_group.is_some(), "scheduling group (all pods or none)"),
        (has_volume, "volumes"),
    ];
    wishes.into_iter().filter(|(is_there, _)| *is_there).map(|(_, wish)| wish).collect()
}
