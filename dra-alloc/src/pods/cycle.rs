//! One attempt to schedule one pod: its claims, and the decisions so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_attrs::{Gate, Index};
use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequest, ResourceClaim};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::blocked::BlockedError;
use super::claims::{claims_of_entries, entries};
use super::consumer::Consumer;
use super::extended_requests::ExtendedRequests;
use super::extended_resources::ExtendedResources;
use super::identity::PodIdentity;
use super::in_flight::Share;
use super::lookup::{allocation_of, requests_of, uid_of};
use super::options::PodOptions;
use super::tracker::ClaimTracker;
use super::{selector_problems, special_claim};
use crate::cluster::classes::Classes;
use crate::objective::Score;

/// One attempt to schedule one pod, from `PreFilter` on.
///
/// A cycle that is dropped gives back what it has in flight, unless its write may be stored. A copy has the same share in it.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "what a cycle has reserved is bound, or taken back"]
pub struct PodCycle {
    pub(super) pod: PodIdentity,
    pub(super) options: PodOptions,
    /// Claims of the pod's entries, then the claim for its extended resources.
    pub(super) claims: Vec<CycleClaim>,
    /// Extended resources of the pod, if a device class serves one of them.
    pub(super) extended: Option<ExtendedResources>,
    /// Requests of the claim for extended resources on the node that `Reserve` chose.
    pub(super) chosen_requests: Option<ExtendedRequests>,
    /// Results of the nodes that passed the filter and have something to allocate.
    pub(super) nodes: BTreeMap<String, NodeResults>,
    /// Claims that can't be used on at least one node.
    pub(super) out_of_reach: BTreeSet<Index<CycleClaim>>,
}

/// Allocations on one node, of the claims that the cycle has to allocate, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeResults {
    pub(super) results: Vec<(Index<CycleClaim>, AllocationResult)>,
    /// Requests of the claim for extended resources, if the node needs one.
    pub(super) extended: Option<ExtendedRequests>,
    /// Score of the devices, if the allocator has an objective.
    pub(super) choice: Option<Box<Score>>,
}

impl NodeResults {
    pub(super) fn allocations(&self) -> impl Iterator<Item = &AllocationResult> {
        self.results.iter().map(|(_, allocation)| allocation)
    }
}

/// A claim of the pod in one cycle. A claim that several entries of the pod name is in the cycle once. The claim for the
/// pod's extended resources comes last; it does not exist before the binding.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleClaim {
    pub(super) claim: Arc<ResourceClaim>,
    pub(super) consumer: Consumer,
    pub(super) situation: ClaimSituation,
    pub(super) is_for_extended_resources: bool,
    /// Allocation that `Reserve` chose.
    pub(super) chosen: Option<AllocationResult>,
    /// Share in the chosen allocation while it is in flight.
    pub(super) in_flight: Option<Share>,
}

/// Situation of a claim at the begin of a cycle.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a claim is allocated, being allocated or neither")]
pub enum ClaimSituation {
    /// The claim is allocated. Its allocation stays, and the pod has to be added to its consumers.
    Allocated,
    /// The claim has this allocation, and nothing shows it yet: another pod of the same group has it in flight and the pod
    /// shares it, or an earlier attempt has written it and knows not if it was stored.
    Pending(Box<AllocationResult>),
    /// The claim has to be allocated.
    ToAllocate,
}

impl CycleClaim {
    /// Returns the claim: as the cycle found it, or as the last write of the cycle left it.
    #[must_use]
    pub fn claim(&self) -> &ResourceClaim {
        &self.claim
    }

    /// Returns the consumer for which the claim is going to be reserved.
    #[must_use]
    pub const fn consumer(&self) -> &Consumer {
        &self.consumer
    }

    /// Returns the situation in which the cycle found the claim.
    #[must_use]
    pub const fn situation(&self) -> &ClaimSituation {
        &self.situation
    }

    /// Returns the allocation that `Reserve` chose; `None` before, and for a claim that was allocated already.
    #[must_use]
    pub const fn chosen(&self) -> Option<&AllocationResult> {
        self.chosen.as_ref()
    }

    /// Returns true if the chosen allocation is in flight: reserved, and not written or given back yet.
    #[must_use]
    pub const fn has_allocation_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Returns true for the claim that provides the pod's extended resources (KEP-5004).
    #[must_use]
    pub const fn is_for_extended_resources(&self) -> bool {
        self.is_for_extended_resources
    }

    fn new(claim: &Arc<ResourceClaim>, consumer: Consumer) -> Self {
        Self {
            claim: Arc::clone(claim),
            consumer,
            situation: ClaimSituation::ToAllocate,
            is_for_extended_resources: false,
            chosen: None,
            in_flight: None,
        }
    }

