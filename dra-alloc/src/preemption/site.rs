//! Sites: a node, or the nodes of a gang, with the units that may be taken out, and the claims that they free.

use dra_device::internal::of_allocation;
use k8s_openapi::api::resource::v1::ResourceClaim;
use smallvec::SmallVec;

use super::asked::Asked;
use super::halt::Halt;
use super::held_claim::{HeldClaim, User};
use super::occupant::Occupant;
use super::pending_claim::is_allocated;
use super::reach::Reach;
use super::view::{claims_of, node_name};
use crate::allocator::Attempt;
use crate::cluster::state::AllocatedState;

/// Nodes with the units that may be taken out, and the claims that they free.
pub(super) struct Site<'q> {
    pub(super) reach: Reach<'q>,
    /// Units, the most important first.
    pub(super) units: Vec<Unit<'q>>,
    /// Claims that some units free.
    pub(super) claims: Vec<FreedClaim<'q>>,
    /// Pods that are nominated for the nodes and not less important than the preemptor, on each node the most important first.
    pub(super) nominated: Vec<NominatedPod<'q>>,
    /// Positions of the claims that earlier preemptions free for these.
    releasing: Vec<usize>,
    /// Devices in use, with the claims that units free or without them.
    pub(super) state: AllocatedState,
    /// True if the state is without the claims that units free.
    pub(super) is_emptied: bool,
    /// Number of free devices while no unit is out; `None` if that says nothing about what can be allocated.
    pub(super) free: Option<usize>,
}

/// Pods that go together, or an idle claim.
pub(super) struct Unit<'q> {
    /// Pods by importance; none for an idle claim.
    pub(super) pods: Vec<&'q Occupant<'q>>,
    /// Positions of the claims that the unit helps to free.
    pub(super) claims: SmallVec<[usize; 2]>,
}

/// A claim that units free.
pub(super) struct FreedClaim<'q> {
    pub(super) held: &'q HeldClaim<'q>,
    pub(super) needs: Needs,
    /// Number of devices in reach of the nodes that the claim holds.
    pub(super) devices: usize,
}

/// Units that free a claim, by their positions.
pub(super) enum Needs {
    /// All of them have to be out.
    All(SmallVec<[usize; 1]>),
    /// One of them has to be out.
    Any(SmallVec<[usize; 1]>),
}

/// Claims of a nominated pod that are not allocated yet.
pub(super) struct NominatedPod<'q> {
    /// Position of the node.
    pub(super) node: usize,
    pub(super) occupant: &'q Occupant<'q>,
    pub(super) claims: Vec<&'q ResourceClaim>,
    pub(super) attempt: Attempt<'q>,
}

impl Needs {
    pub(super) fn units(&self) -> &[usize] {
        match self {
            Self::All(units) | Self::Any(units) => units,
        }
    }

    /// Returns true if that many of the units are enough.
    pub(super) fn are_met(&self, out: usize) -> bool {
        match self {
            Self::All(units) => out == units.len(),
            Self::Any(_) => out > 0,
        }
    }
}

impl<'q> Unit<'q> {
    pub(super) fn new(pods: impl IntoIterator<Item = &'q Occupant<'q>>) -> Self {
        Self { pods: pods.into_iter().collect(), claims: SmallVec::new() }
    }
}

