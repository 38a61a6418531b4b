//! Scheduler of a simulation: a node and devices for one pod at a time, by dra-alloc's tracker and allocator.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::claims::ClaimKey;
use dra_alloc::explain::Detail;
use dra_alloc::pods::{
    BindStep, ClaimTracker, FilterVerdict, GroupRound, NodeFilterError, PodCycle, PodExplanation, PreBind, StatusCode,
};
use dra_alloc::{AllocatedState, Allocator, Budget, ClaimId, Index, NodeVerdicts, allocated_devices};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::{Node, Pod, PodResourceClaim, PodSpec};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;

use super::Simulation;
use super::arrivals::{Arrival, Kind};
use super::description::{Placing, Preempting};
use super::event::{HeldDevice, Refusal};
use crate::claim_store::ClaimStore;

/// Largest work of a search on a node.
const WORK: u64 = 100_000;

/// Largest number of kinds of pods whose first "no" is explained: that takes a search or more for each node.
const MOST_EXPLAINED: usize = 20;

/// Namespace of all simulated pods.
const NAMESPACE: &str = "default";

/// Result of an attempt that has placed no pod. The explanation is there for the first pod of a kind.
#[derive(Debug)]
pub(super) enum Unplaced {
    /// No node has the devices now.
    NoRoom(Option<String>),
    /// No attempt will place the pod.
    Refused(Refusal, Option<String>),
}

impl Unplaced {
    fn invalid(reason: &impl ToString) -> Self {
        Self::Refused(Refusal::Invalid(reason.to_string()), None)
    }
}

/// Pod on a node.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) node: usize,
    pub(super) devices: Vec<HeldDevice>,
    pub(super) claims: Vec<ClaimKey>,
    /// Pod as it is bound; `None` unless pods may be preempted or moved.
    pub(super) bound: Option<Pod>,
}

/// Node that can serve a pod.
struct Candidate {
    index: usize,
    /// Value of the devices.
    value: Option<Vec<u64>>,
    /// Verdict, if the node was asked now.
    verdict: Option<FilterVerdict>,
}

/// Nodes whose devices were taken or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Node(usize),
    All,
}

/// Scheduler with the devices that are in use.
pub(super) struct Scheduler<'s> {
    pub(super) simulation: &'s Simulation,
    pub(super) allocator: Allocator<'s>,
    pub(super) tracker: ClaimTracker,
    pub(super) server: ClaimStore,
    /// Nodes that have refused each kind of pods.
    verdicts: NodeVerdicts<usize>,
    /// Values of the best devices on each node for kinds of pods, since it has changed; `None` if the search was stopped.
    values: Vec<BTreeMap<usize, Option<Vec<u64>>>>,
    /// Nodes with their free devices, those with the fewest first.
    by_room: BTreeSet<(usize, usize)>,
    /// Number of free devices of each node.
    free: Vec<usize>,
    /// Node that the last pod has taken.
    latest: usize,
    /// For each kind of pods, true if an empty cluster has room; `None` if that was not asked yet.
    fits_empty: Vec<Option<bool>>,
    explained: usize,
    /// Searches that the budget has stopped: their nodes count as full.
    pub(super) stopped: u64,
}

impl<'s> Scheduler<'s> {
    pub(super) fn new(simulation: &'s Simulation) -> Self {
        let (cluster, component) = (&simulation.cluster, simulation.options.scheduler());
        let allocator =
            Allocator::new(component, &cluster.inventory, &cluster.classes).with_selector_cache(&cluster.selectors);
        let allocator = allocator.with_objective(&simulation.objective);
        let tracker = ClaimTracker::new(Component::new(Profile::V1_37, component.gates()));
        allocator.prepare(tracker.state(), &cluster.nodes);
        let mut scheduler = Self {
            simulation,
            allocator,
            tracker,
            server: ClaimStore::default(),
            verdicts: NodeVerdicts::default(),
            values: vec![BTreeMap::new(); cluster.nodes.len()],
            by_room: BTreeSet::new(),
            free: vec![0; cluster.nodes.len()],
            latest: 0,
            fits_empty: vec![None; simulation.arrivals.kinds.len()],
            explained: 0,
            stopped: 0,
        };
        scheduler.note(Changed::All);
        scheduler
    }