    /// Returns the claim as it is allocated on a node where the claim for extended resources has `requests`; `None` for that
    /// claim if the node needs none.
    pub(super) fn object_on_node(&self, requests: Option<&ExtendedRequests>) -> Option<Arc<ResourceClaim>> {
        if !self.is_for_extended_resources {
            return Some(Arc::clone(&self.claim));
        }
        requests.map(|requests| Arc::new(special_claim::with_requests(&self.claim, requests)))
    }

    pub(super) fn key(&self) -> ClaimKey {
        ClaimKey::from_metadata(&self.claim.metadata)
    }

    /// Returns the allocation that the claim has before the cycle allocates anything.
    pub(super) fn existing_allocation(&self) -> Option<&AllocationResult> {
        match &self.situation {
            ClaimSituation::Allocated => allocation_of(&self.claim),
            ClaimSituation::Pending(allocation) => Some(allocation),
            ClaimSituation::ToAllocate => None,
        }
    }
}

/// Claims that the cycles of one group's pods have in flight, by UID: a further pod of the group shares them. A pod without
/// a group takes an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRound {
    pub(super) claims: Option<BTreeSet<String>>,
}

impl GroupRound {
    /// Begins a round of one group's pods.
    #[must_use]
    pub const fn of_group() -> Self {
        Self { claims: Some(BTreeSet::new()) }
    }

    fn has(&self, uid: &str) -> bool {
        self.claims.as_ref().is_some_and(|claims| claims.contains(uid))
    }

    pub(super) fn add(&mut self, uid: &str) {
        if let Some(claims) = &mut self.claims {
            claims.insert(uid.to_owned());
        }
    }
}

impl PodCycle {
    /// Begins an attempt to schedule a pod (`PreFilter`). Returns `None` if the pod has no claims and no extended resources
    /// that a device class serves, so that there is nothing to do.
    ///
    /// `group` is the pod's group, if it has one and the cache knows it. `round` has what other pods of the group have in
    /// flight.
    ///
    /// # Errors
    /// The first claim with a problem that keeps the pod from every node.
    ///
    /// # Complexity
    /// Linear in the pod's claims and their requests, times a look-up in the tracker and the classes.
    pub fn pre_filter(
        pod: &Pod,
        group: Option<&PodGroup>,
        tracker: &ClaimTracker,
        classes: &Classes,
        round: &GroupRound,
        options: PodOptions,
    ) -> Result<Option<Self>, BlockedError> {
        let found: Vec<_> = claims_of_entries(pod, tracker, options).collect::<Result<_, _>>()?;
        let extended = ExtendedResources::of_pod(pod, classes, options)?;
        if found.is_empty() && extended.is_none() {
            return Ok(None);
        }
        let identity = PodIdentity::new(pod, options);
        let group = match &identity.group {
            Some(name) if group.is_none() => return Err(BlockedError::GroupNotFound { group: name.clone() }),
            Some(_) => group,
            None => None,
        };
        let mut claims: Vec<CycleClaim> = Vec::with_capacity(found.len());
        for (entry, claim) in found {
            let Some(entry) = entry.of(entries(pod)) else { continue };
            let consumer = Consumer::of_entry(pod, entry, group, options)?;
            if !claims.iter().any(|known| uid_of(&known.claim) == uid_of(claim)) {
                claims.push(CycleClaim::new(claim, consumer));
            }
        }
        if extended.is_some() {
            let left_over = tracker.made_for(&identity).cloned();
            let owners = options.profile().rules().plugin.owners;
            let claim = left_over.unwrap_or_else(|| Arc::new(special_claim::template(&identity, owners)));
            let claim = CycleClaim::new(&claim, Consumer::pod(&identity));
            claims.push(CycleClaim { is_for_extended_resources: true, ..claim });
        }
        for claim in &mut claims {
            claim.situation = situation_of(claim, tracker, classes, round, options)?;
        }
        Ok(Some(Self {
            pod: identity,
            options,
            claims,
            extended,
            chosen_requests: None,
            nodes: BTreeMap::new(),
            out_of_reach: BTreeSet::new(),
        }))
    }

    /// Returns the pod of the cycle.
    #[must_use]
    pub const fn pod(&self) -> &PodIdentity {
        &self.pod
    }

    /// Returns the claims of the pod, in the order of its entries, then the claim for its extended resources.
    #[must_use]
    pub fn claims(&self) -> &[CycleClaim] {
        &self.claims
    }

    /// Returns true if a claim has no allocation in its status.
    #[must_use]
    pub fn needs_allocation(&self) -> bool {
        self.claims.iter().any(|claim| claim.situation != ClaimSituation::Allocated)
    }

    /// Returns the claims that can't be used on at least one of the nodes that were tried.
    pub fn out_of_reach(&self) -> impl Iterator<Item = &CycleClaim> {
        self.out_of_reach.iter().filter_map(|index| index.of(&self.claims))
    }

    /// Returns the allocations on a node that passed the filter, in the order of the claims; empty if nothing has to be
    /// allocated.
    pub fn results_on(&self, node: &str) -> impl Iterator<Item = &AllocationResult> {
        self.nodes.get(node).into_iter().flat_map(NodeResults::allocations)
    }

