//! `Filter`: the check of nodes for the pod's claims. For several nodes the claims are read once, and a long search is made once for
//! nodes in one state.

use std::sync::Arc;

use dra_attrs::internal::release::FilterTimeout;
use dra_attrs::{Gate, Index, Profile, node_selector_matches};
use dra_device::claims::ClaimKey;
use dra_node::declared_features::{CandidateNodes, DeclaredFeature};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerExtendedResourceRequest, Node};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::binding_conditions::BindingReport;
use super::cycle::{ClaimSituation, CycleClaim, NodeResults, PodCycle};
use super::extended_requests::{ExtendedRequests, ExtendedResourceError};
use super::status_code::StatusCode;
use crate::allocator::{Allocator, Attempt, ExplainError, Verdict};
use crate::cluster::state::AllocatedState;
use crate::explain::{Detail, Explanation};
use crate::objective::Score;
use crate::search::allocate_error::AllocateError;
use crate::search::budget::Budget;
use crate::search::outcome::{NodeError, Outcome};

/// Reason why the pod's claims can't be served on a node. Displayed in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFilterError {
    /// An allocated claim can't be used on the node.
    #[error("resourceclaim not available on the node")]
    OutOfReach {
        /// Namespaces and names of those claims.
        claims: Vec<ClaimKey>,
    },
    /// The node does not declare a feature that an allocated claim requires (KEP-5945).
    #[error("node does not declare the feature {feature}, which the allocation of resource claim {claim} requires")]
    FeatureNotDeclared {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Name of the feature.
        feature: &'static str,
    },
    /// The claim for the pod's extended resources is left over from an earlier attempt. [`PodCycle::post_filter`] deletes it.
    #[error("cannot schedule extended resource claim")]
    LeftOver {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The extended resources of the pod can't be provided on the node (KEP-5004).
    #[error(transparent)]
    ExtendedResource(Box<ExtendedResourceError>),
    /// The devices that the node sees do not satisfy the claims.
    #[error("cannot allocate all claims")]
    CannotAllocate,
    /// The node can't be used at the moment.
    #[error(transparent)]
    Failed(NodeError),
    /// The budget was exhausted.
    #[error("node {node}: timed out trying to allocate devices")]
    TimedOut {
        /// Name of the node.
        node: String,
        /// Release of the scheduler, of which the status is.
        profile: Profile,
    },
    /// A claim, class or slice is invalid on every node: the attempt ends.
    #[error("{}", upstream_text(.0))]
    Invalid(#[source] Box<AllocateError>),
}

impl NodeFilterError {
    /// Returns the status of the extension point. `Error` ends the attempt: no other node is tried.
    #[must_use]
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::TimedOut { profile, .. } => match profile.rules().plugin.filter_timeout {
                FilterTimeout::SkipNode => StatusCode::Unschedulable,
                FilterTimeout::EndAttempt => StatusCode::Error,
            },
            Self::Invalid(_) => StatusCode::Error,
            _ => StatusCode::UnschedulableAndUnresolvable,
        }
    }
}

/// Returns the text of kube-scheduler 1.36, which does not name the device on which a selector failed.
fn upstream_text(error: &AllocateError) -> String {
    match error {
        AllocateError::SelectorEvaluation { owner, index, source, .. } => {
            format!("{owner}: selector #{index}: CEL runtime error: {}", source.message())
        }
        error => error.to_string(),
    }
}

/// Result of the filter for one node. [`PodCycle::record`] takes it into the cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterVerdict {
    outcome: Result<NodeResults, NodeFilterError>,
    out_of_reach: Vec<Index<CycleClaim>>,
    explanation: Option<Arc<Explanation>>,
    /// Mappings of the claim for extended resources that the node would need.
    mappings: Vec<ContainerExtendedResourceRequest>,
}

impl FilterVerdict {
    pub(super) fn refused(refusal: NodeFilterError) -> Self {
        Self { outcome: Err(refusal), out_of_reach: Vec::new(), explanation: None, mappings: Vec::new() }
    }

