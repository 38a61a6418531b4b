//! Allocator: chooses the devices that claims get on a node.
//!
//! Given the slices of a cluster, the classes, the allocated devices and a node, the allocator finds the devices that
//! kube-scheduler would choose: the first solution of a depth-first search in a fixed order. Requests are served in
//! their order, pools by driver and name, slices by name, devices in the order of their slice.
//!
//! Source: KEP-4381 and its successors, and the experimental allocator of `k8s.io/dynamic-resource-allocation`, 1.37.
//!
//! Tests: `tests/it/allocate.rs`, `tests/it/attempts.rs`, `tests/it/nodes.rs`, `tests/it/node_verdicts.rs`.

mod attempt;
mod by_state;
mod cluster_summary;
mod dependents;
mod explain_verdict;
mod grouping;
mod node_pool;
mod node_verdicts;
mod node_version;
mod nodes;
mod pinned_driver;
mod verdict;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use dra_attrs::Component;
use dra_selector::SelectorCache;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::cluster::classes::Classes;
use crate::cluster::expression::Compiler;
use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::sight::Sight;
use crate::cluster::inventory::view::View;
use crate::cluster::state::AllocatedState;
use crate::explain::Detail;
use crate::objective::Objective;
use crate::search::allocate_error::AllocateError;
use crate::search::budget::Budget;
use crate::search::context::{Context, FailingSelectors};
use crate::search::counters::keep_counters_left;
use crate::search::share::{ShareIds, share_id};
use crate::search::{Elisions, PruningRules};

pub use attempt::Attempt;
pub use by_state::{AttemptByState, StateFit};
pub use cluster_summary::cluster_summary;
pub use explain_verdict::ExplainError;
pub use node_pool::NodePool;
pub use node_verdicts::{FollowedNodes, NodeVerdicts};
pub use node_version::NodeVersion;
pub use nodes::Nodes;
pub use verdict::Verdict;

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
/// let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
/// let verdict = allocator.allocate(&AllocatedState::default(), &node, &[claim], Budget::default())?;
/// let Outcome::Allocated(results) = verdict.outcome else { panic!("not allocated") };
/// let devices = results[0].devices.as_ref().and_then(|devices| devices.results.as_ref()).unwrap();
/// assert_eq!(devices[0].device, "gpu-1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Allocator<'a> {
    scheduler: Component,
    inventory: &'a Inventory,
    classes: &'a Classes,
    selectors: Selectors<'a>,
    share_ids: &'a dyn ShareIds,
    detail: Detail,
    objective: Option<&'a Objective>,
}

/// Selector cache of the allocator: the caller's, or its own.
#[derive(Clone)]
enum Selectors<'a> {
    Own(Arc<SelectorCache>),
    Borrowed(&'a SelectorCache),
}

impl<'a> Allocator<'a> {
    /// Builds an allocator over the slices and classes of a cluster.
    ///
    /// `scheduler` is the release with its gates; a profile alone has the gates that are on by default in its release. Use
    /// the `with_*` methods for a cache of compiled selectors that outlives the allocator, share IDs, and explanations.
    #[must_use]
    pub fn new(scheduler: impl Into<Component>, inventory: &'a Inventory, classes: &'a Classes) -> Self {
        Self {
            scheduler: scheduler.into(),
            inventory,
            classes,
            selectors: Selectors::Own(Arc::default()),
            share_ids: &share_id,
            detail: Detail::default(),
            objective: None,
        }
    }

    /// Sets the cache of compiled selectors. One cache serves any number of allocators and threads.
    #[must_use]
    pub fn with_selector_cache(self, selectors: &'a SelectorCache) -> Self {
        Self { selectors: Selectors::Borrowed(selectors), ..self }
    }

    /// Sets the generator of share IDs; the default is [`share_id`].
    #[must_use]
    pub fn with_share_ids(self, share_ids: &'a dyn ShareIds) -> Self {
        Self { share_ids, ..self }
    }

