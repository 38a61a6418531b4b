//! Gangs: several pods over several nodes, all or none.
//!
//! With a quorum, pods without a node are left out as long as enough others have one.
//!
//! The pods are tried in their order, each on the nodes in their order, with the devices of those before it in flight. The
//! answer is that of single pods tried one by one; what makes it a gang is that one pod without a node takes all of them
//! back. No other order is tried, as in kube-scheduler's cycle of a pod group.
//!
//! With an objective each pod gets the node where its devices have the least value, the first of several.

use std::num::NonZeroUsize;

use dra_attrs::Index;
use dra_device::DeviceId;
use dra_device::internal::of_allocation;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::cycle::{GroupRound, PodCycle};
use super::explanation::{GangHolding, PodExplanation};
use super::filter::{FilterVerdict, NodeFilterError};
use super::gang_error::{GangError, MemberError};
use super::gang_placement::{GangPlacement, PlacedGang};
use super::identity::PodIdentity;
use super::known_refusals::KnownRefusals;
use super::node_check::{FitQuestion, NodeCheck};
use super::options::PodOptions;
use super::status_code::StatusCode;
use super::tracker::ClaimTracker;
use crate::allocator::Allocator;
use crate::explain::Detail;
use crate::search::budget::Budget;

/// Context in which a gang is placed: the allocator, the nodes, and everything else that a cycle needs.
pub struct GangSearch<'s> {
    allocator: &'s Allocator<'s>,
    /// The same without explanations: only a "no" for all nodes is explained.
    quiet: Allocator<'s>,
    nodes: Vec<&'s Node>,
    options: PodOptions,
    now: Timestamp,
    budget: Budget<'s>,
    fit: Option<&'s dyn NodeCheck>,
    quorum: Option<NonZeroUsize>,
}

/// One pod of a gang, with what counts for its place.
#[derive(Clone, Copy)]
pub(crate) struct Member<'m> {
    pub(crate) pod: &'m Pod,
    pub(crate) group: Option<&'m PodGroup>,
    /// Pods that have a place already.
    pub(crate) placed: &'m [GangPlacement],
    /// Pods that are gone before.
    pub(crate) gone: &'m [&'m Pod],
    /// Positions of the nodes to try, in their order; `None` for all.
    pub(crate) among: Option<&'m [usize]>,
}

impl<'s> GangSearch<'s> {
    /// Builds a search over nodes in the order in which they are tried. `now` is for binding conditions.
    #[must_use]
    pub fn new(
        allocator: &'s Allocator<'s>,
        nodes: impl IntoIterator<Item = &'s Node>,
        options: PodOptions,
        now: Timestamp,
    ) -> Self {
        Self {
            allocator,
            quiet: allocator.clone().with_explanation(Detail::Off),
            nodes: nodes.into_iter().collect(),
            options,
            now,
            budget: Budget::default(),
            fit: None,
            quorum: None,
        }
    }

    /// Sets the budget of each pod on each node.
    #[must_use]
    pub fn with_budget(self, budget: Budget<'s>) -> Self {
        Self { budget, ..self }
    }

    /// Sets the check of nodes by what has nothing to do with claims.
    #[must_use]
    pub fn with_fit(self, fit: &'s dyn NodeCheck) -> Self {
        Self { fit: Some(fit), ..self }
    }

    /// Sets the number of pods that make the gang: once so many have a node, others are left out that have none. It is the
    /// `minCount` of the pods' group less its pods that run already, say. Without a quorum all pods have to be placed.
    #[must_use]
    pub fn with_quorum(self, pods: NonZeroUsize) -> Self {
        Self { quorum: Some(pods), ..self }
    }

