//! The allocator: which devices claims get on a node.
//!
//! Given the slices of a cluster, the classes, what is allocated already and a node, the allocator finds the devices that
//! kube-scheduler's would: the first solution of a depth-first search in a fixed order. Requests are served in their
//! order, pools in the order of driver and name, slices by name, devices as their driver lists them.
//!
//! Source: KEP-4381 and its successors, and the experimental allocator of `k8s.io/dynamic-resource-allocation`, 1.37.

use std::fmt;

use dra_attrs::profile::Profile;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};

use crate::budget::Budget;
use crate::class::{Class, Classes};
use crate::error::AllocateError;
use crate::explain::{Detail, explain};
use crate::features::Features;
use crate::inventory::Inventory;
use crate::inventory::pool::Pool;
use crate::outcome::Verdict;
use crate::request::Plan;
use crate::result::Share;
use crate::search::allocate_on;
#[doc(hidden)]
pub use crate::search::{Technique, Techniques};
use crate::selector::SelectorCache;
use crate::state::AllocatedState;

/// The most devices that the allocation of one claim may have (`AllocationResultsMaxSize`).
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

/// Allocates claims against one state of a cluster.
///
/// Cheap to make: it borrows everything. It is `Sync`, so that nodes can be tried from several threads.
///
/// ```
/// use dra_alloc::allocator::Allocator;
/// use dra_alloc::budget::Budget;
/// use dra_alloc::inventory::Inventory;
/// use dra_alloc::outcome::Outcome;
/// use dra_alloc::result::numbered;
/// use dra_alloc::selector::SelectorCache;
/// use dra_alloc::state::AllocatedState;
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
/// let inventory = Inventory::new([slice], []);
/// let (state, selectors) = (AllocatedState::default(), SelectorCache::default());
/// let allocator = Allocator::new(&inventory, [&class], &state, &selectors, &numbered);
/// allocator.prepare([&node]);
/// let verdict = allocator.allocate(&node, &[claim], Budget::default())?;
/// let Outcome::Allocated(results) = verdict.outcome else { panic!("not allocated") };
/// let devices = results[0].devices.as_ref().and_then(|devices| devices.results.as_ref()).unwrap();
/// assert_eq!(devices[0].device, "gpu-1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Allocator<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) classes: Classes<'a>,
    pub(crate) state: &'a AllocatedState,
    pub(crate) selectors: &'a SelectorCache,
    pub(crate) share_ids: &'a dyn ShareIds,
    pub(crate) features: Features,
    pub(crate) profile: Profile,
    pub(crate) detail: Detail,
    pub(crate) techniques: Techniques,
}

/// Makes the ids of shares: every function from a share to a text does.
pub trait ShareIds: Sync {
    /// The id of a share.
    fn share_id(&self, share: Share<'_>) -> String;
}

impl<F: Fn(Share<'_>) -> String + Sync> ShareIds for F {
    fn share_id(&self, share: Share<'_>) -> String {
        self(share)
    }
}

impl<'a> Allocator<'a> {
    /// An allocator with the features that Kubernetes 1.37 has on, and the profile `Kep`.
    ///
    /// `share_ids` makes the ids of shares; a cluster needs unique ones. Compiled selectors go into the caller's cache,
    /// which serves any number of allocators.
    pub fn new(
        inventory: &'a Inventory,
        classes: impl IntoIterator<Item = &'a DeviceClass>,
        state: &'a AllocatedState,
        selectors: &'a SelectorCache,
        share_ids: &'a dyn ShareIds,
    ) -> Self {
        let classes = classes.into_iter().map(Class::of).map(|class| (class.name, class)).collect();
        let (features, profile) = (Features::default(), Profile::default());
        let (detail, techniques) = (Detail::default(), Techniques::default());
        Self { inventory, classes, state, selectors, share_ids, features, profile, detail, techniques }
    }

    /// The same allocator with other features.
    #[must_use]
    pub const fn with_features(mut self, features: Features) -> Self {
        self.features = features;
        self
    }

    /// The same allocator with another profile.
    #[must_use]
    pub const fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The same allocator, which explains every "no" in some detail. Explaining is done after the search and costs the
    /// search nothing. It asks what would become of parts of the claims: at most a hundred searches of 20,000 steps each,
    /// beside the budget, whose function is asked in them as well.
    #[must_use]
    pub const fn explaining(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// The same allocator with other techniques of leaving out branches: for the project's own tests.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_techniques(mut self, techniques: Techniques) -> Self {
        self.techniques = techniques;
        self
    }

    /// Does what does not depend on claims: finds what some nodes see and what a look at their devices tells, and
    /// compiles the selectors of the classes. Call it when there is time before claims are known; otherwise the first
    /// allocation does it, and no answer depends on it. The index keeps it for the devices of one node, until one of the
    /// node's slices changes; slices that nodes share are looked at in each allocation.
    ///
    /// # Complexity
    /// Linear in the size of the devices of these nodes and in the number of classes.
    pub fn prepare<'n>(&self, nodes: impl IntoIterator<Item = &'n Node>) {
        for view in nodes.into_iter().filter_map(|node| self.inventory.view(node, self.features).ok()) {
            view.pools.iter().for_each(Pool::look);
        }
        for selector in self.classes.values().flat_map(|class| class.selectors.iter()) {
            selector.compile(self.selectors);
        }
    }

    /// Allocates all claims together on one node, or none of them.
    ///
    /// # Errors
    /// Input that no node can make good: see [`AllocateError`]. An error of an object that the search does not come to
    /// is not found, as in kube-scheduler.
    ///
    /// # Complexity
    /// At most the steps of the budget; what a step is, [`Budget`] says.
    pub fn allocate(
        &self,
        node: &Node,
        claims: &[ResourceClaim],
        budget: Budget<'_>,
    ) -> Result<Verdict, AllocateError> {
        self.allocate_plan(&Plan::new(claims, &self.classes, self.features), claims, node, budget)
    }

    /// Allocates all claims together on each of several nodes: what [`Allocator::allocate`] says for each, in one pass.
    /// The budget is that of one node.
    ///
    /// # Errors
    /// The first error, in the order of the nodes.
    pub fn allocate_each<'n>(
        &self,
        nodes: impl IntoIterator<Item = &'n Node>,
        claims: &[ResourceClaim],
        budget: Budget<'_>,
    ) -> Result<Vec<Verdict>, AllocateError> {
        let plan = Plan::new(claims, &self.classes, self.features);
        let nodes = nodes.into_iter();
        let mut verdicts = Vec::with_capacity(nodes.size_hint().0);
        for node in nodes {
            verdicts.push(self.allocate_plan(&plan, claims, node, budget)?);
        }
        Ok(verdicts)
    }

    fn allocate_plan(
        &self,
        plan: &Plan<'_>,
        claims: &[ResourceClaim],
        node: &Node,
        budget: Budget<'_>,
    ) -> Result<Verdict, AllocateError> {
        let mut verdict = allocate_on(self, plan, node, budget);
        if self.detail != Detail::Off
            && let Ok(verdict) = &mut verdict
        {
            verdict.explanation = explain(self, claims, node, verdict, budget);
        }
        verdict
    }
}

impl fmt::Debug for Allocator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.classes.keys().collect();

        f.debug_struct("Allocator")
            .field("classes", &names)
            .field("features", &self.features)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}