    /// Returns the reason why the node can't be used; `None` if it can.
    #[must_use]
    pub const fn refusal(&self) -> Option<&NodeFilterError> {
        match &self.outcome {
            Ok(_) => None,
            Err(refusal) => Some(refusal),
        }
    }

    /// Returns the containers and resources that the requests of the claim for extended resources serve on the node: the
    /// explanation of the allocator names these requests.
    #[must_use]
    pub fn mappings(&self) -> &[ContainerExtendedResourceRequest] {
        &self.mappings
    }

    /// Returns the score of the devices, if the allocator has an objective and the claims can be served.
    #[must_use]
    pub fn choice(&self) -> Option<&Score> {
        self.outcome.as_ref().ok()?.choice.as_deref()
    }

    /// Explains the verdict, as [`Verdict::explain`] does: returns the same verdict with the reasons.
    ///
    /// # Errors
    /// The node has another verdict by now.
    ///
    /// # Complexity
    /// That of [`PodCycle::filter`] with an explanation, which nodes in one state share.
    ///
    /// ```
    /// use dra_alloc::explain::Detail;
    /// use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions};
    /// use dra_alloc::{Allocator, Budget, Classes, Inventory, Profile};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
    /// use k8s_openapi::jiff::Timestamp;
    /// use serde_json::{from_value, json};
    ///
    /// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "namespace": "d", "uid": "1"}, "spec": {
    ///     "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}))?;
    /// let pod: Pod = from_value(json!({"metadata": {"name": "p", "namespace": "d", "uid": "2"}, "spec": {"containers": [],
    ///     "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
    /// let node: Node = from_value(json!({"metadata": {"name": "a"}}))?;
    /// let (inventory, classes) = (Inventory::default(), Classes::new([class]));
    /// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    /// let mut tracker = ClaimTracker::new(Profile::V1_37);
    /// tracker.observe(claim)?;
    /// let options = PodOptions::new(Profile::V1_37);
    /// let cycle = PodCycle::pre_filter(&pod, None, &tracker, &classes, &GroupRound::default(), options)?.unwrap();
    ///
    /// let filter = cycle.node_filter(&allocator, tracker.state());
    /// let (now, budget) = (Timestamp::UNIX_EPOCH, Budget::default());
    /// let verdict = filter.filter(&node, now, budget);
    /// assert_eq!(verdict.explanation(), None);
    /// let verdict = verdict.explain(&filter, &node, now, Detail::Summary, budget)?;
    /// assert_eq!(verdict.explanation().unwrap().headline().unwrap(), "no devices");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(
        &self,
        filter: &NodeFilter<'_>,
        node: &Node,
        now: Timestamp,
        detail: Detail,
        budget: Budget<'_>,
    ) -> Result<Self, ExplainError> {
        let explained = filter.explained(node, now, detail, budget);
        if explained.outcome == self.outcome { Ok(explained) } else { Err(ExplainError::MovedOn) }
    }

    /// Returns the reason why the node can't be used, as [`FilterVerdict::refusal`] does.
    pub(super) fn into_refusal(self) -> Option<NodeFilterError> {
        self.outcome.err()
    }

    /// Returns the results for the node; `None` if it can't be used.
    pub(super) const fn results(&self) -> Option<&NodeResults> {
        match &self.outcome {
            Ok(results) => Some(results),
            Err(_) => None,
        }
    }

    /// Returns the explanation of the allocator, if it was asked for one and could not allocate the claims.
    #[must_use]
    pub fn explanation(&self) -> Option<&Explanation> {
        self.explanation.as_deref()
    }
}

