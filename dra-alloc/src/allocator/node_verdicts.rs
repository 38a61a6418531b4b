//! Nodes that have refused pods, remembered until something of them changes.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use dra_attrs::Index;
use k8s_openapi::api::core::v1::Node;
use smallvec::SmallVec;

use super::Allocator;
use super::dependents::{Dependents, Seen};
use super::node_version::NodeVersion;
use crate::cluster::bits::Bits;
use crate::cluster::inventory::pool::Pool;
use crate::cluster::state::AllocatedState;

/// Nodes that have refused pods, so that after an event only those are asked again of which something has changed.
///
/// `K` is a kind of pods, as the caller takes it: one pod that waits, or all pods whose claims ask for the same. Nodes are
/// known by their positions in the caller's list. [`NodeVerdicts::follow`] forgets the refusals of nodes whose
/// [`NodeVersion`] has changed, and opens the rest to the caller.
///
/// The versions of nodes do not tell everything. A changed Node object is the caller's to forget
/// ([`NodeVerdicts::forget_node`]), and so is a kind whose pods are gone ([`NodeVerdicts::forget_kind`]); with other classes, other options or another list of nodes the verdicts begin anew.
///
/// ```
/// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Fit, Inventory, Index, NodeVerdicts, Profile};
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
/// use serde_json::{from_value, json};
///
/// let slice = |node: &str| from_value::<ResourceSlice>(json!({"metadata": {"name": node}, "spec": {
///     "driver": "gpu.example.com", "nodeName": node, "devices": [{"name": "gpu-0"}],
///     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
/// }}));
/// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
/// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "training"}, "spec": {"devices": {"requests": [
///     {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
/// ]}}}))?;
/// let nodes: [Node; 2] = from_value(json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]))?;
/// let (inventory, classes) = (Inventory::new([slice("a")?, slice("b")?]), Classes::new([class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
///
/// let mut verdicts = NodeVerdicts::default();
/// // Returns the first node with room, and the number of nodes that were asked.
/// let mut first_fit = |state: &AllocatedState| {
///     let mut open = verdicts.follow(&allocator, state, &nodes);
///     let (attempt, mut asked) = (allocator.attempt(state, [&claim]), 0);
///     for node in open.undecided(&"one GPU", Index::FIRST) {
///         asked += 1;
///         match attempt.fits(&nodes[usize::from(node)], Budget::default()) {
///             Ok(Fit::Yes) => return (Some(node), asked),
///             Ok(Fit::No) => open.refuse(&"one GPU", node),
///             // Not known: the node is asked again.
///             Ok(Fit::Stopped(_)) | Err(_) => {}
///         }
///     }
///     (None, asked)
/// };
///
/// let mut state = AllocatedState::default();
/// state.hold(&DeviceId::new("gpu.example.com", "a", "gpu-0"));
/// assert_eq!(first_fit(&state), (Some(Index::from(1)), 2));
/// state.hold(&DeviceId::new("gpu.example.com", "b", "gpu-0"));
/// assert_eq!(first_fit(&state), (None, 1));
/// assert_eq!(first_fit(&state), (None, 0));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NodeVerdicts<K> {
    /// Dependencies of the refusals of each node; `None` for a node that has refused nothing since it changed.
    nodes: Vec<Option<Mark>>,
    /// Positions of nodes with a mark, by the keys of the mark.
    dependents: Dependents,
    /// Kinds that some nodes have refused.
    kinds: BTreeMap<K, Refusals>,
    seen: Seen,
}

/// Dependencies of the refusals of a node.
#[derive(Clone, Debug)]
struct Mark {
    version: NodeVersion,
    /// Hashes of the node's name and of its pools.
    keys: SmallVec<[u64; 3]>,
}

/// Nodes that have refused a kind.
#[derive(Clone, Debug)]
struct Refusals {
    /// The other nodes.
    undecided: Bits,
    count: usize,
}

/// Nodes and their refusals, while state and slices are as they were followed: what [`NodeVerdicts::follow`] returns.
#[derive(Debug)]
pub struct FollowedNodes<'v, K, N> {
    verdicts: &'v mut NodeVerdicts<K>,
    allocator: &'v Allocator<'v>,
    state: &'v AllocatedState,
    nodes: &'v [N],
}

impl<K> Default for NodeVerdicts<K> {
    fn default() -> Self {
        Self { nodes: Vec::new(), dependents: Dependents::default(), kinds: BTreeMap::new(), seen: Seen::default() }
    }
}

