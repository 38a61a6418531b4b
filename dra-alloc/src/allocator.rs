//! Allocator: chooses the devices that claims get on a node.
//!
//! Given the slices of a cluster, the classes, the allocated devices and a node, the allocator finds the devices that
//! kube-scheduler would choose: the first solution of a depth-first search in a fixed order. Requests are served in
//! their order, pools by driver and name, slices by name, devices in the order of their slice.
//!
//! Source: KEP-4381 and its successors, and the experimental allocator of `k8s.io/dynamic-resource-allocation`, 1.37.

use std::fmt;
use std::sync::Arc;

use dra_attrs::{GateSet, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::allocate_error::AllocateError;
use crate::budget::Budget;
use crate::class::Classes;
use crate::context::Context;
use crate::explain::{Detail, explain};
use crate::gates::DraGate;
use crate::inventory::Inventory;
use crate::inventory::pool::Pool;
use crate::outcome::Verdict;
use crate::request::Plan;
use crate::search::{PruningRules, allocate_on};
use crate::selector::SelectorCache;
use crate::share::ShareIds;
use crate::state::AllocatedState;

/// Allocates claims against the slices and classes of a cluster.
///
/// It borrows all its inputs and is cheap to build. It is `Sync`, so that several threads can try nodes at once.
///
/// ```
/// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Outcome, Profile};
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
/// use serde_json::{from_value, json};
///
/// let slice: ResourceSlice = from_value(json!({
///     "metadata": {"name": "node-1-gpus"},
///     "spec": {
///         "driver": "gpu.example.com", "nodeName": "node-1",
///         "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
///         "devices": [
///             {"name": "gpu-0", "attributes": {"model": {"string": "l4"}}},
///             {"name": "gpu-1", "attributes": {"model": {"string": "h100"}}},
///         ],
///     },
/// }))?;
/// let class: DeviceClass = from_value(json!({
///     "metadata": {"name": "gpu"},
///     "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
/// }))?;
/// let claim: ResourceClaim = from_value(json!({
///     "metadata": {"name": "training"},
///     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
///         "deviceClassName": "gpu",
///         "selectors": [{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'h100'"}}],
///     }}]}},
/// }))?;
/// let node: Node = from_value(json!({"metadata": {"name": "node-1"}}))?;
///
/// let (inventory, classes) = (Inventory::new([slice], []), Classes::new([&class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
/// let verdict = allocator.allocate(&AllocatedState::default(), &node, &[claim], Budget::default())?;
/// let Outcome::Allocated(results) = verdict.outcome else { panic!("not allocated") };
/// let devices = results[0].devices.as_ref().and_then(|devices| devices.results.as_ref()).unwrap();
/// assert_eq!(devices[0].device, "gpu-1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Allocator<'a> {
    profile: Profile,
    inventory: &'a Inventory,
    classes: &'a Classes<'a>,
    gates: GateSet<DraGate>,
    selectors: Selectors<'a>,
    share_ids: Option<&'a dyn ShareIds>,
    detail: Detail,
    pruning: PruningRules,
}

/// Selector cache of the caller, or one of the allocator's own.
#[derive(Clone)]
enum Selectors<'a> {
    Own(Arc<SelectorCache>),
    Borrowed(&'a SelectorCache),
}

impl<'a> Allocator<'a> {
    /// Builds an allocator over the slices and classes of a cluster, with the gates that are on by default in
    /// Kubernetes 1.37.
    ///
    /// `profile` selects the rules: `V1_37` those of a real cluster, `Kep` those of the KEP texts. Use the `with_*`
    /// methods for other gates, a cache of compiled selectors that outlives the allocator, share IDs, and explanations.
    #[must_use]
    pub fn new(profile: Profile, inventory: &'a Inventory, classes: &'a Classes<'a>) -> Self {
        Self {
            profile,
            inventory,
            classes,
            gates: GateSet::default(),
            selectors: Selectors::Own(Arc::default()),
            share_ids: None,
            detail: Detail::default(),
            pruning: PruningRules::default(),
        }
    }

    /// Sets the feature gates of the scheduler.
    #[must_use]
    pub fn with_gates(self, gates: GateSet<DraGate>) -> Self {
        Self { gates, ..self }
    }

    /// Uses the caller's cache of compiled selectors. One cache serves any number of allocators and threads.
    #[must_use]
    pub fn with_selector_cache(self, selectors: &'a SelectorCache) -> Self {
        Self { selectors: Selectors::Borrowed(selectors), ..self }
    }