/// Filter of one cycle for several nodes and threads. It gives the verdicts of [`PodCycle::filter`].
///
/// ```
/// use dra_alloc::objective::Objective;
/// use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions};
/// use dra_alloc::{Allocator, Budget, Classes, Inventory, Profile};
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
/// use k8s_openapi::jiff::Timestamp;
/// use serde_json::{from_value, json};
///
/// let slice = |node: &str, memory: &str| from_value::<ResourceSlice>(json!({"metadata": {"name": node}, "spec": {
///     "driver": "gpu.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
///     "devices": [{"name": "gpu-0", "capacity": {"memory": {"value": "80Gi"}}},
///                 {"name": "gpu-1", "capacity": {"memory": {"value": memory}}}],
/// }}));
/// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
/// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "namespace": "d", "uid": "1"}, "spec": {
///     "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}))?;
/// let pod: Pod = from_value(json!({"metadata": {"name": "p", "namespace": "d", "uid": "2"}, "spec": {"containers": [],
///     "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
/// let nodes: Vec<Node> = from_value(json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]))?;
///
/// let (inventory, classes) = (Inventory::new([slice("a", "40Gi")?, slice("b", "4Gi")?]), Classes::new([class]));
/// let objective = Objective::least_waste("gpu.example.com/memory")?;
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_objective(&objective);
/// let mut tracker = ClaimTracker::new(Profile::V1_37);
/// tracker.observe(claim)?;
/// let options = PodOptions::new(Profile::V1_37);
/// let mut cycle = PodCycle::pre_filter(&pod, None, &tracker, &classes, &GroupRound::default(), options)?.unwrap();
///
/// let verdicts: Vec<_> = {
///     let filter = cycle.node_filter(&allocator, tracker.state());
///     nodes.iter().map(|node| filter.filter(node, Timestamp::UNIX_EPOCH, Budget::default())).collect()
/// };
/// for (node, verdict) in nodes.iter().zip(verdicts) {
///     cycle.record(node.metadata.name.as_deref().unwrap(), verdict);
/// }
/// // Of 80 GiB, half is wasted on node a, and a twentieth on node b.
/// let value = |node: &str| cycle.choice_on(node).unwrap().value.clone();
/// assert_eq!((value("a"), value("b")), (vec![500], vec![50]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NodeFilter<'c> {
    pub(super) cycle: &'c PodCycle,
    allocator: &'c Allocator<'c>,
    state: &'c AllocatedState,
    /// Attempt for the claims to allocate; `None` if they differ by node, or if one node is asked.
    attempt: Option<Attempt<'c>>,
}

impl NodeFilter<'_> {
    /// Decides for a node as [`PodCycle::filter`] does.
    ///
    /// # Complexity
    /// That of [`PodCycle::filter`]; that of reading a node's devices if one in the same state took a long
    /// search before. [`super::NodesFilter`] looks answers up.
    #[must_use]
    pub fn filter(&self, node: &Node, now: Timestamp, budget: Budget<'_>) -> FilterVerdict {
        self.explained(node, now, self.allocator.detail(), budget)
    }

    /// Returns the devices in use.
    pub(super) const fn state(&self) -> &AllocatedState {
        self.state
    }

    /// Decides for a node, with an explanation of a detail of its own.
    pub(super) fn explained(&self, node: &Node, now: Timestamp, detail: Detail, budget: Budget<'_>) -> FilterVerdict {
        self.cycle.filter_with(self, node, now, detail, budget)
    }
}

impl PodCycle {
    /// Decides if the pod's claims can be served on a node (`Filter`). Changes nothing, so that several threads can try
    /// nodes of one cycle.
    ///
    /// Extended resources come first: those that the node does not provide itself make a claim for this node. Allocated
    /// claims are checked then: their node selector, and their binding conditions at `now`. The others are allocated together,
    /// the claim for extended resources last, with the devices in use of `state`.
    ///
    /// [`PodCycle::node_filter`] does the same for several nodes.
    ///
    /// # Complexity
    /// That of [`Allocator::allocate`] on the claims to allocate.
    #[must_use]
    pub fn filter(
        &self,
        node: &Node,
        allocator: &Allocator<'_>,
        state: &AllocatedState,
        now: Timestamp,
        budget: Budget<'_>,
    ) -> FilterVerdict {
        NodeFilter { cycle: self, allocator, state, attempt: None }.filter(node, now, budget)
    }

