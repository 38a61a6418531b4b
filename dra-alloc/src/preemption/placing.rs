//! Places: which member gets which node.
//!
//! The members get nodes one after the other, each the first that serves it together with those that are there already: the claims
//! of all members on a node are allocated together. If a member finds no node, the search goes back and tries the next node of the
//! one before.
//!
//! Where no pool is seen by two of the nodes, the search is complete: no order of members and no other choice of devices would find
//! more. Members that are alike are placed in the order of the nodes, since one stands in for the other; and if all that are left are
//! alike, the first nodes are as good as any.

use std::borrow::Cow;
use std::collections::BTreeSet;

use dra_attrs::node_selector_matches;
use dra_device::internal::of_allocation;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::AllocationResult;

use super::asked::{Asked, ClaimSet};
use super::halt::Halt;
use super::member::Member;
use super::pending_claim::is_allocated;
use super::reach::Reach;
use super::view::node_name;
use crate::cluster::state::AllocatedState;
use crate::pods::{FitQuestion, PodIdentity};
use crate::search::stopped::Limit;

/// Question if the members fit on nodes beside the devices in use.
pub(super) struct Placing<'s, 'q> {
    pub(super) asked: &'s Asked<'q>,
    pub(super) reach: &'s Reach<'q>,
    pub(super) state: &'s AllocatedState,
    /// Pods that are gone, for the caller's check of nodes; `None` if it is not asked.
    pub(super) gone: Option<&'s [&'q Pod]>,
}

/// Answer if the members fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fitting {
    Yes,
    No,
    /// No places were found, and devices that several nodes see could be divided in other ways.
    Open,
}

/// Nodes of the members, and the allocations of their claims.
pub(super) struct Places {
    /// Position of the node of each member; `None` for a member beyond the quorum that has no node.
    pub(super) nodes: Vec<Option<usize>>,
    /// Allocations of claims, by their positions.
    pub(super) results: Vec<(usize, AllocationResult)>,
}

/// Search of places.
struct Search<'s, 'q> {
    placing: &'s Placing<'s, 'q>,
    /// Devices in use, with those of the members placed so far.
    state: Cow<'s, AllocatedState>,
    /// Members placed so far, in the order in which they are placed.
    path: Vec<Step>,
    on_node: Vec<OnNode>,
    /// From this place of the order on, the first nodes are as good as any.
    settled_from: usize,
    is_open: bool,
    /// Reasons of the caller's check.
    refusals: BTreeSet<String>,
}

/// Members on a node, with their allocations together.
#[derive(Clone, Default)]
struct OnNode {
    claims: ClaimSet,
    results: Vec<(usize, AllocationResult)>,
}

/// A member that has its node, or none.
struct Step {
    member: usize,
    /// Position of the node; the number of nodes for a member that is left out.
    node: usize,
    /// The node before the member came.
    before: OnNode,
}

/// Results that a search needs of its last member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Places,
    /// That there are places.
    Fitting,
}

impl Placing<'_, '_> {
    /// Tells if the members fit.
    pub(super) fn fitting(&self) -> Result<Fitting, Halt> {
        let mut search = Search::new(self);
        if search.run(Wanted::Fitting)? {
            return Ok(Fitting::Yes);
        }
        Ok(if search.is_open { Fitting::Open } else { Fitting::No })
    }

    /// Returns places of the members; `None` if they do not fit.
    pub(super) fn places(&self) -> Result<Option<Places>, Halt> {
        let mut search = Search::new(self);
        Ok(if search.run(Wanted::Places)? { Some(search.into_places()) } else { None })
    }

    /// Returns the reasons of the caller's check of nodes; none if the members fit.
    pub(super) fn refusals(&self) -> Result<BTreeSet<String>, Halt> {
        let mut search = Search::new(self);
        Ok(if search.run(Wanted::Fitting)? { BTreeSet::new() } else { search.refusals })
    }

    /// Returns true for a claim that has an allocation, which it keeps.
    fn is_kept(&self, claim: usize) -> bool {
        self.asked.own().get(claim).is_some_and(|claim| is_allocated(claim))
    }
}

impl<'s, 'q> Search<'s, 'q> {
    fn new(placing: &'s Placing<'s, 'q>) -> Self {
        let kinds = &placing.asked.members.kinds;
        let alike = kinds.iter().rev().take_while(|kind| Some(*kind) == kinds.last()).count();
        let settled_from = if placing.reach.is_divided() { kinds.len() - alike } else { kinds.len() };
        Self {
            placing,
            state: Cow::Borrowed(placing.state),
            path: Vec::with_capacity(kinds.len()),
            on_node: vec![OnNode::default(); placing.reach.nodes().len()],
            settled_from,
            is_open: false,
            refusals: BTreeSet::new(),
        }
    }

