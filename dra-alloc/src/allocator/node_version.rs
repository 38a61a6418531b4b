//! Versions of nodes: marks of all that a verdict about a node depends on.

use smallvec::SmallVec;

use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::view::View;
use crate::cluster::stamp::Stamp;
use crate::cluster::state::{AllocatedState, PoolUse};

/// Version of a node: changes with the slices that the node sees, with the use of their pools, and with taint rules.
///
/// A verdict on a node stays the same while the version of the node does, the Node object and the claims are the same, and
/// the allocator has the same classes and options. A caller with a pod that waits keeps the verdicts with the
/// versions, and after an event asks again only for nodes whose version differs. Versions of copies and layers of a
/// state may be compared with each other.
///
/// ```
/// use dra_alloc::{AllocatedState, Allocator, Classes, DeviceId, Inventory, Profile};
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::{from_value, json};
///
/// let node = |name: &str| from_value::<Node>(json!({"metadata": {"name": name}}));
/// let slice = |node: &str| from_value::<ResourceSlice>(json!({"metadata": {"name": node}, "spec": {
///     "driver": "gpu.example.com", "nodeName": node, "devices": [{"name": "gpu-0"}],
///     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
/// }}));
/// let (inventory, classes) = (Inventory::new([slice("a")?, slice("b")?]), Classes::default());
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
/// let nodes = [node("a")?, node("b")?];
/// let mut state = AllocatedState::default();
/// let versions = |state: &AllocatedState| nodes.each_ref().map(|node| allocator.node_version(state, node).unwrap());
///
/// let before = versions(&state);
/// state.hold(&DeviceId::new("gpu.example.com", "b", "gpu-0"));
/// let after = versions(&state);
/// assert_eq!(before[0], after[0]);
/// assert_ne!(before[1], after[1]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeVersion {
    rules: Stamp,
    /// For each pool that the node sees: the stamps of the pool and of its use.
    pools: SmallVec<[(Stamp, Stamp); 2]>,
}

impl NodeVersion {
    pub(super) fn new(inventory: &Inventory, view: &View<'_>, state: &AllocatedState) -> Self {
        let stamps = view.pools().map(|pool| {
            let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
            (pool.stamp(), used.map_or_else(Stamp::default, PoolUse::stamp))
        });
        Self { rules: inventory.rules_stamp(), pools: stamps.collect() }
    }
}