    /// Begins the filter for several nodes, with the devices in use of `state`.
    ///
    /// # Complexity
    /// Linear in the number of requests of the pod's claims.
    #[must_use]
    pub fn node_filter<'c>(&'c self, allocator: &'c Allocator<'_>, state: &'c AllocatedState) -> NodeFilter<'c> {
        let attempt = self.is_same_everywhere().then(|| allocator.attempt(state, self.to_allocate()));
        NodeFilter { cycle: self, allocator, state, attempt }
    }

    /// Returns true if there are claims to allocate, the same on all nodes. Extended resources make another claim on each node.
    pub(super) fn is_same_everywhere(&self) -> bool {
        self.extended.is_none() && self.to_allocate().next().is_some()
    }

    /// Returns the claims to allocate.
    pub(super) fn to_allocate(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        let claims = self.claims.iter().filter(|claim| claim.situation == ClaimSituation::ToAllocate);
        claims.map(|claim| &claim.claim)
    }

    fn filter_with(
        &self,
        filter: &NodeFilter<'_>,
        node: &Node,
        now: Timestamp,
        detail: Detail,
        budget: Budget<'_>,
    ) -> FilterVerdict {
        let extended = match self.extended_requests(node) {
            Ok(extended) => extended,
            Err(refusal) => return FilterVerdict::refused(refusal),
        };
        let mappings = extended.as_ref().map(|extended| extended.mappings.clone()).unwrap_or_default();
        let out_of_reach = match self.all_out_of_reach(node, now) {
            Ok(out_of_reach) => out_of_reach,
            Err(refusal) => return FilterVerdict::refused(refusal),
        };
        let (results, explanation) = match self.allocate(filter, node, detail, budget, extended) {
            Ok(results) => (results, None),
            // Claims out of reach are not remembered then, as in kube-scheduler.
            Err(refused) => {
                let (refusal, explanation) = *refused;
                return FilterVerdict { explanation, mappings, ..FilterVerdict::refused(refusal) };
            }
        };
        if out_of_reach.is_empty() {
            return FilterVerdict { outcome: Ok(results), out_of_reach, explanation, mappings };
        }
        let outcome = Err(self.refusal_of_reach(&out_of_reach));
        FilterVerdict { outcome, out_of_reach, explanation, mappings }
    }

    /// Returns the claims that have an allocation and can't be used on a node.
    pub(super) fn all_out_of_reach(
        &self,
        node: &Node,
        now: Timestamp,
    ) -> Result<Vec<Index<CycleClaim>>, NodeFilterError> {
        let mut out_of_reach = Vec::new();
        for (index, claim) in self.indexed() {
            if !self.reach(claim, node, now)? {
                out_of_reach.push(index);
            }
        }
        Ok(out_of_reach)
    }

    pub(super) fn refusal_of_reach(&self, out_of_reach: &[Index<CycleClaim>]) -> NodeFilterError {
        let claims = out_of_reach.iter().filter_map(|index| Some(index.of(&self.claims)?.key())).collect();
        NodeFilterError::OutOfReach { claims }
    }

    /// Takes the verdict for a node into the cycle, for `Score`, `Reserve` and `PostFilter`.
    pub fn record(&mut self, node: &str, verdict: FilterVerdict) {
        self.out_of_reach.extend(verdict.out_of_reach);
        match verdict.outcome {
            Ok(results) if self.needs_allocation() => drop(self.nodes.insert(node.to_owned(), results)),
            _ => drop(self.nodes.remove(node)),
        }
    }

    /// Returns the requests of the claim for extended resources on a node.
    fn extended_requests(&self, node: &Node) -> Result<Option<ExtendedRequests>, NodeFilterError> {
        let Some(extended) = &self.extended else { return Ok(None) };
        match self.left_over() {
            Some(claim) => Err(NodeFilterError::LeftOver { claim: claim.key() }),
            None => extended.requests_on(node).map_err(|error| NodeFilterError::ExtendedResource(Box::new(error))),
        }
    }