    /// Adds an explanation to every failed allocation, computed by one look at the devices and at most a hundred extra searches
    /// with work of 20,000 each. Their work, at most two million more than that of the search, is part of [`Verdict::work`]
    /// and counts against the budget's limit for the call. They call its stop function too. An explanation that is stopped
    /// before it has seen the devices has [`crate::explain::Cause::Stopped`] as its only reason.
    #[must_use]
    pub fn with_explanation(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// Takes the devices that are the best for an objective, instead of the first ones. An objective without terms changes
    /// nothing. Feasibility stays what it is: the first solution is searched in any case, and better ones after that, with the
    /// objective's own steps and what is left of the budget. [`Verdict::score`] has the value and what is proved about it.
    ///
    /// Kubernetes has no such rule. kube-scheduler would take other devices.
    ///
    /// ```
    /// use dra_alloc::objective::{GroupBy, Objective, Proof, Term};
    /// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Profile};
    /// # let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    /// # let device = |card: u32, number: u32| format!(r#"{{"name": "card-{card}-{number}",
    /// #     "consumesCounters": [{{"counterSet": "card-{card}", "counters": {{"slices": {{"value": "1"}}}}}}]}}"#);
    /// # let devices: Vec<String> = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(card, number)| device(card, number)).into();
    /// # let slice = |name: &str, field: &str, list: &str| json(&format!(r#"{{"metadata": {{"name": "{name}"}}, "spec": {{
    /// #     "driver": "gpu.example.com", "nodeName": "a", "{field}": [{list}],
    /// #     "pool": {{"name": "a", "generation": 1, "resourceSliceCount": 2}}}}}}"#));
    /// # let set = |card: u32| format!(r#"{{"name": "card-{card}", "counters": {{"slices": {{"value": "2"}}}}}}"#);
    /// # let slices = [slice("0", "sharedCounters", &[set(0), set(1)].join(",")), slice("1", "devices", &devices.join(","))];
    /// # let slices = slices.map(|slice| serde_json::from_value::<k8s_openapi::api::resource::v1::ResourceSlice>(slice).unwrap());
    /// # let class = serde_json::from_value::<k8s_openapi::api::resource::v1::DeviceClass>(json(
    /// #     r#"{"metadata": {"name": "half"}, "spec": {}}"#))?;
    /// # let claim = serde_json::from_value::<k8s_openapi::api::resource::v1::ResourceClaim>(json(
    /// #     r#"{"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
    /// #         {"name": "r", "exactly": {"deviceClassName": "half"}}]}}}"#))?;
    /// # let node = serde_json::from_value(json(r#"{"metadata": {"name": "a"}}"#))?;
    /// // Two cards of two halves, and the second card is cut already.
    /// let mut state = AllocatedState::default();
    /// state.hold(&DeviceId::new("gpu.example.com", "a", "card-1-0"));
    ///
    /// let objective = Objective::new([vec![Term::Opened { by: GroupBy::CounterSet }.into()]])?;
    /// let (inventory, classes) = (Inventory::new(slices), Classes::new([class]));
    /// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_objective(&objective);
    /// let score = allocator.allocate(&state, &node, [&claim], Budget::default())?.score.unwrap();
    /// assert_eq!((&*score.value, &*score.first_fit, &score.proof), (&[0][..], &[1][..], &Proof::Least));
    /// assert_eq!(
    ///     score.to_string(),
    ///     "a/card-1-1 rather than a/card-0-0: counter set card-1 is in use already (opened by counter set 0 instead of 1)"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_objective(self, objective: &'a Objective) -> Self {
        Self { objective: Some(objective).filter(|objective| !objective.is_empty()), ..self }
    }

    fn sight(&self) -> Sight {
        Sight::new(self.scheduler.profile(), self.scheduler.gates())
    }

