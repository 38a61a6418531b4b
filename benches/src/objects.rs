//! Objects of the clusters that are asked.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSelector};
use k8s_openapi::api::resource::v1::{
    Device, DeviceClass, ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec,
};
use serde_json::{Value, from_value, json};

/// Driver of GPUs.
pub const GPU: &str = "gpu.example.com";
/// Driver of NICs.
pub const NIC: &str = "nic.example.com";
/// Driver of a fabric.
pub const FABRIC: &str = "fabric.example.com";

/// Number of devices in a slice of a large pool.
const IN_SLICE: usize = 125;

/// Builds a class of all devices of a driver.
#[must_use]
pub fn class(name: &str, driver: &str) -> DeviceClass {
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
    from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).expect("a class")
}

/// Builds a node with the labels of its host and its rack.
#[must_use]
pub fn node(number: usize) -> Node {
    let labels = json!({"kubernetes.io/hostname": format!("host-{number}"), "rack": format!("rack-{}", number / 18)});
    from_value(json!({"metadata": {"name": format!("host-{number}"), "labels": labels}})).expect("a node")
}

/// Builds some nodes of a cluster, spread evenly.
#[must_use]
pub fn some(nodes: usize, asked: usize) -> Vec<Node> {
    (0..asked).map(|number| node(number * (nodes / asked))).collect()
}

/// Builds a node selector for the nodes with a label.
#[must_use]
pub fn labelled(key: &str, value: &str) -> NodeSelector {
    let wanted = json!({"key": key, "operator": "In", "values": [value]});
    from_value(json!({"nodeSelectorTerms": [{"matchExpressions": [wanted]}]})).expect("a node selector")
}

/// Builds the slices of a pool, of 125 devices each. `place` has the fields that say which nodes they are for.
#[must_use]
pub fn pool(driver: &str, name: &str, devices: &[Device], place: &ResourceSliceSpec) -> Vec<Arc<ResourceSlice>> {
    let count = i64::try_from(devices.len().div_ceil(IN_SLICE)).unwrap_or(i64::MAX);
    let pool = ResourcePool { name: name.to_owned(), generation: 1, resource_slice_count: count };
    let slice = |(number, devices): (usize, &[Device])| {
        let (driver, pool, devices) = (driver.to_owned(), pool.clone(), Some(devices.to_vec()));
        let mut slice = ResourceSlice::default();
        slice.metadata.name = Some(format!("{name}-{driver}-{number}"));
        slice.spec = ResourceSliceSpec { driver, pool, devices, ..place.clone() };
        Arc::new(slice)
    };
    devices.chunks(IN_SLICE).enumerate().map(slice).collect()
}

/// Builds devices, of which `group` neighbours have the same value of the attribute `group`.
#[must_use]
pub fn devices(kind: &str, count: usize, group: usize) -> Vec<Device> {
    let device = |number: usize| {
        let numa = number / 4;
        let device = json!({"name": format!("{kind}-{number}"), "attributes": {
            "model": {"string": "big"}, "group": {"int": number / group},
            "resource.kubernetes.io/numaNode": {"int": numa}, "resource.kubernetes.io/pcieRoot": {"string": format!("pci0000:{numa:02x}")},
        }});
        from_value(device).expect("a device")
    };
    (0..count).map(device).collect()
}

/// Builds the slices of nodes with 8 GPUs and 4 NICs each.
#[must_use]
pub fn local(nodes: usize, place: impl Fn(&str) -> ResourceSliceSpec) -> Vec<Arc<ResourceSlice>> {
    let (gpus, nics) = (devices("gpu", 8, 2), devices("nic", 4, 2));
    let slices = |number: usize| {
        let name = format!("host-{number}");
        let place = place(&name);
        [pool(GPU, &name, &gpus, &place), pool(NIC, &name, &nics, &place)].concat()
    };
    (0..nodes).flat_map(slices).collect()
}

/// Says that a slice is for a node, by its name.
#[must_use]
pub fn by_name(name: &str) -> ResourceSliceSpec {
    ResourceSliceSpec { node_name: Some(name.to_owned()), ..ResourceSliceSpec::default() }
}

/// Says that a slice is for a node, by a label.
#[must_use]
pub fn by_selector(name: &str) -> ResourceSliceSpec {
    let node_selector = Some(labelled("kubernetes.io/hostname", name));
    ResourceSliceSpec { node_selector, ..ResourceSliceSpec::default() }
}

/// Builds the slices of a pool for all nodes.
#[must_use]
pub fn fabric(driver: &str, count: usize) -> Vec<Arc<ResourceSlice>> {
    let everywhere = ResourceSliceSpec { all_nodes: Some(true), ..ResourceSliceSpec::default() };
    pool(driver, "fabric", &devices("port", count, 72), &everywhere)
}

/// Builds the slices of racks, each with 64 devices that name the rack one by one.
#[must_use]
pub fn racks(count: usize) -> Vec<Arc<ResourceSlice>> {
    let each = ResourceSliceSpec { per_device_node_selection: Some(true), ..ResourceSliceSpec::default() };
    let rack = |number: usize| {
        let mut devices = devices("port", 64, 8);
        for device in &mut devices {
            device.node_selector = Some(labelled("rack", &format!("rack-{number}")));
        }
        pool(FABRIC, &format!("rack-{number}"), &devices, &each)
    };
    (0..count).flat_map(rack).collect()
}

/// Builds a claim of requests and constraints.
#[must_use]
pub fn claim(requests: &Value, constraints: &Value) -> [ResourceClaim; 1] {
    let devices = json!({"requests": requests, "constraints": constraints});
    [from_value(json!({"metadata": {"name": "claim"}, "spec": {"devices": devices}})).expect("a claim")]
}

/// Builds a claim for some devices of a class.
#[must_use]
pub fn ask(class: &str, count: usize) -> [ResourceClaim; 1] {
    claim(&json!([{"name": "r", "exactly": {"deviceClassName": class, "count": count}}]), &json!([]))
}