    /// Returns true if a claim that has an allocation, or gets one from another pod of the group, can be used on a node.
    fn reach(&self, claim: &CycleClaim, node: &Node, now: Timestamp) -> Result<bool, NodeFilterError> {
        let Some(allocation) = claim.existing_allocation() else { return Ok(true) };
        if !is_selected(allocation, node) {
            return Ok(false);
        }
        if claim.situation != ClaimSituation::Allocated {
            return Ok(true);
        }
        let requires = self.options.has(Gate::OptionalNodeOperations);
        let feature = DeclaredFeature::new(self.options.profile()).required_by_claim(&claim.claim).filter(|_| requires);
        if let Some(feature) = feature
            && CandidateNodes::from_nodes([node], &[feature]).fitting.is_empty()
        {
            return Err(NodeFilterError::FeatureNotDeclared { claim: claim.key(), feature });
        }
        let conditions = self.options.has(Gate::DeviceBindingConditions);
        Ok(!conditions || !BindingReport::of_claim(&claim.claim, now, self.options).is_lost())
    }

    fn allocate(
        &self,
        filter: &NodeFilter<'_>,
        node: &Node,
        detail: Detail,
        budget: Budget<'_>,
        extended: Option<ExtendedRequests>,
    ) -> Result<NodeResults, Refused> {
        let to_allocate = |(_, claim): &(Index<CycleClaim>, &CycleClaim)| claim.situation == ClaimSituation::ToAllocate;
        let claims = self.indexed().filter(to_allocate);
        let objects: Vec<_> = claims.filter_map(|(_, claim)| claim.object_on_node(extended.as_ref())).collect();
        if objects.is_empty() {
            return Ok(self.results_with(Vec::new(), extended));
        }
        let verdict = match &filter.attempt {
            Some(attempt) => attempt.explained(node, detail, budget),
            None => filter.allocator.attempt_on_one(filter.state, &objects).explained(node, detail, budget),
        };
        let Verdict { outcome, explanation, score, .. } =
            verdict.map_err(|error| Box::new((NodeFilterError::Invalid(Box::new(error)), None)))?;
        let refusal = match outcome {
            Outcome::Allocated(allocations) => {
                let results = self.results_with(allocations, extended);
                return Ok(NodeResults { choice: score, ..results });
            }
            Outcome::Unsatisfied => NodeFilterError::CannotAllocate,
            Outcome::FailedOnNode(failure) => NodeFilterError::Failed(failure),
            Outcome::Stopped(_) => NodeFilterError::TimedOut {
                node: node.metadata.name.clone().unwrap_or_default(),
                profile: self.options.profile(),
            },
        };
        Err(Box::new((refusal, explanation)))
    }

    /// Returns the allocations of all claims that have to be allocated: those in flight, and new ones, in the order of the
    /// claims.
    fn results_with(&self, new: Vec<AllocationResult>, extended: Option<ExtendedRequests>) -> NodeResults {
        let mut new = new.into_iter();
        let of_claim = |(index, claim): (Index<CycleClaim>, &CycleClaim)| {
            let allocation = match &claim.situation {
                ClaimSituation::Allocated => None,
                ClaimSituation::Pending(allocation) => Some(AllocationResult::clone(allocation)),
                ClaimSituation::ToAllocate => new.next(),
            };
            Some((index, allocation?))
        };
        NodeResults { results: self.indexed().filter_map(of_claim).collect(), extended, choice: None }
    }
}

/// Reason why the claims can't be allocated on a node, with its explanation.
type Refused = Box<(NodeFilterError, Option<Arc<Explanation>>)>;

/// Returns true if an allocation can be used on a node. A selector that can't be read selects nothing; `PreFilter` has
/// refused it before.
fn is_selected(allocation: &AllocationResult, node: &Node) -> bool {
    let selector = allocation.node_selector.as_ref();
    selector.is_none_or(|selector| node_selector_matches(selector, node).unwrap_or(false))
}