    /// Sets the generator of share IDs. IDs must be unique in a cluster. Without a generator, an allocation that shares
    /// a device fails with [`AllocateError::NoShareIds`].
    #[must_use]
    pub fn with_share_ids(self, share_ids: &'a dyn ShareIds) -> Self {
        Self { share_ids: Some(share_ids), ..self }
    }

    /// Adds an explanation to every failed allocation. It is computed after the search and does not slow the search
    /// down. It costs at most a hundred further searches of 20,000 steps each over parts of the claims, in addition to
    /// the budget. The budget's stop function is called in them as well.
    #[must_use]
    pub fn with_explanation(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// Sets the pruning rules of the search. For the project's own tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_pruning_rules(self, pruning: PruningRules) -> Self {
        Self { pruning, ..self }
    }

    fn selectors(&self) -> &SelectorCache {
        match &self.selectors {
            Selectors::Own(cache) => cache,
            Selectors::Borrowed(cache) => cache,
        }
    }

    fn context<'c>(&'c self, state: &'c AllocatedState) -> Context<'c> {
        Context {
            inventory: self.inventory,
            classes: self.classes,
            state,
            selectors: self.selectors(),
            share_ids: self.share_ids,
            gates: self.gates,
            profile: self.profile,
            pruning: self.pruning,
        }
    }

    /// Warms the caches that do not depend on claims: node views, device facts, class selectors. Optional: the first
    /// allocation does it otherwise, and no answer depends on it. Node views are kept until one of the node's slices
    /// changes; shared slices (visible to several nodes) are read in each allocation.
    ///
    /// # Complexity
    /// Linear in the number and size of the devices of `nodes` and in the number of classes.
    pub fn prepare<'n>(&self, nodes: impl IntoIterator<Item = &'n Node>) {
        for view in nodes.into_iter().filter_map(|node| self.inventory.view(node, self.gates).ok()) {
            view.pools.iter().for_each(Pool::look);
        }
        self.classes.compile(self.selectors());
    }

    /// Allocates all claims together on one node, or none of them.
    ///
    /// `state` has the devices in use. If the node can't serve the claims, the result is `Ok` with an outcome other
    /// than `Allocated`.
    ///
    /// # Errors
    /// Input that is invalid on every node; see [`AllocateError`]. As in kube-scheduler, an error in an object that the
    /// search does not reach is not reported.
    ///
    /// # Complexity
    /// At most the number of steps of the budget; [`Budget`] defines a step.
    pub fn allocate(
        &self,
        state: &AllocatedState,
        node: &Node,
        claims: &[ResourceClaim],
        budget: Budget<'_>,
    ) -> Result<Verdict, AllocateError> {
        let context = self.context(state);
        self.allocate_plan(&context, &Plan::new(claims, context.classes, self.gates), claims, node, budget)
    }

    /// Allocates all claims together on each of several nodes, like [`Allocator::allocate`] on one. Reads the claims
    /// only once. Each node has the whole budget.
    ///
    /// # Errors
    /// The first error, in the order of the nodes.
    pub fn allocate_each<'n>(
        &self,
        state: &AllocatedState,
        nodes: impl IntoIterator<Item = &'n Node>,
        claims: &[ResourceClaim],
        budget: Budget<'_>,
    ) -> Result<Vec<Verdict>, AllocateError> {
        let context = self.context(state);
        let plan = Plan::new(claims, context.classes, self.gates);
        let nodes = nodes.into_iter();
        let mut verdicts = Vec::with_capacity(nodes.size_hint().0);
        for node in nodes {
            verdicts.push(self.allocate_plan(&context, &plan, claims, node, budget)?);
        }
        Ok(verdicts)
    }

    fn allocate_plan(
        &self,
        context: &Context<'_>,
        plan: &Plan<'_>,
        claims: &[ResourceClaim],
        node: &Node,
        budget: Budget<'_>,
    ) -> Result<Verdict, AllocateError> {
        let mut verdict = allocate_on(context, plan, node, budget);
        if self.detail != Detail::Off
            && let Ok(verdict) = &mut verdict
        {
            verdict.explanation = explain(context, self.detail, claims, node, verdict, budget);
        }
        verdict
    }
}

impl fmt::Debug for Allocator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocator")
            .field("profile", &self.profile)
            .field("gates", &self.gates)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}
