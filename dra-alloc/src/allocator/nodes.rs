//! Nodes that are given once, grouped by their states, which follow the changes of slices and of devices in use.

use std::borrow::Borrow;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use dra_attrs::Index;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;
use smallvec::SmallVec;

use super::Allocator;
use super::by_state::AttemptByState;
use super::dependents::{Dependents, Seen};
use super::grouping::Grouping;
use crate::cluster::inventory::shape::KnownLens;
use crate::cluster::node_state::{NodeState, SharedUse};
use crate::cluster::state::AllocatedState;
use crate::search::own_words;

/// Number of groupings that are kept: one for each set of attributes that claims read.
const KEPT: usize = 8;

/// Nodes of a cluster, given once, for attempts that are made once for each state that nodes are in.
///
/// Two nodes are in one state for a claim if the claim can't tell them apart: their pools have the same devices in the same order, but
/// for names and for attributes that no selector and no constraint of the claim reads, and the same of them is free, held and
/// shared. A cluster of thousands of nodes is in few states.
///
/// The nodes are known by their positions. The states of all nodes are read when claims that read other attributes are asked for
/// the first time; afterwards those of nodes are read again whose slices or devices in use have changed. A Node object that has
/// changed is the caller's to tell ([`Nodes::replace`]).
///
/// ```
/// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Fit, Index, Inventory, Nodes, Profile};
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
/// use serde_json::{from_value, json};
///
/// let slice = |node: &str| from_value::<ResourceSlice>(json!({"metadata": {"name": node}, "spec": {
///     "driver": "gpu.example.com", "nodeName": node,
///     "devices": [{"name": format!("gpu-of-{node}"), "attributes": {"uuid": {"string": node}}}],
///     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
/// }}));
/// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
/// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "training"}, "spec": {"devices": {"requests": [
///     {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
/// ]}}}))?;
/// let list: [Node; 3] = from_value(json!(["a", "b", "c"].map(|name| json!({"metadata": {"name": name}}))))?;
/// let (inventory, classes) = (Inventory::new([slice("a")?, slice("b")?, slice("c")?]), Classes::new([class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
///
/// let (mut nodes, mut state) = (Nodes::new(list), AllocatedState::default());
/// state.hold(&DeviceId::new("gpu.example.com", "b", "gpu-of-b"));
/// let asked = nodes.attempt(&allocator, &state, [&claim]);
/// let mut answers: Vec<(Fit, Vec<usize>)> = Vec::new();
/// for answer in asked.by_state(Budget::default()) {
///     answers.push((answer.fit.clone().unwrap(), answer.nodes().map(usize::from).collect()));
/// }
/// assert_eq!(answers, [(Fit::Yes, vec![0, 2]), (Fit::No, vec![1])]);
/// assert_eq!(asked.fits(Index::from(2), Budget::default()), Ok(Fit::Yes));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Nodes<N> {
    list: Vec<N>,
    /// Keys of what the view of each node depends on; empty before the first attempt.
    keys: Vec<Keys>,
    dependents: Dependents,
    /// Groupings, the one that was used last at the end.
    groupings: VecDeque<Grouping>,
    seen: Seen,
    /// Positions of nodes that were replaced since then.
    replaced: BTreeSet<usize>,
}

type Keys = SmallVec<[u64; 3]>;

impl<N: Borrow<Node>> Nodes<N> {
    /// Takes nodes, which are known by their positions from now on.
    pub fn new(nodes: impl IntoIterator<Item = N>) -> Self {
        let list = nodes.into_iter().collect();
        let (dependents, groupings) = (Dependents::default(), VecDeque::new());
        let (seen, replaced) = (Seen::default(), BTreeSet::new());
        Self { list, keys: Vec::new(), dependents, groupings, seen, replaced }
    }

    /// Returns the nodes, in the order of their positions.
    pub(crate) fn list(&self) -> &[N] {
        &self.list
    }

    /// Replaces a node whose object has changed. Does nothing for a position that is not in the list.
    pub fn replace(&mut self, position: Index<Node>, node: N) {
        if let Some(known) = self.list.get_mut(usize::from(position)) {
            *known = node;
            self.replaced.insert(usize::from(position));
        }
    }

