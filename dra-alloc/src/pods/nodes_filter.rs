//! `Filter` and `Score` of nodes that are given once: each state of nodes is searched once.

use std::borrow::Borrow;
use std::fmt;
use std::sync::OnceLock;

use dra_attrs::Index;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use super::cycle::PodCycle;
use super::filter::{FilterVerdict, NodeFilter, NodeFilterError};
use super::score::ScoreError;
use crate::allocator::{Allocator, AttemptByState, Nodes};
use crate::cluster::state::AllocatedState;
use crate::search::budget::Budget;
use crate::search::outcome::Fit;

/// Filter of one cycle for nodes that are given once, and for any number of threads: what [`PodCycle::filter_nodes`] returns.
/// [`NodesFilter::refusal`] and [`NodesFilter::score`] cost a look-up for a node in a state that was asked for before;
/// [`NodesFilter::filter`] builds the results for the node that is taken.
///
/// ```
/// use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions};
/// use dra_alloc::{Allocator, Budget, Classes, Index, Inventory, Nodes, Profile};
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
/// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "namespace": "d", "uid": "1"}, "spec": {
///     "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}))?;
/// let pod: Pod = from_value(json!({"metadata": {"name": "p", "namespace": "d", "uid": "2"}, "spec": {"containers": [],
///     "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
/// let list: [Node; 3] = from_value(json!(["a", "b", "c"].map(|name| json!({"metadata": {"name": name}}))))?;
/// let (inventory, classes) = (Inventory::new([slice("a")?, slice("b")?]), Classes::new([class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
/// let mut tracker = ClaimTracker::new(Profile::V1_37);
/// tracker.observe(claim)?;
/// let options = PodOptions::new(Profile::V1_37);
/// let mut cycle = PodCycle::pre_filter(&pod, None, &tracker, &classes, &GroupRound::default(), options)?.unwrap();
///
/// let mut nodes = Nodes::new(list);
/// let (verdict, now, budget) = {
///     let (filter, now, budget) = (cycle.filter_nodes(&mut nodes, &allocator, tracker.state()), Timestamp::UNIX_EPOCH, Budget::default());
///     let feasible: Vec<usize> = (0..3).filter(|node| filter.refusal(Index::from(*node), now, budget).is_none()).collect();
///     assert_eq!(feasible, [0, 1]);
///     (filter.filter(Index::from(1), now, budget), now, budget)
/// };
/// cycle.record("b", verdict.unwrap());
/// assert_eq!(cycle.results_on("b").count(), 1);
/// # let _ = (now, budget);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NodesFilter<'c, N> {
    filter: NodeFilter<'c>,
    asked: AttemptByState<'c, N>,
    /// Knowledge about the states; empty if each node is asked for itself.
    states: Box<[OfState]>,
}

/// Knowledge about the nodes of one state.
#[derive(Debug, Default)]
struct OfState {
    /// True if these nodes are refused for nothing but their devices.
    lacks_devices: OnceLock<bool>,
    score: OnceLock<Result<i64, ScoreError>>,
}

impl PodCycle {
    /// Begins the filter for nodes that are given once, with the devices in use of `state`.
    ///
    /// # Complexity
    /// That of [`Nodes::attempt`].
    #[must_use]
    pub fn filter_nodes<'c, N: Borrow<Node>>(
        &'c self,
        nodes: &'c mut Nodes<N>,
        allocator: &'c Allocator<'c>,
        state: &'c AllocatedState,
    ) -> NodesFilter<'c, N> {
        let asked = nodes.attempt(allocator, state, self.to_allocate());
        let states = if self.is_same_everywhere() { asked.group_count() } else { 0 };
        let states = std::iter::repeat_with(OfState::default).take(states).collect();
        NodesFilter { filter: self.node_filter(allocator, state), asked, states }
    }
}

impl<'c, N: Borrow<Node>> NodesFilter<'c, N> {
    /// Decides for a node as [`PodCycle::filter`] does, with the results; `None` for a position that is not in the list.
    ///
    /// # Complexity
    /// That of [`PodCycle::filter`].
    #[must_use]
    pub fn filter(&self, node: Index<Node>, now: Timestamp, budget: Budget<'_>) -> Option<FilterVerdict> {
        Some(self.filter.filter(self.asked.node(node)?.borrow(), now, budget))
    }

    /// Returns the reason why a node can't be used, as that of [`FilterVerdict::refusal`]; `None` if it can, and for a position that
    /// is not in the list.
    ///
    /// # Complexity
    /// Linear in the number of claims for a node in a state that was asked for before; otherwise that of [`PodCycle::filter`].
    #[must_use]
    pub fn refusal(&self, node: Index<Node>, now: Timestamp, budget: Budget<'_>) -> Option<NodeFilterError> {
        let object = self.asked.node(node)?.borrow();
        let itself = || self.filter.filter(object, now, budget).into_refusal();
        let Some(of_state) = self.of_state(node) else { return itself() };
        let out_of_reach = match self.filter.cycle.all_out_of_reach(object, now) {
            Ok(out_of_reach) => out_of_reach,
            Err(refusal) => return Some(refusal),
        };
        match self.asked.fits(node, budget) {
            Ok(Fit::Yes) if out_of_reach.is_empty() => None,
            Ok(Fit::Yes) => Some(self.filter.cycle.refusal_of_reach(&out_of_reach)),
            Ok(Fit::No) => {
                if of_state.lacks_devices.get() == Some(&true) {
                    return Some(NodeFilterError::CannotAllocate);
                }
                let refusal = itself();
                of_state.lacks_devices.get_or_init(|| refusal == Some(NodeFilterError::CannotAllocate));
                refusal
            }
            Ok(Fit::Stopped(_)) | Err(_) => itself(),
        }
    }

    /// Returns the score of a node, as [`PodCycle::score`] gives it when the verdict for the node is recorded: 0 if the node can't
    /// be used.
    ///
    /// # Errors
    /// A claim has no result on the node.
    ///
    /// # Complexity
    /// As [`NodesFilter::refusal`].
    pub fn score(&self, node: Index<Node>, now: Timestamp, budget: Budget<'_>) -> Result<i64, ScoreError> {
        let cycle = self.filter.cycle;
        if cycle.best_score() == 0 || self.refusal(node, now, budget).is_some() {
            return Ok(0);
        }
        let of_node = || {
            let verdict = self.filter(node, now, budget);
            let results = verdict.as_ref().and_then(FilterVerdict::results);
            results.map_or(Ok(0), |results| cycle.score_of(results))
        };
        self.of_state(node).map_or_else(of_node, |of_state| *of_state.score.get_or_init(of_node))
    }

    /// Returns the nodes, in the order of their positions.
    pub(super) const fn list(&self) -> &'c [N] {
        self.asked.list()
    }

    /// Returns the filter that asks each node for itself.
    pub(super) const fn each(&self) -> &NodeFilter<'c> {
        &self.filter
    }

    fn of_state(&self, node: Index<Node>) -> Option<&OfState> {
        self.states.get(self.asked.group(node)?)
    }
}

impl<N> fmt::Debug for NodesFilter<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodesFilter").field("filter", &self.filter).finish_non_exhaustive()
    }
}
