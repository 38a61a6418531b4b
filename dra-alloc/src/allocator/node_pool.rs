//! Pools that a node sees, with the numbers of their devices.

use crate::cluster::inventory::pool::{Pool, PoolState};
use crate::cluster::state::AllocatedState;

/// Resource pool as a node sees it, with the number of its devices that are free.
///
/// ```
/// use dra_alloc::{AllocatedState, Allocator, Classes, DeviceId, Inventory, Profile};
/// use k8s_openapi::api::core::v1::Node;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::{from_value, json};
///
/// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "a"}, "spec": {
///     "driver": "gpu.example.com", "nodeName": "a", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
///     "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
/// }}))?;
/// let node: Node = from_value(json!({"metadata": {"name": "a"}}))?;
/// let (inventory, classes) = (Inventory::new([slice]), Classes::default());
/// let mut state = AllocatedState::default();
/// state.hold(&DeviceId::new("gpu.example.com", "a", "gpu-0"));
/// let pools = Allocator::new(Profile::V1_37, &inventory, &classes).node_pools(&state, &node).unwrap();
/// assert_eq!((pools[0].devices, pools[0].free), (2, 1));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodePool {
    /// Name of the driver.
    pub driver: String,
    /// Name of the pool.
    pub pool: String,
    /// True if devices can be allocated from the pool: its slices are all there and fit together.
    pub is_usable: bool,
    /// Number of devices in the slices that the node sees; 0 unless the slices are all there.
    pub devices: usize,
    /// Number of these devices that no claim holds or shares.
    pub free: usize,
}

impl NodePool {
    pub(super) fn new(pool: &Pool, state: &AllocatedState) -> Self {
        let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
        let used = used.map_or(0, |used| used.occupancy(pool.devices()).used_count());
        Self {
            driver: pool.driver().to_owned(),
            pool: pool.name().to_owned(),
            is_usable: pool.state() == PoolState::Complete,
            devices: pool.len(),
            free: pool.len() - used,
        }
    }
}