impl<K: Ord> NodeVerdicts<K> {
    /// Forgets the refusals of nodes that have changed since this was last called: of all nodes if their number is another
    /// one.
    ///
    /// # Complexity
    /// Linear in the number of pools whose use has changed, of changed slices, and of nodes with refusals that depend on them.
    /// After a change of a slice that several nodes may see, or of a taint rule, linear in the number of nodes with refusals;
    /// so after a thousand changed slices.
    pub fn follow<'v, N: Borrow<Node>>(
        &'v mut self,
        allocator: &'v Allocator<'v>,
        state: &'v AllocatedState,
        nodes: &'v [N],
    ) -> FollowedNodes<'v, K, N> {
        if self.nodes.len() != nodes.len() {
            *self = Self { nodes: vec![None; nodes.len()], ..Self::default() };
        }
        let now = Seen::new(allocator.inventory, state);
        match self.seen.changed_keys(&now, allocator.inventory) {
            Some(keys) => keys.into_iter().for_each(|key| self.forget_dependents(key)),
            None => self.compare(allocator, state, nodes),
        }
        self.seen = now;
        FollowedNodes { verdicts: self, allocator, state, nodes }
    }

    /// Forgets the refusals of a node, whose Node object has changed.
    pub fn forget_node(&mut self, node: Index<Node>) {
        self.forget(usize::from(node));
    }

    /// Forgets the refusals of a kind of pods that nobody asks for any more: for example of a pod that is gone, if each pod is a kind
    /// of its own. On a cluster that never changes, a kind is kept until then.
    ///
    /// # Complexity
    /// Logarithmic in the number of kinds.
    pub fn forget_kind(&mut self, kind: &K) {
        self.kinds.remove(kind);
    }

    /// Forgets the refusals of nodes whose version has changed.
    fn compare<N: Borrow<Node>>(&mut self, allocator: &Allocator<'_>, state: &AllocatedState, nodes: &[N]) {
        for (position, node) in nodes.iter().enumerate() {
            let Some(Some(known)) = self.nodes.get(position) else { continue };
            match Mark::new(allocator, state, node.borrow()) {
                Some(mark) if mark.version == known.version => {
                    if mark.keys != known.keys {
                        self.unlist(position);
                        self.list(position, mark);
                    }
                }
                _ => self.forget(position),
            }
        }
    }

    fn forget_dependents(&mut self, key: u64) {
        self.dependents.of(key).to_vec().into_iter().for_each(|position| self.forget(position));
    }

    fn forget(&mut self, position: usize) {
        self.unlist(position);
        self.kinds.retain(|_, refusals| {
            refusals.remove(position);
            refusals.count > 0
        });
    }

    /// Adds the mark of a node that has none.
    fn list(&mut self, position: usize, mark: Mark) {
        self.dependents.add(position, &mark.keys);
        if let Some(known) = self.nodes.get_mut(position) {
            *known = Some(mark);
        }
    }

    /// Takes the mark of a node away.
    fn unlist(&mut self, position: usize) {
        let Some(mark) = self.nodes.get_mut(position).and_then(Option::take) else { return };
        self.dependents.remove(position, &mark.keys);
    }
}

impl<K: Ord + Clone, N: Borrow<Node>> FollowedNodes<'_, K, N> {
    /// Returns the nodes that have not refused a kind of pods, in the order of the list, from a node on and round to it. Nodes
    /// that refuse the kind meanwhile stay in it.
    ///
    /// # Complexity
    /// Linear in the number of these nodes, and in a sixty-fourth of the others.
    pub fn undecided(&self, kind: &K, from: Index<Node>) -> impl Iterator<Item = Index<Node>> + use<K, N> {
        let known = self.verdicts.kinds.get(kind).map(|refusals| refusals.undecided.clone());
        let undecided = known.unwrap_or_else(|| Bits::all(self.nodes.len()));
        let from = usize::from(from).min(self.nodes.len());
        let (mut next, mut is_round) = (from, false);
        std::iter::from_fn(move || {
            let mut found = undecided.next(next);
            if found.is_none() && !is_round {
                is_round = true;
                found = undecided.next(0);
            }
            let node = found.filter(|node| !is_round || *node < from)?;
            next = node + 1;
            Some(Index::from(node))
        })
    }

    /// Returns true if a node has refused a kind of pods, and would do so again.
    #[must_use]
    pub fn has_refused(&self, kind: &K, node: Index<Node>) -> bool {
        let refusals = self.verdicts.kinds.get(kind);
        refusals.is_some_and(|refusals| !refusals.undecided.contains(usize::from(node)))
    }

    /// Remembers that a node has refused a kind of pods. Does nothing for a node that is not in the list, and for one whose slices
    /// can't be read, which is an error on every node.
    ///
    /// # Complexity
    /// Linear in the number of pools that the node sees.
    pub fn refuse(&mut self, kind: &K, node: Index<Node>) {
        let position = usize::from(node);
        let Some(object) = self.nodes.get(position) else { return };
        if let Some(None) = self.verdicts.nodes.get(position) {
            let Some(mark) = Mark::new(self.allocator, self.state, object.borrow()) else { return };
            self.verdicts.list(position, mark);
        }
        if let Some(refusals) = self.verdicts.kinds.get_mut(kind) {
            refusals.add(position);
        } else {
            let mut refusals = Refusals { undecided: Bits::all(self.nodes.len()), count: 0 };
            refusals.add(position);
            self.verdicts.kinds.insert(kind.clone(), refusals);
        }
    }
}

impl Mark {
    /// Reads what a node's refusals depend on; `None` if the node's slices can't be read.
    fn new(allocator: &Allocator<'_>, state: &AllocatedState, node: &Node) -> Option<Self> {
        let inventory = allocator.inventory;
        let view = inventory.view(node, allocator.sight()).ok()?;
        let own = inventory.own_keys(node.metadata.name.as_deref().unwrap_or_default());
        let mut keys: SmallVec<_> = own.chain(view.pools().map(Pool::hash)).collect();
        keys.sort_unstable();
        keys.dedup();
        Some(Self { version: NodeVersion::new(inventory, &view, state), keys })
    }
}

impl Refusals {
    fn add(&mut self, position: usize) {
        self.count += usize::from(self.undecided.contains(position));
        self.undecided.set(position, false);
    }

    fn remove(&mut self, position: usize) {
        self.count -= usize::from(!self.undecided.contains(position));
        self.undecided.set(position, true);
    }
}
