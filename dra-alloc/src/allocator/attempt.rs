//! Attempt to allocate claims: the claims, read once and then allocated on any number of nodes.
//!
//! A claim that is allocated already keeps its allocation. Its devices are not examined; only the node selector of the
//! allocation decides whether a node can be used, as in the `Filter` of kube-scheduler's DRA plugin, 1.37.

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use dra_attrs::{Index, node_selector_matches};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use smallvec::SmallVec;

use super::verdict::Verdict;
use crate::cluster::inventory::shape::KnownLens;
use crate::cluster::state::AllocatedState;
use crate::explain::{Cause, ClaimName, Detail, ExplainedStates, Explanation, Reason, Refused, explain};
use crate::objective::{KnownSearches, Objective, Question, Score, Vacated, best_on};
use crate::search::allocate_error::AllocateError;
use crate::search::budget::{Budget, Effort, Meter};
use crate::search::context::{Context, FailingSelectors};
use crate::search::outcome::{Fit, Outcome};
use crate::search::request::{Plan, claim_name};
use crate::search::{SearchedStates, allocate_on, fits_within, lens_of};

/// Attempt to allocate claims together: the claims, read once for any number of nodes and threads.
///
/// [`Attempt::fits`] and [`Attempt::feasible`] search without building results; [`Attempt::allocate`] builds them for the
/// node that is taken.
///
/// A long search is made once for nodes in one state: with the same devices and the same of them in use, but for names and for
/// attributes that the claims do not read. So is an explanation. Steps and work of a verdict are those of the node's own search.
/// With [`super::Nodes`] an answer is made once for each state, and no node need be looked at.
///
/// ```
/// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Fit, Inventory, Outcome, Profile};
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
/// use serde_json::{from_value, json};
///
/// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "b"}, "spec": {
///     "driver": "gpu.example.com", "nodeName": "b", "devices": [{"name": "gpu-0"}],
///     "pool": {"name": "b", "generation": 1, "resourceSliceCount": 1},
/// }}))?;
/// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
/// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "training"}, "spec": {"devices": {"requests": [
///     {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
/// ]}}}))?;
/// let nodes: Vec<Node> = from_value(json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]))?;
///
/// let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
/// let (state, claims) = (AllocatedState::default(), [claim]);
/// let attempt = allocator.attempt(&state, &claims);
/// // From the second node on, as kube-scheduler goes on where it stopped.
/// let rotated = nodes[1..].iter().chain(&nodes[..1]);
/// let (node, fit) = attempt.feasible(rotated, Budget::default()).next().unwrap()?;
/// assert_eq!((node.metadata.name.as_deref(), fit), (Some("b"), Fit::Yes));
/// assert!(matches!(attempt.allocate(node, Budget::default())?.outcome, Outcome::Allocated(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Attempt<'c> {
    context: Context<'c>,
    detail: Detail,
    /// Claims without an allocation in their status.
    pending: SmallVec<[&'c ResourceClaim; 4]>,
    plan: Plan<'c>,
    /// Claims with an allocation in their status.
    allocated: Vec<AllocatedClaim<'c>>,
    /// Copies of all claims for explanations, made for the first one. Those with an allocation request nothing.
    explained: OnceLock<Vec<ResourceClaim>>,
    explained_states: ExplainedStates,
    /// Searches for further nodes; `None` if there is one node.
    searched_states: Option<SearchedStates>,
    objective: Option<&'c Objective>,
    /// Searches for the best solution, for further nodes; `None` if there is one node, or no objective.
    known_searches: Option<KnownSearches>,
    /// State in which the objective's units have given back what they hold; `None` without units.
    vacated: Option<Vacated>,
}

/// A claim with an allocation in its status. The allocator leaves that allocation unchanged.
struct AllocatedClaim<'c> {
    /// Position among all claims of the call.
    index: Index<ResourceClaim>,
    claim: &'c ResourceClaim,
    allocation: &'c AllocationResult,
}

