//! Small node whose devices and claims are given in few words.

use dra_alloc::objective::{Objective, Score};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Outcome, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

pub(super) const GPU: &str = "gpu.example.com";
pub(super) const NIC: &str = "nic.example.com";
pub(super) const ROOT: &str = "resource.kubernetes.io/pcieRoot";

/// Returns a device with a PCI root.
pub(super) fn at_root(name: &str, root: usize) -> Value {
    json!({"name": name, "attributes": {ROOT: {"string": format!("pci{root:04}")}}})
}

/// Returns a device that takes a slot of a card.
pub(super) fn on_card(name: &str, card: &str) -> Value {
    let counters = json!([{"counterSet": card, "counters": {"slots": {"value": "1"}}}]);
    json!({"name": name, "consumesCounters": counters})
}

/// Node with devices, some of them in use.
pub(super) struct Cluster {
    slices: Vec<ResourceSlice>,
    pub(super) state: AllocatedState,
}

impl Cluster {
    /// Builds a node with pools: driver, name and devices of each. Pools with cards have two slots for each.
    pub(super) fn new(pools: &[(&str, &str, Vec<Value>)]) -> Self {
        let mut slices = Vec::new();
        for (driver, name, devices) in pools {
            let cards: std::collections::BTreeSet<&str> =
                devices.iter().filter_map(|device| device["consumesCounters"][0]["counterSet"].as_str()).collect();
            let sets = cards.iter().map(|card| json!({"name": card, "counters": {"slots": {"value": "2"}}}));
            let sets: Vec<Value> = sets.collect();
            let count = 1 + usize::from(!sets.is_empty());
            let mut add = |part: &str, field: &str, list: Value| {
                let pool = json!({"name": name, "generation": 1, "resourceSliceCount": count});
                let spec = json!({"driver": driver, "nodeName": "n", "pool": pool, field: list});
                let metadata = json!({"name": format!("{driver}-{name}-{part}")});
                slices.push(from_value(json!({"metadata": metadata, "spec": spec})).unwrap());
            };
            add("devices", "devices", json!(devices));
            if !sets.is_empty() {
                add("counters", "sharedCounters", json!(sets));
            }
        }
        Self { slices, state: AllocatedState::default() }
    }

    pub(super) fn hold(mut self, device: &str) -> Self {
        self.state.hold(&device.parse::<DeviceId>().unwrap());
        self
    }

    /// Returns the names of the devices that a claim gets, as `pool/device`, with the score.
    pub(super) fn ask(&self, requests: &Value, objective: &Objective) -> (Vec<String>, Option<Box<Score>>) {
        let class = |name: &str, driver: &str| -> DeviceClass {
            let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
            from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).unwrap()
        };
        let claim: ResourceClaim =
            from_value(json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})).unwrap();
        let node: Node = from_value(json!({"metadata": {"name": "n"}})).unwrap();
        let (inventory, classes) =
            (Inventory::new(self.slices.iter().cloned()), Classes::new([class("gpu", GPU), class("nic", NIC)]));
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_objective(objective);
        let verdict = allocator.allocate(&self.state, &node, [&claim], Budget::default()).unwrap();
        let Outcome::Allocated(results) = verdict.outcome else { panic!("not allocated: {:?}", verdict.outcome) };
        let devices = results.iter().flat_map(|result| result.devices.iter().flat_map(|devices| &devices.results));
        let name = |result: &k8s_openapi::api::resource::v1::DeviceRequestAllocationResult| {
            format!("{}/{}", result.pool, result.device)
        };
        (devices.flatten().map(name).collect(), verdict.score)
    }
}

/// Returns a request for some devices of a class.
pub(super) fn request(name: &str, class: &str, count: usize) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": class, "count": count}})
}
