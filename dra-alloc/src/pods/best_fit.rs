//! Best fit: the room that an allocation leaves, to order nodes by. An option of the caller; kube-scheduler has no such score.

use std::collections::BTreeSet;

use dra_device::internal::of_allocation;
use k8s_openapi::api::core::v1::Node;
use serde::Serialize;

use super::cycle::PodCycle;
use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::sight::Sight;
use crate::cluster::state::{AllocatedState, PoolUse};

/// Room that allocations leave in the pools of which they take devices. The smallest room is the best fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct RoomLeft {
    /// Devices of the pools that nobody uses afterwards.
    pub free: usize,
    /// All devices of the pools.
    pub devices: usize,
}

impl PodCycle {
    /// Returns the room that the cycle's allocations leave on a node that passed the filter, so that a caller can prefer
    /// nodes that are nearly full (`min_by_key`). No room if nothing is to be allocated there.
    ///
    /// # Complexity
    /// Linear in the number of slices that the node sees, and logarithmic in the number of devices in use.
    #[must_use]
    pub fn room_left(&self, node: &Node, inventory: &Inventory, state: &AllocatedState) -> RoomLeft {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let results = self.results_on(name).flat_map(of_allocation);
        let taken: BTreeSet<[&str; 3]> =
            results.map(|result| [&*result.driver, &*result.pool, &*result.device]).collect();
        let Ok(view) = inventory.view(node, Sight::new(self.options.profile(), self.options.gates())) else {
            return RoomLeft::default();
        };
        let mut room = RoomLeft::default();
        for pool in view.pools() {
            let of_pool = taken.iter().filter(|[driver, name, _]| (*driver, *name) == (pool.driver(), pool.name()));
            let (mut is_taken, mut newly) = (false, 0);
            let in_use = state.pool(pool.driver(), pool.name());
            for [_, _, device] in of_pool {
                is_taken = true;
                newly += usize::from(in_use.is_none_or(|in_use| in_use.device(device).is_none()));
            }
            if is_taken {
                let devices = pool.all_slices().map(|slice| slice.spec.devices.iter().flatten().count()).sum();
                let used = in_use.map_or(0, PoolUse::len) + newly;
                room = RoomLeft {
                    free: room.free + usize::saturating_sub(devices, used),
                    devices: room.devices + devices,
                };
            }
        }
        room
    }
}
