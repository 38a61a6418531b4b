//! Nodes that can go, of a cluster in which all of them are candidates: the processor time of the answer, without and with explanations.
//!
//! Each node has eight devices, of which two are in use, one by a pod.
//!
//! `cargo run --release -p benches --example scale_down [NODES...]`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for developers")]

use dra_alloc::autoscaler::{ClusterSnapshot, ScaleSimulator};
use dra_alloc::explain::Detail;
use dra_alloc::pods::{ClaimTracker, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

/// Numbers of nodes, unless others are given.
const SIZES: [usize; 3] = [100, 200, 400];
const DEVICES: usize = 8;
const USED: usize = 2;
const REPEATS: usize = 3;

fn read<T: k8s_openapi::serde::de::DeserializeOwned>(object: Value) -> T {
    from_value(object).unwrap()
}

fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

fn slice(node: &str) -> ResourceSlice {
    let device = |index| json!({"name": format!("gpu-{index}"), "attributes": {"model": {"string": "h100"}}});
    let devices: Vec<Value> = (0..DEVICES).map(device).collect();
    read(json!({"metadata": {"name": node}, "spec": {"driver": "gpu.example.com", "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}))
}

fn claim(node: &str, device: usize) -> ResourceClaim {
    let name = format!("{node}-{device}");
    let result = json!({"request": "r", "driver": "gpu.example.com", "pool": node, "device": format!("gpu-{device}")});
    let here = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    read(json!({
        "metadata": {"namespace": "ml", "name": name, "uid": format!("claim-{name}"),
            "finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {"reservedFor": [{"resource": "pods", "name": name, "uid": name}], "allocation": {
            "nodeSelector": {"nodeSelectorTerms": [here]}, "devices": {"results": [result]}}},
    }))
}

fn pod(node: &str, device: usize) -> Pod {
    let name = format!("{node}-{device}");
    read(
        json!({"metadata": {"namespace": "ml", "name": name, "uid": name}, "spec": {"containers": [], "nodeName": node,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}}),
    )
}

/// Returns the processor time of the program, in milliseconds.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1_000_000
}

fn main() {
    let expression = "device.attributes['gpu.example.com'].model == 'h100'";
    let class: DeviceClass =
        read(json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}));
    let (classes, selectors) = (Classes::new([class]), SelectorCache::default());
    let given: Vec<usize> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    for count in if given.is_empty() { SIZES.to_vec() } else { given } {
        let names: Vec<String> = (0..count).map(node_name).collect();
        let nodes: Vec<Node> = names.iter().map(|name| read(json!({"metadata": {"name": name}}))).collect();
        let places = || names.iter().flat_map(|node| (0..USED).map(move |device| (node.as_str(), device)));
        let pods: Vec<Pod> = places().map(|(node, device)| pod(node, device)).collect();
        let mut inventory = Inventory::new(names.iter().map(|name| slice(name)));
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        tracker.replace(places().map(|(node, device)| claim(node, device)), None).unwrap();
        let snapshot = ClusterSnapshot::new(&nodes, &pods);
        for detail in [Detail::Off, Detail::Summary] {
            let simulator =
                ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH)
                    .with_explanation(detail);
            let mut times: Vec<u64> = Vec::new();
            let mut removable = 0;
            for _ in 0..REPEATS {
                let begin = processor_time();
                let candidates = names.iter().map(String::as_str);
                let answer = simulator.scale_down(&mut inventory, &tracker, &snapshot, candidates);
                times.push(processor_time() - begin);
                removable = answer.removable.len();
            }
            let ms = times.iter().min();
            println!(
                "{}",
                json!({"case": "scale_down", "nodes": count, "explained": detail != Detail::Off,
                "removable": removable, "ms": ms})
            );
        }
    }
}