impl<'c> Attempt<'c> {
    pub(super) fn new<'i: 'c, C: Borrow<ResourceClaim> + 'i>(
        context: Context<'c>,
        detail: Detail,
        objective: Option<&'c Objective>,
        claims: impl IntoIterator<Item = &'i C>,
    ) -> Self {
        let (mut pending, mut allocated) = (SmallVec::new(), Vec::new());
        for (index, claim) in claims.into_iter().enumerate() {
            let claim: &ResourceClaim = claim.borrow();
            match claim.status.as_ref().and_then(|status| status.allocation.as_ref()) {
                Some(allocation) => allocated.push(AllocatedClaim { index: Index::from(index), claim, allocation }),
                None => pending.push(claim),
            }
        }
        let plan = Plan::new(&pending, context.classes, context.gates, context.profile);
        Self {
            context,
            detail,
            pending,
            plan,
            allocated,
            explained: OnceLock::new(),
            explained_states: ExplainedStates::default(),
            searched_states: None,
            objective,
            known_searches: None,
            vacated: vacated(context.state, objective),
        }
    }

    /// Returns the lens that shows what the pending claims read; `None` if the state of a node does not decide about them.
    pub(super) fn lens(&self) -> Option<KnownLens> {
        let is_decided = self.vacated.is_none() && !self.context.selectors.fails_on_lists;
        is_decided.then(|| self.context.inventory.shapes().lens(lens_of(&self.context, &self.plan)))
    }

    /// Returns true if a claim is to be allocated, or if there is no claim at all.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty() || self.allocated.is_empty()
    }

    /// Returns true if a claim is allocated already.
    pub(super) const fn has_allocated(&self) -> bool {
        !self.allocated.is_empty()
    }

    /// Returns true if a claim that is allocated already can't be used on a node.
    pub(super) fn is_elsewhere(&self, node: &Node) -> Result<bool, AllocateError> {
        Ok(self.has_allocated() && !self.elsewhere(node)?.is_empty())
    }

    /// Tells if the pending claims can be allocated on a node. The meter counts the work.
    pub(super) fn fits_pending(&self, node: &Node, meter: &Meter<'_>) -> Result<Fit, AllocateError> {
        fits_within(&self.context(), &self.plan, node, self.searched_states.as_ref(), meter)
    }

    /// Returns the input of a search.
    fn context(&self) -> Context<'_> {
        let state = self.vacated.as_ref().map_or(self.context.state, |vacated| &vacated.state);
        Context { state, ..self.context }
    }

    /// Makes the attempt one for several nodes.
    pub(super) fn for_nodes(mut self) -> Self {
        self.searched_states = Some(SearchedStates::default());
        self.known_searches = self.objective.map(|_| KnownSearches::default());
        self
    }

    /// Tells if the claims can be allocated on a node: [`Fit::Yes`] if [`Attempt::allocate`] gives [`Outcome::Allocated`],
    /// [`Fit::Stopped`] if it gives [`Outcome::Stopped`].
    ///
    /// # Errors
    /// Those of [`Attempt::allocate`].
    ///
    /// # Complexity
    /// That of [`Attempt::allocate`], without results and explanations.
    pub fn fits(&self, node: &Node, budget: Budget<'_>) -> Result<Fit, AllocateError> {
        if self.is_elsewhere(node)? {
            return Ok(Fit::No);
        }
        if !self.is_pending() {
            return Ok(Fit::Yes);
        }
        self.fits_pending(node, &Meter::new(budget))
    }

    /// Tells if the claims can be allocated on a node with other devices in use than those of the attempt. A device on which a
    /// selector fails is none for the claims. The meter counts the work.
    pub(crate) fn fits_beside(
        &self,
        state: &AllocatedState,
        node: &Node,
        meter: &Meter<'_>,
    ) -> Result<Fit, AllocateError> {
        if !self.elsewhere(node)?.is_empty() {
            return Ok(Fit::No);
        }
        if self.pending.is_empty() {
            return Ok(Fit::Yes);
        }
        let context = self.context_beside(state);
        fits_within(&context, &self.plan, node, self.searched_states.as_ref(), meter)
    }

    /// Allocates the claims on a node with other devices in use than those of the attempt, as [`Attempt::fits_beside`] asks
    /// for. Returns the work, too.
    pub(crate) fn allocate_beside(
        &self,
        state: &AllocatedState,
        node: &Node,
        budget: Budget<'_>,
    ) -> Result<(Outcome, u64), AllocateError> {
        if !self.elsewhere(node)?.is_empty() {
            return Ok((Outcome::Unsatisfied, 0));
        }
        if self.pending.is_empty() {
            return Ok((Outcome::Allocated(self.with_allocated(Vec::new())), 0));
        }
        let context = self.context_beside(state);
        let like = self.searched_states.as_ref();
        let (outcome, effort) = allocate_on(&context, &self.plan, node, like, budget)?;
        let outcome = match outcome {
            Outcome::Allocated(results) => Outcome::Allocated(self.with_allocated(results)),
            other => other,
        };
        Ok((outcome, effort.work))
    }

    /// Returns the nodes on which the claims can be allocated ([`Fit::Yes`]), and those of which it is not known since their
    /// search was stopped ([`Fit::Stopped`]), in the order of `nodes`. No item has [`Fit::No`]. The search on a node is made
    /// when the iterator comes to it; none is made for a node that has too few devices, and for one whose devices are those of a
    /// node that was searched. Each node has the whole budget.
    ///
    /// # Errors
    /// Those of [`Attempt::allocate`], in place of a node.
    pub fn feasible<'n, N: Borrow<Node> + 'n>(
        &self,
        nodes: impl IntoIterator<Item = &'n N>,
        budget: Budget<'_>,
    ) -> impl Iterator<Item = Result<(&'n N, Fit), AllocateError>> {
        nodes.into_iter().filter_map(move |node| match self.fits(node.borrow(), budget) {
            Ok(Fit::No) => None,
            fit => Some(fit.map(|fit| (node, fit))),
        })
    }

    /// Allocates the claims on one node, like [`super::Allocator::allocate`].
    ///
    /// # Errors
    /// Those of [`super::Allocator::allocate`].
    ///
    /// # Complexity
    /// At most the number of steps of the budget.
    pub fn allocate(&self, node: &Node, budget: Budget<'_>) -> Result<Verdict, AllocateError> {
        self.explained(node, self.detail, budget)
    }

    /// Allocates the claims on one node, with an explanation of a detail of its own.
    pub(crate) fn explained(&self, node: &Node, detail: Detail, budget: Budget<'_>) -> Result<Verdict, AllocateError> {
        let elsewhere = self.elsewhere(node)?;
        if !elsewhere.is_empty() {
            return Ok(self.unsatisfied(elsewhere, node, detail, budget));
        }
        if self.pending.is_empty() && !self.allocated.is_empty() {
            let outcome = Outcome::Allocated(self.with_allocated(Vec::new()));
            return Ok(Verdict { outcome, steps: 0, work: 0, score: None, explanation: None });
        }
        let (outcome, effort, score) = self.search(node, budget)?;
        let (explanation, work) = self.explain(node, &outcome, effort, detail, budget);
        let outcome = match outcome {
            Outcome::Allocated(results) => Outcome::Allocated(self.with_allocated(results)),
            other => other,
        };
        Ok(Verdict { outcome, steps: effort.steps, work, score, explanation })
    }

    /// Searches the devices: the first that fit, or the best.
    fn search(&self, node: &Node, budget: Budget<'_>) -> Result<(Outcome, Effort, Option<Box<Score>>), AllocateError> {
        let (context, plan, like) = (&self.context(), &self.plan, self.searched_states.as_ref());
        match self.objective {
            None => allocate_on(context, plan, node, like, budget).map(|(outcome, effort)| (outcome, effort, None)),
            Some(objective) => {
                let (known, vacated) = (self.known_searches.as_ref(), self.vacated.as_ref());
                best_on(&Question { context, plan, node, like, known, budget, objective, vacated })
            }
        }
    }

    /// Returns the context of a what-if question about other devices in use.
    fn context_beside<'s>(&'s self, state: &'s AllocatedState) -> Context<'s> {
        Context { state, failing: FailingSelectors::PassOver, ..self.context }
    }

    /// Returns a reason for each allocated claim whose node selector excludes the node.
    fn elsewhere(&self, node: &Node) -> Result<Vec<Reason>, AllocateError> {
        let mut reasons = Vec::new();
        for AllocatedClaim { index, claim, allocation } in &self.allocated {
            let Some(selector) = &allocation.node_selector else { continue };
            let matches = node_selector_matches(selector, node)
                .map_err(|source| AllocateError::AllocatedNodeSelector { claim: claim_name(claim), source })?;
            if !matches {
                let claim = ClaimName { index: *index, name: claim_name(claim) };
                reasons.push(Reason::leaf(Cause::AllocatedElsewhere { claim }));
            }
        }
        Ok(reasons)
    }

    /// Returns the verdict for a node that an allocated claim excludes. The pending claims are explained but not
    /// allocated.
    fn unsatisfied(&self, mut reasons: Vec<Reason>, node: &Node, detail: Detail, budget: Budget<'_>) -> Verdict {
        let verdict = Verdict { outcome: Outcome::Unsatisfied, steps: 0, work: 0, score: None, explanation: None };
        if detail == Detail::Off {
            return verdict;
        }
        let search = || allocate_on(&self.context(), &self.plan, node, self.searched_states.as_ref(), budget).ok();
        let searched = if self.pending.is_empty() { None } else { search() };
        let steps = searched.as_ref().map_or(0, |(_, effort)| effort.steps);
        let explain = |(outcome, effort): (Outcome, Effort)| self.explain(node, &outcome, effort, detail, budget);
        let (pending, work) = searched.map_or((None, 0), explain);
        reasons.extend(pending.into_iter().flat_map(|explanation| Arc::unwrap_or_clone(explanation).reasons));
        let explanation = Some(Arc::new(Explanation { reasons, suggestions: Vec::new() }));
        Verdict { steps, work, explanation, ..verdict }
    }

    /// Explains the outcome of a search. Returns the work of both.
    fn explain(
        &self,
        node: &Node,
        outcome: &Outcome,
        effort: Effort,
        detail: Detail,
        budget: Budget<'_>,
    ) -> (Option<Arc<Explanation>>, u64) {
        if detail == Detail::Off || matches!(outcome, Outcome::Allocated(_)) {
            return (None, effort.work);
        }
        let claims = self.explained.get_or_init(|| self.claims_to_explain());
        let plan = self.allocated.is_empty().then_some(&self.plan);
        let explained_states = &self.explained_states;
        let refused = Refused { claims, plan, outcome, is_counted: effort.is_counted, explained_states };
        let meter = Meter::new(budget.of_explanation(effort.work));
        let explanation = explain(&self.context(), detail, &refused, node, &meter);
        (explanation, effort.work.saturating_add(meter.effort().work))
    }

    fn claims_to_explain(&self) -> Vec<ResourceClaim> {
        let pending = self.pending.iter().map(|claim| without_config(claim)).collect();
        let without_requests = |allocated: &AllocatedClaim<'_>| ResourceClaim {
            metadata: allocated.claim.metadata.clone(),
            ..ResourceClaim::default()
        };
        self.merged(pending, without_requests)
    }

    /// Inserts the stored allocations into the results of the pending claims, in the order of all claims.
    fn with_allocated(&self, results: Vec<AllocationResult>) -> Vec<AllocationResult> {
        self.merged(results, |allocated| allocated.allocation.clone())
    }

    /// Inserts one value for each allocated claim into a list with one value for each pending claim, in the order of all
    /// claims.
    fn merged<T>(&self, pending: Vec<T>, value: impl Fn(&AllocatedClaim<'_>) -> T) -> Vec<T> {
        let mut all = pending;
        for allocated in &self.allocated {
            all.insert(usize::from(allocated.index).min(all.len()), value(allocated));
        }
        all
    }
}

fn vacated(state: &AllocatedState, objective: Option<&Objective>) -> Option<Vacated> {
    let units = objective.map(Objective::units).filter(|units| !units.is_empty())?;
    Some(Vacated::new(state, units))
}

/// Copies a claim without configuration, which no question reads and which may be large.
fn without_config(claim: &ResourceClaim) -> ResourceClaim {
    let mut copy = claim.clone();
    if let Some(devices) = copy.spec.as_mut().and_then(|spec| spec.devices.as_mut()) {
        devices.config = None;
    }
    copy
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("claims", &(self.pending.len() + self.allocated.len())).finish_non_exhaustive()
    }
}
