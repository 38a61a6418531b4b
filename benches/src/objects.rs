//! Objects of the clusters that are asked.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

pub(crate) const GPU: &str = "gpu.example.com";
pub(crate) const NIC: &str = "nic.example.com";
pub(crate) const FABRIC: &str = "fabric.example.com";
pub(crate) fn class(name: &str, driver: &str) -> DeviceClass {
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
    from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).expect("a class")
}

pub(crate) fn node(number: usize) -> Node {
    let labels = json!({"kubernetes.io/hostname": format!("host-{number}"), "rack": format!("rack-{}", number / 18)});
    from_value(json!({"metadata": {"name": format!("host-{number}"), "labels": labels}})).expect("a node")
}

/// Builds some nodes of a cluster, spread evenly.
pub(crate) fn some(nodes: usize, asked: usize) -> Vec<Node> {
    (0..asked).map(|number| node(number * (nodes / asked))).collect()
}

pub(crate) fn labelled(key: &str, value: &str) -> Value {
    json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]})
}

/// Builds the slices of a pool, of 125 devices each.
pub(crate) fn pool(driver: &str, name: &str, devices: &[Value], place: &Value) -> Vec<Arc<ResourceSlice>> {
    let parts: Vec<&[Value]> = devices.chunks(125).collect();
    let slice = |(number, devices): (usize, &&[Value])| {
        let mut spec = json!({"driver": driver, "devices": devices,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": parts.len()}});
        if let (Some(spec), Some(place)) = (spec.as_object_mut(), place.as_object()) {
            spec.extend(place.clone());
        }
        Arc::new(
            from_value(json!({"metadata": {"name": format!("{name}-{driver}-{number}")}, "spec": spec}))
                .expect("a slice"),
        )
    };
    parts.iter().enumerate().map(slice).collect()
}

pub(crate) fn devices(kind: &str, count: usize, group: usize) -> Vec<Value> {
    let device = |number: usize| {
        let numa = number / 4;
        json!({"name": format!("{kind}-{number}"), "attributes": {
            "model": {"string": "big"}, "group": {"int": number / group},
            "resource.kubernetes.io/numaNode": {"int": numa}, "resource.kubernetes.io/pcieRoot": {"string": format!("pci0000:{numa:02x}")},
        }})
    };
    (0..count).map(device).collect()
}

/// Builds the slices of nodes with 8 GPUs and 4 NICs each.
pub(crate) fn local(nodes: usize, place: impl Fn(&str) -> Value) -> Vec<Arc<ResourceSlice>> {
    let (gpus, nics) = (devices("gpu", 8, 2), devices("nic", 4, 2));
    let slices = |number: usize| {
        let name = format!("host-{number}");
        let place = place(&name);
        [pool(GPU, &name, &gpus, &place), pool(NIC, &name, &nics, &place)].concat()
    };
    (0..nodes).flat_map(slices).collect()
}

pub(crate) fn by_name(name: &str) -> Value {
    json!({"nodeName": name})
}

pub(crate) fn by_selector(name: &str) -> Value {
    json!({"nodeSelector": labelled("kubernetes.io/hostname", name)})
}

pub(crate) fn fabric(driver: &str, count: usize) -> Vec<Arc<ResourceSlice>> {
    pool(driver, "fabric", &devices("port", count, 72), &json!({"allNodes": true}))
}

/// Builds the slices of racks, each with 64 devices that name the rack one by one.
pub(crate) fn racks(count: usize) -> Vec<Arc<ResourceSlice>> {
    let rack = |number: usize| {
        let mut devices = devices("port", 64, 8);
        for device in devices.iter_mut().filter_map(Value::as_object_mut) {
            device.insert("nodeSelector".to_owned(), labelled("rack", &format!("rack-{number}")));
        }
        pool(FABRIC, &format!("rack-{number}"), &devices, &json!({"perDeviceNodeSelection": true}))
    };
    (0..count).flat_map(rack).collect()
}

pub(crate) fn claim(requests: &Value, constraints: &Value) -> [ResourceClaim; 1] {
    let devices = json!({"requests": requests, "constraints": constraints});
    [from_value(json!({"metadata": {"name": "claim"}, "spec": {"devices": devices}})).expect("a claim")]
}

pub(crate) fn ask(class: &str, count: usize) -> [ResourceClaim; 1] {
    claim(&json!([{"name": "r", "exactly": {"deviceClassName": class, "count": count}}]), &json!([]))
}