    /// Tries to place a pod: on one node, or on all in the order of the day. A node that has said "no" to a pod of this kind is
    /// asked again when something of it has changed.
    pub(super) fn place(&mut self, pod: &Arrival, kind: &Kind, among: Changed) -> Result<Placed, Unplaced> {
        if self.fits_empty.get(pod.kind) == Some(&Some(false)) {
            return Err(Unplaced::Refused(Refusal::NeverFits, None));
        }
        let (object, claims) = objects(pod, kind);
        let keys: Vec<ClaimKey> = claims.iter().map(|claim| ClaimKey::from_metadata(&claim.metadata)).collect();
        for claim in claims {
            // A claim without an allocation has no amounts that could be wrong.
            let _ = self.tracker.observe(self.server.put(claim));
        }
        let (node, devices) = self.attempt(&object, pod.kind, among).inspect_err(|_| self.delete(&keys))?;
        let is_kept = match self.simulation.preempt {
            Preempting::Never => self.simulation.consolidate.is_some(),
            Preempting::Kube | Preempting::Least => true,
        };
        let bound = is_kept.then(|| self.bound(object, node, pod.at));
        let placed = Placed { node, devices, claims: keys, bound };
        self.latest = node;
        self.note(self.changed_by(&placed));
        Ok(placed)
    }

    /// Returns a pod on its node. Among pods of one priority those that came first are the most important.
    fn bound(&self, mut pod: Pod, node: usize, came: u64) -> Pod {
        let name = self.simulation.cluster.nodes.get(node).map(|node| name_of_node(node).to_owned());
        pod.spec.get_or_insert_default().node_name = name;
        let start = i64::try_from(came).ok().and_then(|came| Timestamp::from_millisecond(came).ok());
        pod.status.get_or_insert_default().start_time = start.map(Time);
        pod
    }

    /// Frees the devices of a pod, and returns the nodes that may have room now.
    pub(super) fn free(&mut self, placed: &Placed) -> Changed {
        self.delete(&placed.claims);
        let changed = self.changed_by(placed);
        self.note(changed);
        changed
    }

    fn attempt(&mut self, pod: &Pod, kind: usize, among: Changed) -> Result<(usize, Vec<HeldDevice>), Unplaced> {
        let (classes, options) = (&self.simulation.cluster.classes, self.simulation.options);
        let mut round = GroupRound::default();
        let begun = PodCycle::pre_filter(pod, None, &self.tracker, classes, &round, options);
        let begun = begun.map_err(|blocked| Unplaced::invalid(&blocked))?;
        let mut cycle = begun.ok_or_else(|| Unplaced::invalid(&"no claims"))?;
        let Some((node, name)) = self.choose(&mut cycle, kind, among)? else {
            return Err(self.refusal(&cycle, kind));
        };
        cycle.reserve(&name, &mut self.tracker, &mut round).map_err(|error| Unplaced::invalid(&error))?;
        let mut binding = PreBind::default();
        loop {
            match binding.next(&mut cycle, &mut self.tracker, Timestamp::UNIX_EPOCH) {
                BindStep::Write(write) => {
                    let answer = self.server.call(&write);
                    binding.answer(&mut cycle, &mut self.tracker, answer, Timestamp::UNIX_EPOCH);
                }
                // A device with binding conditions is ready at once: nothing plays its driver.
                BindStep::Done | BindStep::Wait { .. } => {
                    return Ok((node, cycle.claims().iter().flat_map(|claim| devices(claim.claim())).collect()));
                }
                step => {
                    let _ = cycle.unreserve(&mut self.tracker);
                    return Err(Unplaced::invalid(&format_args!("{step:?}")));
                }
            }
        }
    }

