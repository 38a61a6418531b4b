//! `Filter` over several nodes: the pod's claims are read once, and nodes that are alike are searched once.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use super::cycle::{ClaimSituation, PodCycle};
use super::filter::FilterVerdict;
use crate::allocator::{Allocator, Attempt};
use crate::cluster::state::AllocatedState;
use crate::search::budget::Budget;

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
    pub(super) allocator: &'c Allocator<'c>,
    pub(super) state: &'c AllocatedState,
    /// Attempt for the claims to allocate; `None` if they differ by node, or if one node is asked.
    pub(super) attempt: Option<Attempt<'c>>,
}

impl PodCycle {
    /// Begins the filter for several nodes, with the devices in use of `state`.
    ///
    /// # Complexity
    /// Linear in the number of requests of the pod's claims.
    #[must_use]
    pub fn node_filter<'c>(&'c self, allocator: &'c Allocator<'_>, state: &'c AllocatedState) -> NodeFilter<'c> {
        // Extended resources make another claim on each node.
        let differs = self.extended.is_some();
        let to_allocate = || self.claims.iter().filter(|claim| claim.situation == ClaimSituation::ToAllocate);
        let has_attempt = !differs && to_allocate().next().is_some();
        let attempt = has_attempt.then(|| allocator.attempt(state, to_allocate().map(|claim| &claim.claim)));
        NodeFilter { cycle: self, allocator, state, attempt }
    }
}

impl NodeFilter<'_> {
    /// Decides for a node as [`PodCycle::filter`] does.
    ///
    /// # Complexity
    /// That of [`PodCycle::filter`]; that of reading a node's devices if a node like it was searched before.
    #[must_use]
    pub fn filter(&self, node: &Node, now: Timestamp, budget: Budget<'_>) -> FilterVerdict {
        self.cycle.filter_with(self, node, now, budget)
    }
}
