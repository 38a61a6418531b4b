//! Work to make an allocator and to ask it once: the same for any number of classes, nodes and slices. Counted are the
//! allocations of memory and the steps of the search.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Outcome, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{from_value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn class(number: usize) -> DeviceClass {
    let selectors = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
    from_value(json!({"metadata": {"name": format!("class-{number}")}, "spec": {"selectors": selectors}})).unwrap()
}

fn slice(node: usize) -> Arc<ResourceSlice> {
    let name = format!("node-{node}");
    let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
    let devices = json!([{"name": "gpu-0"}, {"name": "gpu-1"}]);
    let spec = json!({"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": devices});
    Arc::new(from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
}

/// Blocks and bytes of memory allocated by one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allocated {
    blocks: u64,
    bytes: u64,
}

fn count<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
    let before = dhat::HeapStats::get();
    let result = work();
    let after = dhat::HeapStats::get();
    let (blocks, bytes) = (after.total_blocks - before.total_blocks, after.total_bytes - before.total_bytes);
    (result, Allocated { blocks, bytes })
}

/// Work in a cluster of some size: to make an allocator, and to ask about one node.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    new: Allocated,
    allocate: Allocated,
    steps: u64,
}

fn work(classes: usize, nodes: usize) -> Work {
    let (inventory, classes) = (Inventory::new((0..nodes).map(slice)), Classes::new((0..classes).map(class)));
    let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "class-0", "count": 2}}]}}}))
    .unwrap();
    let node: Node = from_value(json!({"metadata": {"name": "node-0"}})).unwrap();
    let (state, claims) = (AllocatedState::default(), [claim]);
    let (allocator, new) = count(|| Allocator::new(Profile::V1_37, &inventory, &classes));
    let (verdict, allocate) = count(|| allocator.allocate(&state, &node, &claims, Budget::default()).unwrap());
    assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
    Work { new, allocate, steps: verdict.steps }
}

#[test]
fn an_allocator_is_made_in_constant_work() {
    let _profiler = dhat::Profiler::builder().testing().build();
    work(1, 1); // What a process allocates once is not counted below.
    let small = work(1, 1);
    println!("{small:?}");
    assert!(small.new.blocks <= 4, "{small:?}");
    assert_eq!(work(1_000, 1), small, "classes");
    assert_eq!(work(1, 1_000), small, "nodes and slices");
}
