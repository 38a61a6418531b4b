//! Gangs: several pods over several nodes, all or none.
//!
//! With a quorum, pods without a node are left out as long as enough others have one.
//!
//! The pods are tried in their order, each on the nodes in their order, with the devices of those before it in flight. The
//! answer is that of single pods tried one by one; what makes it a gang is that one pod without a node takes all of them
//! back. No other order is tried, as in kube-scheduler's cycle of a pod group.
//!
//! With an objective each pod gets the node where its devices have the least value, the first of several.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use dra_attrs::Index;
use dra_device::DeviceId;
use dra_device::internal::of_allocation;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::cycle::{GroupRound, PodCycle};
use super::explanation::{GangHolding, PodExplanation};
use super::filter::{FilterVerdict, NodeFilter, NodeFilterError};
use super::gang_error::{GangError, MemberError};
use super::gang_placement::{GangPlacement, PlacedGang};
use super::identity::PodIdentity;
use super::kept_devices::KeptDevices;
use super::known_refusals::KnownRefusals;
use super::node_check::{FitQuestion, NodeCheck};
use super::options::PodOptions;
use super::status_code::StatusCode;
use super::tracker::ClaimTracker;
use crate::allocator::{Allocator, Nodes};
use crate::explain::{Detail, Explanation};
use crate::search::budget::Budget;

/// Context in which a gang is placed: the allocator, the nodes, and everything else that a cycle needs.
pub struct GangSearch<'s> {
    allocator: &'s Allocator<'s>,
    nodes: Vec<&'s Node>,
    options: PodOptions,
    now: Timestamp,
    budget: Budget<'s>,
    fit: Option<&'s dyn NodeCheck>,
    kept: Option<&'s dyn KeptDevices>,
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