    /// Searches places. Returns false if there are none.
    fn run(&mut self, wanted: Wanted) -> Result<bool, Halt> {
        let work = &self.placing.asked.work;
        let (begin, mut from) = (work.spent(), 0);
        while let Some(member) = self.placing.asked.members.order.get(self.path.len()).copied() {
            if work.spent().saturating_sub(begin) > work.of_node() {
                return Err(Halt::Stopped(Limit::Node));
            }
            if self.advance(member, from, wanted)? {
                from = self.first_node();
            } else {
                match self.back()? {
                    Some(next) => from = next,
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Returns the first node for the next member: that of the member before if they are alike.
    fn first_node(&self) -> usize {
        let (kinds, placed) = (&self.placing.asked.members.kinds, self.path.len());
        let is_alike = placed > 0 && kinds.get(placed) == kinds.get(placed - 1);
        self.path.last().filter(|_| is_alike).map_or(0, |step| step.node)
    }

    /// Gives a member the first node from one on that serves it, or none if that is allowed.
    fn advance(&mut self, member: usize, from: usize, wanted: Wanted) -> Result<bool, Halt> {
        let nodes = self.on_node.len();
        for node in from..nodes {
            self.placing.asked.work.count(1)?;
            if self.put(member, node, wanted)? {
                return Ok(true);
            }
        }
        let left_out = self.path.iter().filter(|step| step.node == nodes).count();
        let may_be_left_out =
            from <= nodes && left_out + self.placing.asked.quorum < self.placing.asked.members.all.len();
        if may_be_left_out {
            self.path.push(Step { member, node: nodes, before: OnNode::default() });
        }
        Ok(may_be_left_out)
    }

    /// Takes back members up to one that has another node to try, and returns that node.
    fn back(&mut self) -> Result<Option<usize>, Halt> {
        while let Some(Step { node, before, .. }) = self.path.pop() {
            self.exchange(node, before)?;
            if self.path.len() < self.settled_from {
                return Ok(Some(node + 1));
            }
        }
        Ok(None)
    }

    /// Puts a member on a node if the node serves it with those that are there.
    fn put(&mut self, position: usize, node: usize, wanted: Wanted) -> Result<bool, Halt> {
        let placing = self.placing;
        let Some(member) = placing.asked.members.all.get(position) else { return Ok(false) };
        let object = placing.reach.nodes().get(node).filter(|object| member.may_use(object));
        let Some(object) = object.copied() else { return Ok(false) };
        if let Some(reason) = self.refusal(member, node) {
            self.refusals.insert(reason);
            return Ok(false);
        }
        let Some(claims) = self.claims_with(member, node) else { return Ok(false) };
        let attempt = placing.asked.attempt(&claims);
        let before = self.exchange(node, OnNode::default())?;
        let on_node = if self.is_told_by_a_fit(wanted) {
            let fits = placing.asked.work.fits(&attempt, &self.state, object)?;
            fits.then(|| OnNode { claims, results: Vec::new() })
        } else {
            let found = placing.asked.work.allocate(&attempt, &self.state, object)?;
            let results = found.map(|results| claims.iter().copied().zip(results).collect::<Vec<_>>());
            results.filter(|results| self.serves_others(results, node)).map(|results| OnNode { claims, results })
        };
        if let Some(on_node) = on_node {
            self.exchange(node, on_node)?;
            self.path.push(Step { member: position, node, before });
            return Ok(true);
        }
        self.exchange(node, before)?;
        self.note_open(node);
        Ok(false)
    }

    /// Returns true if the results of the next member are not wanted, since nobody comes after it.
    fn is_told_by_a_fit(&self, wanted: Wanted) -> bool {
        let asked = self.placing.asked;
        wanted == Wanted::Fitting && !asked.shares_claims && self.path.len() + 1 == asked.members.order.len()
    }

    /// Returns the reason of the caller's check why a member can't use a node.
    fn refusal(&self, member: &Member<'q>, node: usize) -> Option<String> {
        let (fit, gone) = (self.placing.asked.rules.fit?, self.placing.gone?);
        let nodes = self.placing.reach.nodes();
        let placed = self.path.iter().filter_map(|step| {
            let member = self.placing.asked.members.all.get(step.member)?;
            Some((&member.identity, node_name(nodes.get(step.node)?)))
        });
        let placed: Vec<(&PodIdentity, &str)> = placed.collect();
        let question = FitQuestion::new(member.occupant.pod, nodes.get(node)?).with_planned(&placed).with_gone(gone);
        fit.fits(&question).err()
    }

    /// Returns the claims to allocate on a node with a member more; `None` if one of its claims is allocated for a member on
    /// another node, and this node does not reach it.
    fn claims_with(&mut self, member: &Member<'_>, node: usize) -> Option<ClaimSet> {
        let mut claims = self.on_node.get(node)?.claims.clone();
        for claim in member.claims.iter().copied() {
            match self.allocated_elsewhere(claim, node) {
                Some(result) if !self.reaches(node, result) => {
                    self.is_open |= !self.placing.reach.is_divided();
                    return None;
                }
                Some(_) => {}
                None if claims.contains(&claim) => {}
                None => claims.push(claim),
            }
        }
        claims.sort_unstable();
        Some(claims)
    }

    /// Returns the allocation that a claim got for a member on another node.
    fn allocated_elsewhere(&self, claim: usize, node: usize) -> Option<&AllocationResult> {
        if !self.placing.asked.shares_claims || self.placing.is_kept(claim) {
            return None;
        }
        let elsewhere = self.on_node.iter().enumerate().filter(|(other, _)| *other != node);
        let mut results = elsewhere.flat_map(|(_, on_node)| &on_node.results);
        results.find(|(other, _)| *other == claim).map(|(_, result)| result)
    }

    /// Returns true if an allocation can be used on a node.
    fn reaches(&self, node: usize, result: &AllocationResult) -> bool {
        let Some(node) = self.placing.reach.nodes().get(node) else { return false };
        result.node_selector.as_ref().is_none_or(|selector| node_selector_matches(selector, node).unwrap_or(false))
    }

    /// Returns true if members on other nodes can use the allocations of a node.
    fn serves_others(&mut self, results: &[(usize, AllocationResult)], node: usize) -> bool {
        if !self.placing.asked.shares_claims {
            return true;
        }
        let members = &self.placing.asked.members.all;
        let elsewhere = self.path.iter().filter(|step| step.node != node && step.node < self.on_node.len());
        let mut uses =
            elsewhere.flat_map(|step| members.get(step.member).into_iter().map(move |member| (step.node, member)));
        let serves = uses.all(|(other, member)| {
            let mut shared =
                results.iter().filter(|(claim, _)| member.claims.contains(claim) && !self.placing.is_kept(*claim));
            shared.all(|(_, result)| self.reaches(other, result))
        });
        self.is_open |= !serves && !self.placing.reach.is_divided();
        serves
    }

    /// Notes that a node refuses a member while members on other nodes have devices that the node sees.
    fn note_open(&mut self, node: usize) {
        if self.placing.reach.is_divided() {
            return;
        }
        let elsewhere = self.on_node.iter().enumerate().filter(|(other, _)| *other != node);
        let mut devices =
            elsewhere.flat_map(|(_, on_node)| &on_node.results).flat_map(|(_, result)| of_allocation(result));
        self.is_open |= devices.any(|result| self.placing.reach.sees(node, result));
    }

    /// Replaces what members have on a node. Returns what was there.
    fn exchange(&mut self, node: usize, new: OnNode) -> Result<OnNode, Halt> {
        let Some(on_node) = self.on_node.get_mut(node) else { return Ok(OnNode::default()) };
        let old = std::mem::replace(on_node, new);
        for (claim, _) in old.results.iter().filter(|(claim, _)| !self.placing.is_kept(*claim)) {
            if let Some(claim) = self.placing.asked.own().get(*claim) {
                self.state.to_mut().forget(claim);
            }
        }
        for (claim, result) in on_node.results.iter().filter(|(claim, _)| !self.placing.is_kept(*claim)) {
            if let Some(claim) = self.placing.asked.own().get(*claim) {
                self.state.to_mut().assume(claim, result)?;
            }
        }
        Ok(old)
    }

    fn into_places(self) -> Places {
        let count = self.on_node.len();
        let mut nodes = vec![None; self.placing.asked.members.all.len()];
        for step in self.path.iter().filter(|step| step.node < count) {
            if let Some(node) = nodes.get_mut(step.member) {
                *node = Some(step.node);
            }
        }
        let mut results: Vec<_> = self.on_node.into_iter().flat_map(|on_node| on_node.results).collect();
        results.sort_by_key(|(claim, _)| *claim);
        results.dedup_by_key(|(claim, _)| *claim);
        Places { nodes, results }
    }
}