    /// Places all pods, in their order, or none; with a quorum, all that have a node if they are enough. Each gets the first node
    /// that serves it; with an objective, the one where its devices have the least value. Pods that share a claim, or whose group
    /// has one, get the same allocation.
    ///
    /// On success the allocations are in flight in `tracker`; otherwise the tracker is as before.
    ///
    /// # Errors
    /// The first pod without a node, with the reasons of all nodes; or fewer pods than the quorum.
    ///
    /// # Complexity
    /// At most pods times nodes calls of [`PodCycle::filter`].
    pub fn place<'p>(
        &self,
        pods: impl IntoIterator<Item = &'p Pod>,
        group: Option<&PodGroup>,
        tracker: &mut ClaimTracker,
    ) -> Result<PlacedGang, Box<GangError>> {
        let (mut placed, mut round) = (Vec::new(), GroupRound::of_group());
        let (mut left_out, mut members) = (Vec::new(), 0);
        for pod in pods {
            let index = Index::from(members);
            members += 1;
            let member = Member { pod, group, placed: &placed, gone: &[], among: None };
            match self.place_member(&member, tracker, &mut round, None) {
                Ok(placement) => placed.push(placement),
                Err(reason) => {
                    left_out.push(GangError { member: index, pod: PodIdentity::new(pod, self.options), reason });
                    if self.quorum.is_none() {
                        break;
                    }
                }
            }
        }
        let quorum = self.quorum.map_or(placed.len() + left_out.len(), NonZeroUsize::get);
        if placed.len() >= quorum {
            return Ok(PlacedGang { pods: placed, left_out });
        }
        let missing = || GangError {
            member: Index::FIRST,
            pod: placed.first().map_or_else(PodIdentity::default, |placement| placement.pod.clone()),
            reason: MemberError::TooFew { members, quorum },
        };
        let first = left_out.into_iter().next().unwrap_or_else(missing);
        take_back(&mut placed, tracker);
        Err(Box::new(first))
    }

    /// Places one pod beside those placed so far. An error leaves nothing of it in flight.
    ///
    /// Nodes that are known to refuse the pod are passed over, and looked at only to explain a "no".
    pub(crate) fn place_member(
        &self,
        member: &Member<'_>,
        tracker: &mut ClaimTracker,
        round: &mut GroupRound,
        known: Option<&mut KnownRefusals>,
    ) -> Result<GangPlacement, MemberError> {
        match self.place_by(&self.quiet, member, tracker, round, known) {
            Err(MemberError::NoNode(_)) => self.place_by(self.allocator, member, tracker, round, None),
            answer => answer,
        }
    }

    fn place_by(
        &self,
        allocator: &Allocator<'s>,
        member: &Member<'_>,
        tracker: &mut ClaimTracker,
        round: &mut GroupRound,
        mut known: Option<&mut KnownRefusals>,
    ) -> Result<GangPlacement, MemberError> {
        let pod = member.pod;
        let cycle = PodCycle::pre_filter(pod, member.group, tracker, self.allocator.classes(), round, self.options)?;
        let kind = known.as_mut().and_then(|known| known.kind_of(pod, cycle.as_ref()));
        let mut explanation = PodExplanation::default();
        let placement = |node: &str, cycle| {
            let pod = PodIdentity::new(pod, self.options);
            GangPlacement { pod, node: node.to_owned(), cycle }
        };
        let filter = cycle.as_ref().map(|cycle| cycle.node_filter(allocator, tracker.state()));
        let mut best: Option<(&str, FilterVerdict)> = None;
        for (index, node) in self.among(member) {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            if known.as_ref().is_some_and(|known| known.has(kind, index)) {
                continue;
            }
            if let Err(reason) = self.check(member, node) {
                explanation.add_other(name, reason);
                continue;
            }
            let Some(filter) = &filter else { return Ok(placement(name, None)) };
            let verdict = filter.filter(node, self.now, self.budget);
            match verdict.refusal() {
                None => {
                    if best.as_ref().is_none_or(|(_, known)| rank(&verdict) < rank(known)) {
                        best = Some((name, verdict));
                    }
                    if !self.allocator.has_objective() {
                        break;
                    }
                }
                Some(refusal) if refusal.code() == StatusCode::Error => {
                    return Err(MemberError::Ended(refusal.clone()));
                }
                Some(refusal) => {
                    if *refusal == NodeFilterError::CannotAllocate
                        && let Some(known) = &mut known
                    {
                        known.add(kind, index);
                    }
                    explanation.add_verdict(name, &verdict);
                }
            }
        }
        drop(filter);
        if let (Some((name, verdict)), Some(mut cycle)) = (best, cycle) {
            cycle.record(name, verdict);
            if let Err(error) = cycle.reserve(name, tracker, round) {
                cycle.take_back(tracker);
                return Err(error.into());
            }
            return Ok(placement(name, Some(cycle)));
        }
        explanation.set_holdings(holdings(member.placed));
        Err(MemberError::NoNode(Box::new(explanation)))
    }

    /// Returns the nodes to try for a pod, with their positions.
    fn among(&self, member: &Member<'_>) -> impl Iterator<Item = (usize, &'s Node)> {
        let named = member.among.into_iter().flatten().copied();
        let all = 0..if member.among.is_none() { self.nodes.len() } else { 0 };
        named.chain(all).filter_map(|index| Some((index, *self.nodes.get(index)?)))
    }

    /// Asks the caller's check of nodes.
    fn check(&self, member: &Member<'_>, node: &Node) -> Result<(), String> {
        let question = || FitQuestion::new(member.pod, node).with_in_flight(member.placed).with_gone(member.gone);
        self.fit.map_or(Ok(()), |fit| fit.fits(&question()))
    }
}

impl std::fmt::Debug for GangSearch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GangSearch").field("options", &self.options).field("now", &self.now).finish_non_exhaustive()
    }
}

/// Returns the value of the devices on a node, less is better, after a mark of those without one.
fn rank(verdict: &FilterVerdict) -> (bool, &[u64]) {
    verdict.choice().map_or((true, &[]), |choice| (false, &choice.value))
}

/// Takes back the allocations in flight of all placed pods, the last one first.
fn take_back(placed: &mut Vec<GangPlacement>, tracker: &mut ClaimTracker) {
    while let Some(mut placement) = placed.pop() {
        placement.take_back(tracker);
    }
}

/// Returns the devices that the placed pods have in flight.
fn holdings(placed: &[GangPlacement]) -> Vec<GangHolding> {
    let of_pod = |placement: &GangPlacement| {
        let cycle = placement.cycle.as_ref()?;
        let chosen = cycle.claims().iter().filter_map(|claim| claim.chosen());
        let results = chosen.flat_map(of_allocation);
        let devices: Vec<_> =
            results.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device)).collect();
        (!devices.is_empty()).then(|| GangHolding {
            pod: placement.pod.name.clone(),
            node: placement.node.clone(),
            devices,
        })
    };
    placed.iter().filter_map(of_pod).collect()
}