    pub(crate) const fn classes(&self) -> &'a Classes {
        self.classes
    }

    /// Returns the pools that a node sees.
    pub(crate) fn view(&self, node: &Node) -> Result<View<'a>, AllocateError> {
        self.inventory.view(node, self.sight()).map_err(|failed| AllocateError::from(*failed))
    }

    /// Returns the detail of explanations.
    pub(crate) const fn detail(&self) -> Detail {
        self.detail
    }

    /// Returns true if one solution may be better than another one.
    pub(crate) const fn has_objective(&self) -> bool {
        self.objective.is_some()
    }

    /// Returns the release and the gates of the scheduler.
    pub(crate) const fn scheduler(&self) -> Component {
        self.scheduler
    }

    fn selectors(&self) -> &SelectorCache {
        match &self.selectors {
            Selectors::Own(cache) => cache,
            Selectors::Borrowed(cache) => cache,
        }
    }

    fn compiler(&self) -> Compiler<'_> {
        Compiler::new(self.selectors(), self.scheduler.profile(), self.scheduler.gates())
    }

    fn context<'c>(&'c self, state: &'c AllocatedState) -> Context<'c> {
        Context {
            inventory: self.inventory,
            classes: self.classes,
            state,
            selectors: self.compiler(),
            share_ids: self.share_ids,
            gates: self.scheduler.gates(),
            profile: self.scheduler.profile(),
            pruning: PruningRules::default(),
            elisions: Elisions::default(),
            failing: FailingSelectors::default(),
        }
    }

    /// Warms the caches that do not depend on claims: node views, device facts, counters, which devices of each pool are free,
    /// and which counters are left. Optional: the first allocation fills them otherwise, as far as it needs them. A view is kept
    /// until one of its slices changes; free devices and what is left follow the changes of `state`.
    ///
    /// # Complexity
    /// Linear in the number of `nodes` and in the number and size of the devices that they see, those that several nodes
    /// see counted once.
    pub fn prepare<'n, N: Borrow<Node> + 'n>(&self, state: &AllocatedState, nodes: impl IntoIterator<Item = &'n N>) {
        let views = nodes.into_iter().filter_map(|node| self.inventory.view(node.borrow(), self.sight()).ok());
        for view in views {
            for pool in view.pools() {
                pool.look();
                if let Some(used) = state.pool_hashed(pool.hash(), pool.driver(), pool.name()) {
                    used.occupancy(pool.devices());
                    keep_counters_left(pool, used);
                }
            }
        }
    }

    /// Allocates all claims together on one node, or none of them. A claim with an allocation in its status keeps it;
    /// on a node that its node selector excludes, the outcome is `Unsatisfied`.
    ///
    /// `state` has the devices in use. `claims` are anything that borrows claims: `&[ResourceClaim]`,
    /// `&Vec<Arc<ResourceClaim>>`, the values of a map. If the node can't serve the claims, the result is `Ok` with an
    /// outcome other than `Allocated`.
    ///
    /// # Errors
    /// Input that is invalid on every node; see [`AllocateError`]. As in kube-scheduler, an error in an object that the
    /// search does not reach is not reported.
    ///
    /// # Complexity
    /// At most the work of the budget; [`Budget`] defines a unit.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::sync::Arc;
    /// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Profile};
    /// use k8s_openapi::api::core::v1::Node;
    /// use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
    ///
    /// // A watch cache holds `Arc`s; nothing is cloned out of it.
    /// let slices: BTreeMap<String, Arc<ResourceSlice>> = BTreeMap::new();
    /// let rules: BTreeMap<String, Arc<DeviceTaintRule>> = BTreeMap::new();
    /// let classes: BTreeMap<String, Arc<DeviceClass>> = BTreeMap::new();
    /// let nodes: BTreeMap<String, Arc<Node>> = [("a".to_owned(), Arc::default())].into();
    /// let claims: BTreeMap<String, Arc<ResourceClaim>> = BTreeMap::new();
    ///
    /// let inventory = Inventory::new(slices.values().cloned()).with_taint_rules(rules.values().cloned());
    /// let classes = Classes::new(classes.values().cloned());
    /// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    /// let state = AllocatedState::default();
    /// allocator.prepare(&state, nodes.values());
    /// assert!(allocator.allocate(&state, &nodes["a"], claims.values(), Budget::work(1_000)).is_ok());
    /// assert!(allocator.allocate_each(&state, nodes.values(), claims.values(), Budget::work(1_000)).all(|one| one.is_ok()));
    /// ```
    pub fn allocate<'c, C: Borrow<ResourceClaim> + 'c>(
        &'c self,
        state: &'c AllocatedState,
        node: &Node,
        claims: impl IntoIterator<Item = &'c C>,
        budget: Budget<'_>,
    ) -> Result<Verdict, AllocateError> {
        self.attempt_on_one(state, claims).allocate(node, budget)
    }

    /// Reads claims for an attempt to allocate them on one node.
    pub(crate) fn attempt_on_one<'c, C: Borrow<ResourceClaim> + 'c>(
        &'c self,
        state: &'c AllocatedState,
        claims: impl IntoIterator<Item = &'c C>,
    ) -> Attempt<'c> {
        Attempt::new(self.context(state), self.detail, self.objective, claims)
    }

    /// Reads claims for an attempt to allocate them on any number of nodes and threads.
    ///
    /// # Complexity
    /// Linear in the number of requests.
    pub fn attempt<'c, C: Borrow<ResourceClaim> + 'c>(
        &'c self,
        state: &'c AllocatedState,
        claims: impl IntoIterator<Item = &'c C>,
    ) -> Attempt<'c> {
        self.attempt_on_one(state, claims).for_nodes()
    }

    /// Allocates all claims together on each of several nodes, like [`Allocator::allocate`] on one, but reads the
    /// claims only once. A node is searched when the iterator comes to it. Each node has the whole budget, up to the limit
    /// for the call.
    ///
    /// # Errors
    /// Those of [`Allocator::allocate`], in place of a verdict.
    pub fn allocate_each<'c, 'n, N: Borrow<Node> + 'n, C: Borrow<ResourceClaim> + 'c>(
        &'c self,
        state: &'c AllocatedState,
        nodes: impl IntoIterator<Item = &'n N>,
        claims: impl IntoIterator<Item = &'c C>,
        mut budget: Budget<'c>,
    ) -> impl Iterator<Item = Result<Verdict, AllocateError>> {
        let attempt = self.attempt(state, claims);
        nodes.into_iter().map(move |node| {
            let verdict = attempt.allocate(node.borrow(), budget)?;
            budget = budget.after(verdict.work);
            Ok(verdict)
        })
    }

    /// Returns the pools that a node sees, sorted by driver and name, with the number of their free devices.
    ///
    /// # Errors
    /// The node selector of a shared slice is invalid.
    ///
    /// # Complexity
    /// Linear in the number of pools that the node sees.
    pub fn node_pools(&self, state: &AllocatedState, node: &Node) -> Result<Vec<NodePool>, AllocateError> {
        let view = self.view(node)?;
        Ok(view.pools().map(|pool| NodePool::new(pool, state)).collect())
    }

    /// Returns the version of a node: a mark of all that a verdict about it depends on, but for the Node object, the claims
    /// and the allocator.
    ///
    /// # Errors
    /// The node selector of a shared slice is invalid.
    ///
    /// # Complexity
    /// Linear in the number of pools that the node sees.
    pub fn node_version(&self, state: &AllocatedState, node: &Node) -> Result<NodeVersion, AllocateError> {
        let view = self.view(node)?;
        Ok(NodeVersion::new(self.inventory, &view, state))
    }
}

impl fmt::Debug for Allocator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocator")
            .field("scheduler", &self.scheduler)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}