    /// Begins an attempt to allocate claims on these nodes, with the devices in use of `state`.
    ///
    /// # Complexity
    /// Linear in the number of requests, of states, and of nodes that have changed: their objects, slices, or devices in use. Linear
    /// in the number of nodes for claims that read other attributes than those before, after a change of a slice that several nodes
    /// may see or of a taint rule, and after a thousand changed slices.
    pub fn attempt<'n, C: Borrow<ResourceClaim> + 'n>(
        &'n mut self,
        allocator: &'n Allocator<'n>,
        state: &'n AllocatedState,
        claims: impl IntoIterator<Item = &'n C>,
    ) -> AttemptByState<'n, N> {
        self.follow(allocator, state);
        let attempt = allocator.attempt(state, claims);
        let is_grouped = attempt.lens().map(|lens| self.use_grouping(&lens, allocator, state)).is_some();
        let Self { list, groupings, .. } = self;
        AttemptByState::new(attempt, list, groupings.back().filter(|_| is_grouped))
    }

    /// Follows the changes of slices and of devices in use.
    fn follow(&mut self, allocator: &Allocator<'_>, state: &AllocatedState) {
        let now = Seen::new(allocator.inventory, state);
        let changed = self.seen.changed_keys(&now, allocator.inventory).filter(|_| self.keys.len() == self.list.len());
        self.seen = now;
        let replaced = std::mem::take(&mut self.replaced);
        let Some(changed) = changed else { return self.list_all(allocator) };
        self.groupings.retain(|grouping| grouping.scheduler == allocator.scheduler);
        let changed = changed.iter().flat_map(|key| self.dependents.of(*key)).copied();
        let changed: BTreeSet<usize> = changed.chain(replaced).collect();
        for position in changed {
            debug_assert!(position < self.list.len() && self.keys.len() == self.list.len(), "each node has its keys");
            let (Some(node), Some(keys)) = (self.list.get(position), self.keys.get_mut(position)) else { continue };
            self.dependents.remove(position, keys);
            *keys = keys_of(allocator, node.borrow());
            self.dependents.add(position, keys);
            for grouping in &mut self.groupings {
                grouping.set(position, read(allocator, state, &grouping.lens, node.borrow()));
            }
        }
    }

    /// Lists all nodes anew, and forgets their states.
    fn list_all(&mut self, allocator: &Allocator<'_>) {
        (self.dependents, self.groupings) = (Dependents::default(), VecDeque::new());
        self.keys = self.list.iter().map(|node| keys_of(allocator, node.borrow())).collect();
        self.keys.iter().enumerate().for_each(|(position, keys)| self.dependents.add(position, keys));
    }

    /// Puts the grouping for a lens at the end of the list, made when it is first asked for.
    fn use_grouping(&mut self, lens: &KnownLens, allocator: &Allocator<'_>, state: &AllocatedState) {
        let known = self.groupings.iter().position(|grouping| grouping.lens.id() == lens.id());
        let known = known.and_then(|known| self.groupings.remove(known));
        let grouping = known.unwrap_or_else(|| {
            let states = self.list.iter().map(|node| read(allocator, state, lens, node.borrow()));
            Grouping::new(lens.clone(), allocator.scheduler, states)
        });
        if self.groupings.len() >= KEPT {
            self.groupings.pop_front();
        }
        self.groupings.push_back(grouping);
    }
}

/// Returns the keys of what the view of a node depends on, and not on slices that several nodes see.
fn keys_of(allocator: &Allocator<'_>, node: &Node) -> Keys {
    let mut keys: Keys = allocator.inventory.own_keys(node.metadata.name.as_deref().unwrap_or_default()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Reads the state of a node; `None` if more than that matters.
fn read(allocator: &Allocator<'_>, state: &AllocatedState, lens: &KnownLens, node: &Node) -> Option<NodeState> {
    let inventory = allocator.inventory;
    let (view, weight) = inventory.view_and_weight(node, allocator.sight());
    let first = own_words(allocator.scheduler.profile(), node, weight);
    // A grouping is read for one state of the cluster at a time.
    NodeState::read(first, inventory, &view.ok()?, lens, state, SharedUse::Known)
}

impl<N> fmt::Debug for Nodes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("nodes", &self.list.len()).finish_non_exhaustive()
    }
}
