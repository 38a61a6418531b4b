//! Memory use of an index, with its objects and without.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;

use dra_alloc::{AllocatedState, Allocator, Classes, Inventory, Profile, SelectorCache};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{from_value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Number of nodes: a tenth of the cluster that the limit is for (5,000 nodes with 16 devices each).
const NODES: usize = 500;
const LIMIT: usize = 300 << 20;

/// Builds the slice of one node: GPUs with four attributes and a capacity, and NICs with two attributes.
fn slice(node: usize) -> Arc<ResourceSlice> {
    let devices = (0..16).map(|index| {
        let numa = json!({"ints": [index / 4, index / 4 + 4]});
        let root = json!({"string": format!("pci0000:{index:02x}")});
        let mut attributes = json!({"resource.kubernetes.io/numaNode": numa, "resource.kubernetes.io/pcieRoot": root});
        let mut device = json!({"name": format!("device-{index}")});
        if index < 8 {
            attributes["model"] = json!({"string": "h100"});
            attributes["uuid"] = json!({"string": format!("GPU-{node}-{index}")});
            device["capacity"] = json!({"memory": {"value": "80Gi"}});
        }
        device["attributes"] = attributes;
        device
    });
    let name = format!("node-{node}");
    let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
    let devices: Vec<_> = devices.collect();
    let spec = json!({"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices});
    Arc::new(from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
}

fn node(node: usize) -> Node {
    from_value(json!({"metadata": {"name": format!("node-{node}")}})).unwrap()
}

#[test]
fn an_index_of_5000_nodes_stays_below_300_mib() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let slices: Vec<Arc<ResourceSlice>> = (0..NODES).map(slice).collect();
    let objects = dhat::HeapStats::get().curr_bytes;
    let inventory = Inventory::new(slices);
    let all = dhat::HeapStats::get().curr_bytes;
    let selectors = SelectorCache::default();
    let classes = Classes::default();
    Allocator::new(Profile::Kep, &inventory, &classes)
        .with_selector_cache(&selectors)
        .prepare(&AllocatedState::default(), &(0..NODES).map(node).collect::<Vec<_>>());
    let prepared = dhat::HeapStats::get().curr_bytes;
    println!("{NODES} nodes: objects {objects} bytes, with the index {all} bytes, prepared {prepared} bytes");
    assert!(all < prepared && prepared * 10 < LIMIT, "{prepared}");
    assert_eq!(inventory.slices().count(), NODES);
}
