//! Small clusters for tests, written as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dra_alloc::selector::SelectorCache;
use dra_alloc::skip::SkipField;
use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, GateSet, Inventory, Outcome, Share, Verdict,
};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

/// Input of the allocator, with all gates of Kubernetes 1.37 on.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) slices: Vec<Arc<ResourceSlice>>,
    pub(crate) rules: Vec<Arc<DeviceTaintRule>>,
    pub(crate) classes: Vec<DeviceClass>,
    pub(crate) state: AllocatedState,
    pub(crate) gates: GateSet,
    pub(crate) profile: Profile,
    pub(crate) shares: Arc<AtomicU64>,
}

impl Cluster {
    /// Creates a cluster with a class for each driver, named like the driver up to the first dot.
    pub(crate) fn new(slices: impl IntoIterator<Item = Value>) -> Self {
        let slices: Vec<Arc<ResourceSlice>> =
            slices.into_iter().map(|slice| Arc::new(SkipField::read(slice).unwrap())).collect();
        let mut drivers: Vec<&str> = slices.iter().map(|slice| slice.spec.driver.as_str()).collect();
        drivers.sort_unstable();
        drivers.dedup();
        let classes = drivers.iter().map(|driver| class(driver)).collect();
        let (state, gates, shares) = (AllocatedState::default(), GateSet::all(), Arc::default());
        Self { slices, rules: Vec::new(), classes, state, gates, profile: Profile::V1_37, shares }
    }

    pub(crate) fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned()).with_taint_rules(self.rules.iter().cloned())
    }

    pub(crate) fn try_allocate(&self, node: &Node, claims: &[ResourceClaim]) -> Result<Verdict, AllocateError> {
        let (inventory, selectors) = (self.inventory(), SelectorCache::default());
        let share_ids = |_: Share<'_>| share_id(&self.shares);
        let classes = Classes::new(self.classes.iter().cloned());
        Allocator::new(Component::new(self.profile, self.gates), &inventory, &classes)
            .with_selector_cache(&selectors)
            .with_share_ids(&share_ids)
            .allocate(&self.state, node, claims, Budget::default())
    }

    pub(crate) fn allocate(&self, node_name: &str, claims: &[ResourceClaim]) -> Outcome {
        self.try_allocate(&node(node_name), claims).unwrap().outcome
    }

    /// Allocates `claims` and returns the devices as `request device`; none without a solution.
    pub(crate) fn devices(&self, node_name: &str, claims: &[ResourceClaim]) -> Option<Vec<String>> {
        match self.allocate(node_name, claims) {
            Outcome::Allocated(results) => Some(devices(&results)),
            _ => None,
        }
    }

    /// Allocates one claim after the other and returns the devices of each. A claim without a solution is skipped.
    pub(crate) fn allocate_in_turn(&mut self, node_name: &str, claims: &[ResourceClaim]) -> Vec<Option<Vec<String>>> {
        let mut answers = Vec::new();
        for claim in claims {
            let outcome = self.allocate(node_name, std::slice::from_ref(claim));
            if let Outcome::Allocated(results) = &outcome {
                let mut holder = claim.clone();
                holder.metadata.uid = Some(self.state.claims().count().to_string());
                self.state.assume(&holder, &results[0]).unwrap();
            }
            answers.push(match outcome {
                Outcome::Allocated(results) => Some(devices(&results)),
                _ => None,
            });
        }
        answers
    }
}

/// Returns the next of the numbered share IDs.
pub(crate) fn share_id(shares: &AtomicU64) -> String {
    format!("00000000-0000-0000-0000-{:012x}", shares.fetch_add(1, Ordering::Relaxed) + 1)
}

pub(crate) fn devices(results: &[AllocationResult]) -> Vec<String> {
    let all = results.iter().flat_map(|result| result.devices.as_ref().unwrap().results.iter().flatten());
    all.map(|device| format!("{} {}", device.request, device.device)).collect()
}

pub(crate) fn class(driver: &str) -> DeviceClass {
    let name = driver.split('.').next().unwrap();
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
    from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).unwrap()
}

pub(crate) fn node(name: &str) -> Node {
    let features = json!({"declaredFeatures": ["DRAOptionalNodeOperations", "DraOptionalNodePreparation"]});
    from_value(json!({"metadata": {"name": name, "labels": {"name": name}}, "status": features})).unwrap()
}

/// Creates the slice of a pool with one slice; the pool has the name of its node.
pub(crate) fn pool(driver: &str, node: &str, devices: Value) -> Value {
    json!({
        "metadata": {"name": format!("{node}-{driver}")},
        "spec": {
            "driver": driver, "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        },
    })
}

/// Returns the object with another value for a field of `spec`.
pub(crate) fn with(mut object: Value, field: &str, value: Value) -> Value {
    object["spec"][field] = value;
    object
}

/// Creates a device with one attribute.
pub(crate) fn device(name: &str, attribute: &str, value: Value) -> Value {
    json!({"name": name, "attributes": {attribute: value}})
}

/// Creates a request for one device of a class, with further fields.
pub(crate) fn request(name: &str, class: &str, fields: Value) -> Value {
    let mut exactly = json!({"deviceClassName": class});
    exactly.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"name": name, "exactly": exactly})
}

pub(crate) fn claim(name: &str, requests: Value, constraints: Value) -> ResourceClaim {
    let devices = json!({"requests": requests, "constraints": constraints});
    from_value(json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}})).unwrap()
}

pub(crate) const NUMA: &str = "resource.kubernetes.io/numaNode";
pub(crate) const ROOT: &str = "resource.kubernetes.io/pcieRoot";

/// Creates a device with a scalar or list of NUMA nodes.
pub(crate) fn on_numa(name: &str, nodes: &[i64]) -> Value {
    device(name, NUMA, if let [node] = nodes { json!({"int": node}) } else { json!({"ints": nodes}) })
}

/// Creates a claim for one device of each class, which must have equal values of an attribute.
pub(crate) fn together(name: &str, classes: &[&str], attribute: &str) -> ResourceClaim {
    let requests: Vec<Value> = classes.iter().map(|class| request(class, class, json!({}))).collect();
    claim(name, json!(requests), json!([{"matchAttribute": attribute}]))
}
