//! Classes of nodes that are interchangeable in a search for places.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::DeviceId;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::json;

use crate::allocator::Allocator;
use crate::autoscaler::{ScaleSimulator, name_of};
use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::view::View;
use crate::pods::ClaimTracker;

/// Returns the class of each node: nodes of one class have equal devices of their own, the same of them free, and see the same others.
pub(super) fn classes(
    simulator: &ScaleSimulator<'_>,
    inventory: &Inventory,
    tracker: &ClaimTracker,
    nodes: &[&Node],
) -> Vec<usize> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let allocator = simulator.allocator(inventory);
    let class = |(index, node): (usize, &&Node)| {
        let key = if simulator.is_checked() { index.to_string() } else { key_of(inventory, tracker, &allocator, node) };
        let next = known.len();
        *known.entry(key).or_insert(next)
    };
    nodes.iter().enumerate().map(class).collect()
}

fn key_of(inventory: &Inventory, tracker: &ClaimTracker, allocator: &Allocator<'_>, node: &Node) -> String {
    let state = tracker.state();
    let own: Vec<&ResourceSlice> = inventory.slices_of_node(name_of(node)).collect();
    let own_pools: BTreeSet<[&str; 2]> =
        own.iter().map(|slice| [slice.spec.driver.as_str(), slice.spec.pool.name.as_str()]).collect();
    let devices: Vec<_> = own
        .iter()
        .map(|slice| {
            let is_used =
                |device: &str| state.is_allocated(&DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, device));
            let used: Vec<bool> = slice.spec.devices.iter().flatten().map(|device| is_used(&device.name)).collect();
            let shared = [slice.spec.pool.resource_slice_count, slice.spec.pool.generation];
            (&slice.spec.driver, shared, &slice.spec.shared_counters, &slice.spec.devices, used)
        })
        .collect();
    let view = allocator.view(node).ok();
    let others: Vec<[&str; 2]> = view
        .iter()
        .flat_map(View::pools)
        .map(|pool| [pool.driver(), pool.name()])
        .filter(|pool| !own_pools.contains(pool))
        .collect();
    // Partly used devices of one class would have to be compared by what is left of them.
    let is_shared = own.iter().flat_map(|slice| slice.spec.devices.iter().flatten());
    let is_shared = { is_shared }.any(|device| device.allow_multiple_allocations == Some(true));
    json!([devices, others, is_shared.then(|| name_of(node))]).to_string()
}