    /// Returns the first node that can serve the claims, with its name; with an objective, the one where the devices have the least
    /// value.
    fn choose(
        &mut self,
        cycle: &mut PodCycle,
        kind: usize,
        among: Changed,
    ) -> Result<Option<(usize, String)>, Unplaced> {
        let Self { simulation, allocator, tracker, verdicts, values, by_room, latest, stopped, .. } = self;
        let nodes = &simulation.cluster.nodes;
        let mut followed = verdicts.follow(allocator, tracker.state(), nodes);
        let candidates: Box<dyn Iterator<Item = usize>> = match (among, simulation.placing) {
            (Changed::Node(node), _) => Box::new(std::iter::once(node)),
            (Changed::All, Placing::BestFit) => Box::new(by_room.iter().map(|(_, node)| *node)),
            (Changed::All, Placing::FirstFit) => Box::new(followed.undecided(&kind, Index::FIRST).map(usize::from)),
            (Changed::All, Placing::NextFit) => {
                Box::new(followed.undecided(&kind, Index::from(*latest)).map(usize::from))
            }
        };
        let filter = cycle.node_filter(allocator, tracker.state());
        let ask = |node: &Node| filter.filter(node, Timestamp::UNIX_EPOCH, Budget::work(WORK));
        let mut best: Option<Candidate> = None;
        for index in candidates {
            let Some(node) = nodes.get(index).filter(|_| !followed.has_refused(&kind, Index::from(index))) else {
                continue;
            };
            let known = values.get(index).and_then(|known| known.get(&kind)).cloned();
            let verdict = if known.is_some() { None } else { Some(ask(node)) };
            match verdict.as_ref().and_then(FilterVerdict::refusal) {
                None => {
                    let value = known.unwrap_or_else(|| verdict.as_ref().and_then(value_of));
                    values.get_mut(index).map(|known| known.insert(kind, value.clone()));
                    // A value that is not known comes last.
                    let is_better = |best: &Candidate| (value.is_none(), &value) < (best.value.is_none(), &best.value);
                    if best.as_ref().is_none_or(is_better) {
                        best = Some(Candidate { index, value, verdict });
                    }
                    if simulation.objective.is_empty() {
                        break;
                    }
                    continue;
                }
                Some(NodeFilterError::TimedOut { .. }) => *stopped += 1,
                Some(refusal) if refusal.code() == StatusCode::Error => {
                    return Err(Unplaced::invalid(refusal));
                }
                Some(_) => {}
            }
            followed.refuse(&kind, Index::from(index));
        }
        let Some((Candidate { index, verdict, .. }, node)) =
            best.and_then(|best| nodes.get(best.index).map(|node| (best, node)))
        else {
            return Ok(None);
        };
        let (verdict, name) = (verdict.unwrap_or_else(|| ask(node)), name_of_node(node));
        drop(filter);
        cycle.record(name, verdict);
        Ok(Some((index, name.to_owned())))
    }

    /// Says if the claims could be served by an empty cluster; the first time for each kind, with the reasons.
    fn refusal(&mut self, cycle: &PodCycle, kind: usize) -> Unplaced {
        let empty = AllocatedState::new(self.simulation.options.scheduler());
        let (nodes, now) = (&self.simulation.cluster.nodes, Timestamp::UNIX_EPOCH);
        let Some(fits_empty @ None) = self.fits_empty.get_mut(kind) else { return Unplaced::NoRoom(None) };
        let fits = nodes.iter().any(|node| {
            let verdict = cycle.filter(node, &self.allocator, &empty, now, Budget::work(WORK));
            matches!(verdict.refusal(), None | Some(NodeFilterError::TimedOut { .. }))
        });
        *fits_empty = Some(fits);
        let state = if fits { self.tracker.state() } else { &empty };
        let explanation = (self.explained < MOST_EXPLAINED).then(|| {
            let allocator = self.allocator.clone().with_explanation(Detail::Summary);
            let mut explanation = PodExplanation::default();
            for node in nodes {
                let verdict = cycle.filter(node, &allocator, state, now, Budget::work(WORK));
                explanation.add_verdict(name_of_node(node), &verdict);
            }
            explanation.to_string()
        });
        self.explained += 1;
        if fits { Unplaced::NoRoom(explanation) } else { Unplaced::Refused(Refusal::NeverFits, explanation) }
    }