impl<'q> Site<'q> {
    /// Reads nodes as kube-scheduler's rule does: each pod on them with a lower priority is a unit.
    pub(super) fn of_pods(asked: &Asked<'q>, reach: Reach<'q>) -> Result<Self, Halt> {
        let view = asked.rules.view;
        let positions = reach.nodes().iter().flat_map(|node| view.pods_on(node_name(node)));
        let on_nodes = positions.filter_map(|position| Some((*position, view.pod(*position)?)));
        let may_go = |pod: &Occupant<'_>| pod.priority < asked.priority && !pod.is_done() && !asked.is_preemptor(pod);
        let mut lower: Vec<(usize, &Occupant<'_>)> = on_nodes.filter(|(_, pod)| may_go(pod)).collect();
        asked.work.count(lower.len())?;
        lower.sort_by_cached_key(|(_, pod)| pod.importance());
        let mut positions: Vec<(usize, usize)> =
            lower.iter().enumerate().map(|(unit, (position, _))| (*position, unit)).collect();
        positions.sort_unstable();
        let unit_of = |pod: usize| {
            let found = positions.binary_search_by_key(&pod, |(position, _)| *position).ok()?;
            positions.get(found).map(|(_, unit)| *unit)
        };
        let mut site = Self::new(asked, reach, lower.iter().map(|(_, pod)| Unit::new([*pod])).collect())?;
        let mut claims: Vec<usize> = lower.iter().flat_map(|(_, pod)| pod.claims.iter().copied()).collect();
        claims.sort_unstable();
        claims.dedup();
        for position in claims {
            let Some(held) = site.held_by_others(asked, position) else { continue };
            if let Some(needs) = needs_of_pods(asked, held, &unit_of)
                && site.reach.binds_all(held.allocation)
            {
                site.add_claim(held, needs);
            }
        }
        Ok(site)
    }

    /// Builds a site with units that free no claim yet.
    pub(super) fn new(asked: &Asked<'q>, reach: Reach<'q>, units: Vec<Unit<'q>>) -> Result<Self, Halt> {
        let nominated = nominated_pods(asked, &reach)?;
        let releasing = releasing(asked, &reach, &nominated);
        let mut state = asked.rules.state.clone();
        for held in releasing.iter().filter_map(|position| asked.rules.view.held(*position)) {
            state.forget(held.claim);
        }
        Ok(Self { reach, units, claims: Vec::new(), nominated, releasing, state, is_emptied: false, free: None })
    }

    /// Returns an allocated claim by its position, unless it is the preemptor's or counts as free already.
    pub(super) fn held_by_others(&self, asked: &Asked<'q>, position: usize) -> Option<&'q HeldClaim<'q>> {
        let counts_as_free = self.releasing.contains(&position);
        asked.rules.view.held(position).filter(|held| !counts_as_free && !asked.is_own(held.claim))
    }

    /// Counts devices: those that are free, and those that claims give back.
    pub(super) fn counted(mut self) -> Self {
        if self.nominated.is_empty() {
            self.free = self.reach.free(&self.state);
        }
        for claim in &mut self.claims {
            claim.devices = self.reach.held_by(claim.held.allocation);
        }
        self
    }

    /// Counts devices, and leaves out all that neither the nodes' devices nor the units depend on, so that units go and come
    /// back at little cost.
    pub(super) fn narrowed(self) -> Self {
        let mut site = self.counted();
        let pools = || site.reach.pools().map(|pool| (pool.hash(), pool.driver(), pool.name()));
        let claims = site.claims.iter().map(|claim| (claim.held.claim, claim.held.allocation));
        site.is_emptied = site.state.is_used_by(pools(), claims);
        site.state = if site.is_emptied {
            site.state.excerpt(std::iter::empty(), std::iter::empty())
        } else {
            site.state.excerpt(pools(), site.claims.iter().map(|claim| claim.held.claim))
        };
        site
    }

    pub(super) fn add_claim(&mut self, held: &'q HeldClaim<'q>, needs: Needs) {
        for unit in needs.units() {
            if let Some(unit) = self.units.get_mut(*unit) {
                unit.claims.push(self.claims.len());
            }
        }
        self.claims.push(FreedClaim { held, needs, devices: 0 });
    }
}

/// Returns the pods that free a claim by kube-scheduler's rule; `None` if nothing frees it.
fn needs_of_pods(asked: &Asked<'_>, held: &HeldClaim<'_>, unit_of: &impl Fn(usize) -> Option<usize>) -> Option<Needs> {
    let alone = |pod: usize| {
        let has_group = asked.rules.view.pod(pod).is_none_or(|pod| pod.group().is_some());
        if has_group { None } else { unit_of(pod) }
    };
    if held.users.is_empty() {
        let units: SmallVec<[usize; 1]> = held.named_by.iter().filter_map(|pod| alone(*pod)).collect();
        return (!units.is_empty()).then_some(Needs::Any(units));
    }
    let mut units = SmallVec::new();
    for user in &held.users {
        let User::Pod(pod) = user else { return None };
        let unit = alone(*pod)?;
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    Some(Needs::All(units))
}

/// Returns the positions of the claims that earlier preemptions free, and that count as free beside the pods they are freed for. On
/// one node these are all of them.
fn releasing(asked: &Asked<'_>, reach: &Reach<'_>, nominated: &[NominatedPod<'_>]) -> Vec<usize> {
    let view = asked.rules.view;
    let is_for = |pod: &NominatedPod<'_>, held: &HeldClaim<'_>| {
        reach.nodes().len() == 1 || of_allocation(held.allocation).iter().any(|result| reach.sees(pod.node, result))
    };
    let is_free = |position: &&usize| {
        let held = view.held(**position).filter(|held| !asked.is_own(held.claim));
        held.is_some_and(|held| nominated.iter().any(|pod| is_for(pod, held)))
    };
    view.releasing().iter().filter(is_free).copied().collect()
}

/// Returns the pods that are nominated for nodes, have claims to allocate, and are not less important than the preemptor.
fn nominated_pods<'q>(asked: &Asked<'q>, reach: &Reach<'q>) -> Result<Vec<NominatedPod<'q>>, Halt> {
    let (view, priority) = (asked.rules.view, asked.priority);
    let counts = |pod: &&Occupant<'_>| pod.priority >= priority && !pod.is_done() && !asked.is_preemptor(pod);
    let mut pods: Vec<(usize, &Occupant<'_>)> = Vec::new();
    for (position, node) in reach.nodes().iter().enumerate() {
        pods.extend(view.nominated(node_name(node)).filter(counts).map(|pod| (position, pod)));
    }
    asked.work.count(pods.len())?;
    pods.sort_by_cached_key(|(node, pod)| (*node, pod.importance()));
    let mut taken: Vec<&ResourceClaim> = Vec::new();
    let mut nominated = Vec::new();
    for (node, occupant) in pods {
        let named = claims_of(occupant.pod).filter_map(|named| view.claim(&named.claim));
        let mut claims = Vec::new();
        for claim in named {
            let is_taken = taken.iter().any(|other| std::ptr::eq(*other, claim));
            if !is_allocated(claim) && !is_taken && !asked.is_own(claim) {
                claims.push(claim);
                taken.push(claim);
            }
        }
        if !claims.is_empty() {
            let attempt = asked.rules.allocator.attempt(asked.rules.state, claims.iter().copied());
            nominated.push(NominatedPod { node, occupant, claims, attempt });
        }
    }
    Ok(nominated)
}