    /// Returns the claims with an allocation on a node, each with it: the one that it has, or the one that the filter has
    /// found. For [`PodNodeResources::new`](super::PodNodeResources::new).
    pub fn allocations_on(&self, node: &str) -> impl Iterator<Item = (&ResourceClaim, &AllocationResult)> {
        let found = self.nodes.get(node);
        self.indexed().filter_map(move |(index, claim)| {
            let new = || found?.results.iter().find(|(of, _)| *of == index).map(|(_, allocation)| allocation);
            Some((&*claim.claim, claim.existing_allocation().or_else(new)?))
        })
    }

    /// Returns the score of the devices that the filter has found on a node by an allocator with an objective. The node with the
    /// least value is the best; a node where nothing is to be allocated has none.
    #[must_use]
    pub fn choice_on(&self, node: &str) -> Option<&Score> {
        self.nodes.get(node)?.choice.as_deref()
    }

    /// Returns the requests of the claim for extended resources on a node that passed the filter; `None` if the node needs
    /// no such claim.
    #[must_use]
    pub fn extended_requests_on(&self, node: &str) -> Option<&ExtendedRequests> {
        self.nodes.get(node)?.extended.as_ref()
    }

    /// Returns the extended resources that the pod asks for; none if no device class serves any of them.
    pub(crate) fn extended_resource_names(&self) -> impl Iterator<Item = &str> {
        self.extended.iter().flat_map(ExtendedResources::names)
    }

    /// Returns the claim for extended resources that an earlier attempt has left over: it has to be deleted first.
    pub(super) fn left_over(&self) -> Option<&CycleClaim> {
        let special = self.claims.last().filter(|claim| claim.is_for_extended_resources)?;
        (!special_claim::is_in_memory(&special.claim)).then_some(special)
    }

    /// Returns the claims with their positions.
    pub(super) fn indexed(&self) -> impl Iterator<Item = (Index<CycleClaim>, &CycleClaim)> {
        self.claims.iter().enumerate().map(|(index, claim)| (Index::from(index), claim))
    }

    pub(super) fn claim_mut(&mut self, index: Index<CycleClaim>) -> Option<&mut CycleClaim> {
        self.claims.get_mut(usize::from(index))
    }
}

fn situation_of(
    CycleClaim { claim, is_for_extended_resources, .. }: &CycleClaim,
    tracker: &ClaimTracker,
    classes: &Classes,
    round: &GroupRound,
    options: PodOptions,
) -> Result<ClaimSituation, BlockedError> {
    if let Some(allocation) = allocation_of(claim) {
        let problems = allocation.node_selector.as_ref().map(selector_problems::problems).unwrap_or_default();
        return problems
            .into_result()
            .map(|()| ClaimSituation::Allocated)
            .map_err(|problems| BlockedError::NodeSelector { problems });
    }
    // An allocation that may be stored or not is chosen again: its write will tell.
    if let Some(allocation) = tracker.allocation_in_doubt(uid_of(claim)) {
        return Ok(ClaimSituation::Pending(Box::new(allocation.clone())));
    }
    if let Some(allocation) = tracker.allocation_in_flight(uid_of(claim)) {
        if round.has(uid_of(claim)) {
            return Ok(ClaimSituation::Pending(Box::new(allocation.clone())));
        }
        return Err(BlockedError::InFlight { claim: ClaimKey::from_metadata(&claim.metadata) });
    }
    if !is_for_extended_resources {
        requests_of(claim).try_for_each(|request| check_request(claim, request, classes, options))?;
    }
    Ok(ClaimSituation::ToAllocate)
}

fn check_request(
    claim: &ResourceClaim,
    request: &DeviceRequest,
    classes: &Classes,
    options: PodOptions,
) -> Result<(), BlockedError> {
    let DeviceRequest { name, exactly, first_available } = request;
    let key = || ClaimKey::from_metadata(&claim.metadata);
    if let Some(exactly) = exactly {
        return check_class(&exactly.device_class_name, name, classes);
    }
    let alternatives = first_available.as_deref().unwrap_or_default();
    if alternatives.is_empty() {
        return Err(BlockedError::UnknownRequest { claim: key(), request: name.clone() });
    }
    if !options.has(Gate::PrioritizedList) {
        return Err(BlockedError::PrioritizedListOff { claim: key(), request: name.clone() });
    }
    alternatives.iter().try_for_each(|alternative| {
        check_class(&alternative.device_class_name, &format!("{name}/{}", alternative.name), classes)
    })
}

fn check_class(class: &str, request: &str, classes: &Classes) -> Result<(), BlockedError> {
    if class.is_empty() {
        return Err(BlockedError::NoClass { request: request.to_owned() });
    }
    match classes.named(class) {
        Some(_) => Ok(()),
        None => Err(BlockedError::ClassNotFound { request: request.to_owned(), class: class.to_owned() }),
    }
}