    fn delete(&mut self, claims: &[ClaimKey]) {
        for claim in claims {
            if let Some(removed) = self.server.remove(claim) {
                self.tracker.observe_deleted(&ClaimId::from(&removed));
            }
        }
    }

    /// Returns the nodes that see a pool of which the pod has devices.
    pub(super) fn changed_by(&self, placed: &Placed) -> Changed {
        let cluster = &self.simulation.cluster;
        let is_shared = |device: &HeldDevice| cluster.is_shared(&device.driver, &device.pool);
        if placed.devices.iter().any(is_shared) { Changed::All } else { Changed::Node(placed.node) }
    }

    /// Renews the order of nodes after a change of the devices in use.
    pub(super) fn note(&mut self, changed: Changed) {
        match changed {
            Changed::All => self.values.iter_mut().for_each(BTreeMap::clear),
            Changed::Node(index) => self.values.get_mut(index).into_iter().for_each(BTreeMap::clear),
        }
        match (self.simulation.placing, changed) {
            (Placing::FirstFit | Placing::NextFit, _) => {}
            (Placing::BestFit, Changed::All) => (0..self.free.len()).for_each(|index| self.note_room(index)),
            (Placing::BestFit, Changed::Node(index)) => self.note_room(index),
        }
    }

    fn note_room(&mut self, index: usize) {
        let known = (self.simulation.cluster.nodes.get(index), self.free.get_mut(index));
        let (Some(node), Some(known)) = known else { return };
        // A node that can't be looked at is refused by the filter, which says why.
        let pools = self.allocator.node_pools(self.tracker.state(), node);
        let free = pools.iter().flatten().map(|pool| pool.free).sum();
        self.by_room.remove(&(*known, index));
        self.by_room.insert((free, index));
        *known = free;
    }
}

/// Makes the objects of a pod, with names and UIDs of its own.
pub(super) fn objects(pod: &Arrival, kind: &Kind) -> (Pod, Vec<ResourceClaim>) {
    let metadata = |name: &str| ObjectMeta {
        namespace: Some(NAMESPACE.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let claim = |(number, claim): (usize, &ResourceClaim)| {
        let metadata = metadata(&format!("{}-{number}", pod.name));
        ResourceClaim { metadata, ..claim.clone() }
    };
    let claims: Vec<ResourceClaim> = kind.claims.iter().enumerate().map(claim).collect();
    let entry = |(number, claim): (usize, &ResourceClaim)| PodResourceClaim {
        name: format!("claim-{number}"),
        resource_claim_name: claim.metadata.name.clone(),
        ..PodResourceClaim::default()
    };
    let entries = claims.iter().enumerate().map(entry).collect();
    let spec = PodSpec { resource_claims: Some(entries), priority: Some(kind.priority), ..PodSpec::default() };
    (Pod { metadata: metadata(&pod.name), spec: Some(spec), ..Pod::default() }, claims)
}

/// Returns the devices that a claim has, but for those of admin access, which it does not hold.
fn devices(claim: &ResourceClaim) -> impl Iterator<Item = HeldDevice> {
    let held = allocated_devices(claim).iter().filter(|result| result.admin_access != Some(true));
    held.map(|result| HeldDevice {
        driver: result.driver.clone(),
        pool: result.pool.clone(),
        device: result.device.clone(),
        shared: result.share_id.is_some(),
    })
}

fn value_of(verdict: &FilterVerdict) -> Option<Vec<u64>> {
    verdict.choice().map(|choice| choice.value.clone())
}

pub(super) fn name_of_node(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}
