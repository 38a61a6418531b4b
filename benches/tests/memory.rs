//! Memory of an index and of what is kept beside it, by node and by device, with the objects and without.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "bytes are divided and compared")]

use std::sync::Arc;

use benches::objects::{GPU, by_name, class, node};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Index, Inventory, NodeVerdicts, Nodes, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec};
use serde_json::{from_value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Number of nodes: a tenth of the cluster that the limits are for (5,000 nodes with 16 devices each).
const NODES: usize = 500;
/// Largest size of such a cluster, with its objects and its index.
const LIMIT: f64 = 300.0 * 1024.0 * 1024.0;
/// Largest part of the slices' size that the index, what it keeps and refusals may have.
const MOST_OF_SLICES: f64 = 0.02;
/// Largest part of the claims' size that the state may have.
const MOST_OF_CLAIMS: f64 = 0.6;
/// Largest part of the size of slices and claims that the states of all nodes may have.
const MOST_OF_OBJECTS: f64 = 0.03;

/// Builds a GPU with four attributes and a capacity, or, for the second half of a node, a NIC with two attributes.
fn device(index: usize, of: usize) -> Device {
    let numa = json!({"ints": [index / 4, index / 4 + 4]});
    let root = json!({"string": format!("pci0000:{index:02x}")});
    let mut attributes = json!({"resource.kubernetes.io/numaNode": numa, "resource.kubernetes.io/pcieRoot": root});
    let mut device = json!({"name": format!("device-{index}")});
    if index < of / 2 {
        attributes["model"] = json!({"string": "h100"});
        attributes["uuid"] = json!({"string": format!("GPU-0123-4567-{index}")});
        device["capacity"] = json!({"memory": {"value": "80Gi"}});
    }
    device["attributes"] = attributes;
    from_value(device).unwrap()
}

fn slice(number: usize, devices: &[Device]) -> Arc<ResourceSlice> {
    let name = format!("host-{number}");
    let pool = ResourcePool { name: name.clone(), generation: 1, resource_slice_count: 1 };
    let (driver, devices) = (GPU.to_owned(), Some(devices.to_vec()));
    let spec = ResourceSliceSpec { driver, pool, devices, ..by_name(&name) };
    let mut slice = ResourceSlice { spec, ..ResourceSlice::default() };
    slice.metadata.name = Some(name);
    Arc::new(slice)
}

/// Builds a claim that has a device.
fn claim(node: usize, device: &Device) -> ResourceClaim {
    let (pool, name) = (format!("host-{node}"), format!("claim-{node}-{}", device.name));
    let result = json!({"request": "r", "driver": GPU, "pool": pool, "device": device.name});
    let request =
        json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}});
    from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": format!("01234567-89ab-cdef-{name}")},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }))
    .unwrap()
}

/// Names of the columns: what was made, one after the other.
const MADE: [&str; 8] = ["slices", "index", "prepared", "claims", "state", "free devices", "refusals", "states"];

/// Returns the bytes that are in use for each of `MADE`, of a cluster of nodes with some devices each, all held.
fn measure(nodes: usize, devices: usize) -> [f64; MADE.len()] {
    let devices: Vec<Device> = (0..devices).map(|index| device(index, devices)).collect();
    let objects: Vec<Node> = (0..nodes).map(node).collect();
    let classes = Classes::new([class("gpu", GPU)]);
    let _profiler = dhat::Profiler::builder().testing().build();
    let (mut before, mut bytes) = (0, Vec::new());
    let mut done = || {
        let now = dhat::HeapStats::get().curr_bytes;
        bytes.push((now - before) as f64);
        before = now;
    };
    let slices: Vec<Arc<ResourceSlice>> = (0..nodes).map(|number| slice(number, &devices)).collect();
    done();
    let inventory = Inventory::new(slices.iter().cloned());
    done();
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    allocator.prepare(&AllocatedState::default(), &objects);
    done();
    let claims: Vec<ResourceClaim> =
        (0..nodes).flat_map(|node| devices.iter().map(move |device| claim(node, device))).collect();
    done();
    let state = AllocatedState::from_claims(&claims, Component::of(Profile::V1_37)).unwrap();
    done();
    allocator.prepare(&state, &objects);
    done();
    let mut verdicts = NodeVerdicts::default();
    let mut followed = verdicts.follow(&allocator, &state, &objects);
    (0..nodes).for_each(|node| followed.refuse(&"kind", Index::from(node)));
    done();
    let mut all = Nodes::new(objects.iter());
    let pending = ResourceClaim { status: None, ..claims[0].clone() };
    assert_eq!(all.attempt(&allocator, &state, [&pending]).by_state(Budget::default()).count(), 1);
    done();
    assert_eq!((inventory.slices().count(), state.len()), (nodes, nodes * devices.len()));
    bytes.try_into().unwrap()
}

#[test]
fn an_index_is_small_beside_its_objects() {
    let (some, fewer) = (measure(NODES, 16), measure(NODES, 8));
    println!("{:14} {:>10} {:>10}", "bytes", "a device", "a node");
    for (place, made) in MADE.iter().enumerate() {
        let of_device = (some[place] - fewer[place]) / (8 * NODES) as f64;
        println!("{made:14} {of_device:10.1} {:10.1}", some[place] / NODES as f64 - 16.0 * of_device);
    }
    let [slices, index, prepared, claims, state, free, refusals, states] = some;
    let kept = index + prepared + free + refusals;
    println!(
        "kept: {:.2} % of the slices; state: {:.1} % of the claims; states: {:.2} % of both",
        100.0 * kept / slices,
        100.0 * state / claims,
        100.0 * states / (slices + claims)
    );
    assert!(kept < MOST_OF_SLICES * slices, "{kept} bytes beside {slices}");
    assert!(state < MOST_OF_CLAIMS * claims, "{state} bytes beside {claims}");
    assert!(states < MOST_OF_OBJECTS * (slices + claims), "{states} bytes beside {}", slices + claims);
    assert!((slices + index + prepared) * 5_000.0 / (NODES as f64) < LIMIT);
}
