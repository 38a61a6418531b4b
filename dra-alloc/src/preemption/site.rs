//! Sites: a node with the units that may be taken out of it, and the claims that they free.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;
use smallvec::SmallVec;

use super::asked::Asked;
use super::halt::Halt;
use super::held_claim::{HeldClaim, User};
use super::occupant::Occupant;
use super::reach::Reach;
use super::view::{claims_of, node_name};
use crate::allocator::Attempt;
use crate::cluster::state::AllocatedState;

/// A node with the units that may be taken out, and the claims that they free.
pub(super) struct Site<'q> {
    pub(super) node: &'q Node,
    /// Units, the most important first.
    pub(super) units: Vec<Unit<'q>>,
    /// Claims that some units free.
    pub(super) claims: Vec<FreedClaim<'q>>,
    /// Pods that are nominated for the node and not less important than the preemptor, the most important first.
    pub(super) nominated: Vec<NominatedPod<'q>>,
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
    /// Number of devices in reach of the node that the claim holds.
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
    /// Reads a node as kube-scheduler's rule does: each pod on it with a lower priority is a unit.
    pub(super) fn of_pods(asked: &Asked<'q>, node: &'q Node, reach: &Reach<'_>) -> Result<Self, Halt> {
        let view = asked.rules.view;
        let on_node =
            view.pods_on(node_name(node)).iter().filter_map(|position| Some((*position, view.pod(*position)?)));
        let may_go =
            |pod: &Occupant<'_>| pod.priority < asked.preemptor.priority && !pod.is_done() && !asked.is_preemptor(pod);
        let mut lower: Vec<(usize, &Occupant<'_>)> = on_node.filter(|(_, pod)| may_go(pod)).collect();
        asked.work.count(lower.len())?;
        lower.sort_by_cached_key(|(_, pod)| pod.importance());
        let mut positions: Vec<(usize, usize)> =
            lower.iter().enumerate().map(|(unit, (position, _))| (*position, unit)).collect();
        positions.sort_unstable();
        let unit_of = |pod: usize| {
            let found = positions.binary_search_by_key(&pod, |(position, _)| *position).ok()?;
            positions.get(found).map(|(_, unit)| *unit)
        };
        let mut site = Self::new(asked, node, lower.iter().map(|(_, pod)| Unit::new([*pod])).collect())?;
        let mut claims: Vec<usize> = lower.iter().flat_map(|(_, pod)| pod.claims.iter().copied()).collect();
        claims.sort_unstable();
        claims.dedup();
        for position in claims {
            let Some(held) = site.held_by_others(asked, position) else { continue };
            if let Some(needs) = needs_of_pods(asked, held, &unit_of)
                && reach.binds_all(held.allocation)
            {
                site.add_claim(held, needs);
            }
        }
        Ok(site)
    }

    /// Builds a site with units that free no claim yet.
    pub(super) fn new(asked: &Asked<'q>, node: &'q Node, units: Vec<Unit<'q>>) -> Result<Self, Halt> {
        let nominated = nominated_pods(asked, node)?;
        let mut state = asked.rules.state.clone();
        if !nominated.is_empty() {
            for position in asked.rules.view.releasing() {
                if let Some(held) = asked.rules.view.held(*position).filter(|held| !asked.is_own(held.claim)) {
                    state.forget(held.claim);
                }
            }
        }
        Ok(Self { node, units, claims: Vec::new(), nominated, state, is_emptied: false, free: None })
    }

    /// Returns an allocated claim by its position, unless it is the preemptor's or counts as free already.
    pub(super) fn held_by_others(&self, asked: &Asked<'q>, position: usize) -> Option<&'q HeldClaim<'q>> {
        let counts_as_free = !self.nominated.is_empty() && asked.rules.view.releasing().contains(&position);
        asked.rules.view.held(position).filter(|held| !counts_as_free && !asked.is_own(held.claim))
    }

    /// Counts devices: those that are free, and those that claims give back.
    pub(super) fn counted(mut self, reach: &Reach<'_>) -> Self {
        if self.nominated.is_empty() {
            self.free = reach.free(&self.state);
        }
        for claim in &mut self.claims {
            claim.devices = reach.held_by(claim.held.allocation);
        }
        self
    }

    /// Counts devices, and leaves out all that neither the node's devices nor the units depend on, so that units go and come
    /// back at little cost.
    pub(super) fn narrowed(self, reach: &Reach<'_>) -> Self {
        let mut site = self.counted(reach);
        let pools = || reach.pools().map(|pool| (pool.hash(), pool.driver(), pool.name()));
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

    pub(super) fn name(&self) -> &'q str {
        node_name(self.node)
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

/// Returns the pods that are nominated for a node, have claims to allocate, and are not less important than the preemptor.
fn nominated_pods<'q>(asked: &Asked<'q>, node: &'q Node) -> Result<Vec<NominatedPod<'q>>, Halt> {
    let (view, priority) = (asked.rules.view, asked.preemptor.priority);
    let counts = |pod: &&Occupant<'_>| pod.priority >= priority && !pod.is_done() && !asked.is_preemptor(pod);
    let mut pods: Vec<&Occupant<'_>> = view.nominated(node_name(node)).filter(counts).collect();
    asked.work.count(pods.len())?;
    pods.sort_by_cached_key(|pod| pod.importance());
    let mut taken: Vec<&ResourceClaim> = Vec::new();
    let mut nominated = Vec::new();
    for occupant in pods {
        let named = claims_of(occupant.pod).filter_map(|named| view.claim(&named.claim));
        let mut claims = Vec::new();
        for claim in named {
            let is_allocated = claim.status.as_ref().is_some_and(|status| status.allocation.is_some());
            let is_taken = taken.iter().any(|other| std::ptr::eq(*other, claim));
            if !is_allocated && !is_taken && !asked.is_own(claim) {
                claims.push(claim);
                taken.push(claim);
            }
        }
        if !claims.is_empty() {
            let attempt = asked.rules.allocator.attempt(asked.rules.state, claims.iter().copied());
            nominated.push(NominatedPod { occupant, claims, attempt });
        }
    }
    Ok(nominated)
}