/// Nodes to try in their order, each asked for itself or by the state that it is in.
enum Given<'n, N> {
    Each(&'n [N]),
    ByState(&'n mut Nodes<N>),
}

impl<N: Borrow<Node>> Given<'_, N> {
    fn list(&self) -> &[N] {
        match self {
            Self::Each(list) => list,
            Self::ByState(nodes) => nodes.list(),
        }
    }
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
            nodes: nodes.into_iter().collect(),
            options,
            now,
            budget: Budget::default(),
            fit: None,
            kept: None,
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

    /// Sets the devices that are kept for other pods, such as [`Holds`](crate::preemption::Holds): members don't get them.
    #[must_use]
    pub fn with_kept(self, kept: &'s dyn KeptDevices) -> Self {
        Self { kept: Some(kept), ..self }
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
    /// At most pods times nodes calls of [`PodCycle::filter`]; a node that refuses a pod for its devices is not asked again for pods
    /// whose claims ask for the same, unless devices are kept for others.
    pub fn place<'p>(
        &self,
        pods: impl IntoIterator<Item = &'p Pod>,
        group: Option<&PodGroup>,
        tracker: &mut ClaimTracker,
    ) -> Result<PlacedGang, Box<GangError>> {
        self.place_given(&mut Given::Each(&self.nodes), pods, group, tracker)
    }

    /// Places pods as [`GangSearch::place`] does, on nodes that were given once instead of those of the search.
    ///
    /// # Errors
    /// Those of [`GangSearch::place`].
    ///
    /// # Complexity
    /// For each pod that of [`Nodes::attempt`], and one search for each state of nodes that refuse it. Where devices are kept
    /// for others, that of [`GangSearch::place`].
    ///
    /// ```
    /// use dra_alloc::pods::{ClaimTracker, GangSearch, PodOptions};
    /// use dra_alloc::{Allocator, Classes, Inventory, Nodes, Profile};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
    /// use k8s_openapi::jiff::Timestamp;
    /// use serde_json::{from_value, json};
    ///
    /// let slice = |node: &str| from_value::<ResourceSlice>(json!({"metadata": {"name": node}, "spec": {
    ///     "driver": "gpu.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
    ///     "devices": [{"name": "gpu-0"}],
    /// }}));
    /// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
    /// let claim = |name: &str| from_value::<ResourceClaim>(json!({"metadata": {"name": name, "namespace": "d", "uid": name},
    ///     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}));
    /// let pod = |name: &str, claim: &str| from_value::<Pod>(json!({"metadata": {"name": name, "namespace": "d", "uid": name},
    ///     "spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]}}));
    /// let list: [Node; 3] = from_value(json!(["a", "b", "c"].map(|name| json!({"metadata": {"name": name}}))))?;
    /// let (inventory, classes) = (Inventory::new([slice("b")?, slice("c")?]), Classes::new([class]));
    /// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    /// let mut tracker = ClaimTracker::new(Profile::V1_37);
    /// tracker.observe(claim("c-0")?)?;
    /// tracker.observe(claim("c-1")?)?;
    ///
    /// let mut nodes = Nodes::new(list);
    /// let search = GangSearch::new(&allocator, [], PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH);
    /// let placed = search.place_on(&mut nodes, &[pod("p-0", "c-0")?, pod("p-1", "c-1")?], None, &mut tracker).unwrap();
    /// let places: Vec<&str> = placed.pods.iter().map(|placement| placement.node.as_str()).collect();
    /// assert_eq!(places, ["b", "c"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place_on<'p, N: Borrow<Node>>(
        &self,
        nodes: &mut Nodes<N>,
        pods: impl IntoIterator<Item = &'p Pod>,
        group: Option<&PodGroup>,
        tracker: &mut ClaimTracker,
    ) -> Result<PlacedGang, Box<GangError>> {
        self.place_given(&mut Given::ByState(nodes), pods, group, tracker)
    }

    fn place_given<'p, N: Borrow<Node>>(
        &self,
        nodes: &mut Given<'_, N>,
        pods: impl IntoIterator<Item = &'p Pod>,
        group: Option<&PodGroup>,
        tracker: &mut ClaimTracker,
    ) -> Result<PlacedGang, Box<GangError>> {
        let (mut placed, mut round) = (Vec::new(), GroupRound::of_group());
        let (mut left_out, mut members) = (Vec::new(), 0);
        // Devices that are kept may be those of one member and not of the next one of its kind.
        let mut known = self.kept.is_none().then(|| KnownRefusals::new(nodes.list().len()));
        for pod in pods {
            let index = Index::from(members);
            members += 1;
            let member = Member { pod, group, placed: &placed, gone: &[], among: None };
            match self.place_one(nodes, &member, tracker, &mut round, known.as_mut()) {
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
        self.place_one(&mut Given::Each(&self.nodes), member, tracker, round, known)
    }

    fn place_one<N: Borrow<Node>>(
        &self,
        nodes: &mut Given<'_, N>,
        member: &Member<'_>,
        tracker: &mut ClaimTracker,
        round: &mut GroupRound,
        known: Option<&mut KnownRefusals>,
    ) -> Result<GangPlacement, MemberError> {
        let placement = |node, cycle| GangPlacement { pod: PodIdentity::new(member.pod, self.options), node, cycle };
        let (classes, options) = (self.allocator.classes(), self.options);
        let Some(mut cycle) = PodCycle::pre_filter(member.pod, member.group, tracker, classes, round, options)? else {
            let mut fitting = among(member, nodes.list()).filter(|(_, node)| self.check(member, node).is_ok());
            let node = fitting.next().ok_or_else(|| self.no_node(member, nodes.list(), None))?.1;
            return Ok(placement(name_of(node).to_owned(), None));
        };
        let (node, verdict) = match nodes {
            Given::Each(list) => {
                let filter = cycle.node_filter(self.allocator, tracker.state());
                self.best(member, list, &filter, |_| None, known)
            }
            Given::ByState(nodes) => {
                let asked = cycle.filter_nodes(nodes, self.allocator, tracker.state());
                let is_asked = self.kept.is_none();
                let refusal = |node| if is_asked { asked.refusal(node, self.now, self.budget) } else { None };
                self.best(member, asked.list(), asked.each(), refusal, known)
            }
        }?;
        cycle.record(&node, verdict);
        if let Err(error) = cycle.reserve(&node, tracker, round) {
            cycle.take_back(tracker);
            return Err(error.into());
        }
        Ok(placement(node, Some(cycle)))
    }

    /// Returns the name of the first node for a pod, or of the best one, with its verdict. A node is asked unless it is known to
    /// refuse the pod, or `refusal_of` tells a reason.
    fn best<N: Borrow<Node>>(
        &self,
        member: &Member<'_>,
        nodes: &[N],
        filter: &NodeFilter<'_>,
        refusal_of: impl Fn(Index<Node>) -> Option<NodeFilterError>,
        mut known: Option<&mut KnownRefusals>,
    ) -> Result<(String, FilterVerdict), MemberError> {
        let kind = known.as_mut().and_then(|known| known.kind_of(member.pod, filter.cycle));
        let mut best: Option<(&str, FilterVerdict)> = None;
        for (index, node) in among(member, nodes) {
            let is_known = known.as_ref().is_some_and(|known| known.has(kind, index));
            if is_known || self.check(member, node).is_err() {
                continue;
            }
            let verdict = refusal_of(Index::from(index))
                .map_or_else(|| self.verdict(member, filter, node, Detail::Off), FilterVerdict::refused);
            match verdict.refusal() {
                None if best.as_ref().is_none_or(|(_, known)| rank(&verdict) < rank(known)) => {
                    best = Some((name_of(node), verdict));
                }
                Some(refusal) if refusal.code() == StatusCode::Error => {
                    return Err(MemberError::Ended(refusal.clone()));
                }
                Some(NodeFilterError::CannotAllocate) => known.iter_mut().for_each(|known| known.add(kind, index)),
                None | Some(_) => {}
            }
            if best.is_some() && !self.allocator.has_objective() {
                break;
            }
        }
        let found = best.map(|(node, verdict)| (node.to_owned(), verdict));
        found.ok_or_else(|| self.no_node(member, nodes, Some(filter)))
    }

    /// Explains why no node serves a pod.
    fn no_node<N: Borrow<Node>>(
        &self,
        member: &Member<'_>,
        nodes: &[N],
        filter: Option<&NodeFilter<'_>>,
    ) -> MemberError {
        let (mut explanation, mut shared) = (PodExplanation::default(), SharedVerdicts::default());
        for (_, node) in among(member, nodes) {
            match (self.check(member, node), filter) {
                (Err(reason), _) => explanation.add_other(name_of(node), reason),
                (Ok(()), Some(filter)) => {
                    let verdict = self.verdict(member, filter, node, self.allocator.detail());
                    shared.add(&mut explanation, name_of(node), verdict);
                }
                (Ok(()), None) => {}
            }
        }
        shared.end(&mut explanation);
        explanation.set_holdings(holdings(member.placed));
        MemberError::NoNode(Box::new(explanation))
    }

    /// Decides about a node, beside the devices that are kept there for others.
    fn verdict(&self, member: &Member<'_>, filter: &NodeFilter<'_>, node: &Node, detail: Detail) -> FilterVerdict {
        let beside = self.kept.and_then(|kept| kept.beside(filter.state(), member.pod, name_of(node)));
        match beside {
            None => filter.explained(node, self.now, detail, self.budget),
            Some(state) => {
                let filter = filter.cycle.node_filter(self.allocator, &state);
                filter.explained(node, self.now, detail, self.budget)
            }
        }
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

/// Verdicts with an explanation that nodes in one state share: its words are made once for all of them.
#[derive(Default)]
struct SharedVerdicts<'n> {
    /// Verdict of the first node by the place of its explanation, with the nodes after it.
    by_explanation: BTreeMap<*const Explanation, (FilterVerdict, Vec<&'n str>)>,
}

impl<'n> SharedVerdicts<'n> {
    /// Adds the verdict for a node: at once if its explanation is new, so that groups are in the order of their first nodes.
    fn add(&mut self, pod: &mut PodExplanation, node: &'n str, verdict: FilterVerdict) {
        let place = verdict.explanation().map(std::ptr::from_ref);
        if let Some((_, others)) = place.and_then(|place| self.by_explanation.get_mut(&place)) {
            return others.push(node);
        }
        pod.add_verdict(node, &verdict);
        self.by_explanation.extend(place.map(|place| (place, (verdict, Vec::new()))));
    }

    /// Adds the nodes after the first ones.
    fn end(self, pod: &mut PodExplanation) {
        self.by_explanation.values().for_each(|(verdict, nodes)| pod.add_nodes(nodes, verdict));
    }
}

/// Returns the nodes to try for a pod, with their positions.
fn among<'n, N: Borrow<Node>>(member: &Member<'_>, nodes: &'n [N]) -> impl Iterator<Item = (usize, &'n Node)> {
    let named = member.among.into_iter().flatten().copied();
    let all = 0..if member.among.is_none() { nodes.len() } else { 0 };
    named.chain(all).filter_map(|index| Some((index, nodes.get(index)?.borrow())))
}

/// Returns the value of the devices on a node, less is better, after a mark of those without one.
fn rank(verdict: &FilterVerdict) -> (bool, &[u64]) {
    verdict.choice().map_or((true, &[]), |choice| (false, &choice.value))
}

fn name_of(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Takes back the allocations in flight of all placed pods, the last one first.
fn take_back(placed: &mut Vec<GangPlacement>, tracker: &mut ClaimTracker) {
    while let Some(mut placement) = placed.pop() {
        placement.take_back(tracker);
    }
}

/// Returns the devices that the placed pods have in flight.
fn holdings(placed: &[GangPlacement]) -> Vec<Arc<GangHolding>> {
    let of_pod = |placement: &GangPlacement| {
        let cycle = placement.cycle.as_ref()?;
        let chosen = cycle.claims().iter().filter_map(|claim| claim.chosen());
        let results = chosen.flat_map(of_allocation);
        let devices: Vec<_> =
            results.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device)).collect();
        let (pod, node) = (&placement.pod.name, &placement.node);
        let holding = GangHolding { pod: pod.clone(), node: node.clone(), devices };
        (!holding.devices.is_empty()).then(|| Arc::new(holding))
    };
    placed.iter().filter_map(of_pod).collect()
}
