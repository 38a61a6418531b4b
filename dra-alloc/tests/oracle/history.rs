//! Random histories of clusters: slices that come, change and go, with claims to ask for.
//!
//! The clusters are made to find what is kept wrongly: pools for all nodes, for racks, for label values and for single devices'
//! nodes beside local ones, several generations, many devices in one pool of which most are held, and nodes that are almost
//! alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::{AllocatedState, Classes, Inventory, InventoryEvent};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

use super::random::Random;

pub const DRIVERS: [&str; 3] = ["a-fabric.example.com", "gpu.example.com", "z-fabric.example.com"];

/// Objects of a cluster as plain lists: the model that everything kept is compared with.
#[derive(Default)]
pub struct Model {
    pub slices: Vec<Arc<ResourceSlice>>,
    pub claims: BTreeMap<String, (ResourceClaim, AllocationResult)>,
}

impl Model {
    pub fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned())
    }

    pub fn state(&self) -> AllocatedState {
        let mut state = AllocatedState::default();
        for (claim, allocation) in self.claims.values() {
            state.assume(claim, allocation).unwrap();
        }
        state
    }
}

pub fn node(number: usize) -> Node {
    let labels = json!({"host": format!("node-{number}"), "rack": format!("rack-{}", number / 2), "zone": "z"});
    let labels = if number == 5 { json!({}) } else { labels };
    from_value(json!({"metadata": {"name": format!("node-{number}"), "labels": labels}})).unwrap()
}

fn selector(random: &mut Random) -> Value {
    let number = random.below(5);
    let requirement =
        |key: &str, operator: &str, values: Value| json!({"key": key, "operator": operator, "values": values});
    let host = format!("node-{number}");
    let one = match random.below(8) {
        0 => requirement("host", "In", json!([host, "node-2"])),
        1 => requirement("host", "NotIn", json!([host])),
        2 => json!({"key": "rack", "operator": "Exists"}),
        3 => {
            return json!({"nodeSelectorTerms": [{"matchFields": [requirement("metadata.name", "In", json!([host]))]}]});
        }
        4 => return json!({"nodeSelectorTerms": [{}]}),
        5 if random.percent(5) => requirement("host", "In", json!([])),
        _ => requirement("rack", "In", json!([format!("rack-{}", number / 2)])),
    };
    let mut terms = vec![json!({"matchExpressions": [one]})];
    if random.percent(20) {
        terms.push(json!({"matchExpressions": [requirement("host", "In", json!(["node-1"]))]}));
    }
    json!({"nodeSelectorTerms": terms})
}

/// Fields that say which nodes a slice or a device is for.
fn place(random: &mut Random) -> Value {
    match random.below(6) {
        0 | 1 => json!({"nodeName": format!("node-{}", random.below(5))}),
        2 | 3 => json!({"allNodes": true}),
        _ => json!({"nodeSelector": selector(random)}),
    }
}

fn merge(mut into: Value, from: Value) -> Value {
    if let (Value::Object(into), Value::Object(from)) = (&mut into, from) {
        into.extend(from);
    }
    into
}

fn device(random: &mut Random, number: usize) -> Value {
    let mut device = json!({"name": format!("dev-{number}"), "attributes": {
        "rack": {"int": number / 4}, "model": {"string": random.pick(&["a", "b"])},
    }});
    if random.percent(1) && random.percent(50) {
        device["attributes"]["broken"] = json!({});
    }
    if random.percent(10) {
        device["allowMultipleAllocations"] = json!(true);
        device["capacity"] = json!({"memory": {"value": "8"}});
    }
    if random.percent(3) {
        device["bindingConditions"] = json!(["ready"]);
    }
    device
}

fn slice(random: &mut Random) -> ResourceSlice {
    let (driver, number) = (random.pick(&DRIVERS), random.below(12));
    let is_alone = random.percent(75);
    let pool = if is_alone { format!("pool-{number}") } else { format!("pool-of-many-{}", number % 3) };
    let count = if random.percent(10) { random.between(60, 200) } else { random.between(0, 8) };
    let first = number * 200;
    let mut devices: Vec<Value> = (first..first + count).map(|number| device(random, number)).collect();
    let place = if random.percent(20) {
        for device in &mut devices {
            *device = merge(device.take(), place(random));
        }
        json!({"perDeviceNodeSelection": true})
    } else {
        place(random)
    };
    let slices = if is_alone { 1 } else { random.between(1, 3) };
    let spec = json!({"driver": driver, "devices": devices, "pool": {
        "name": pool, "generation": random.pick(&[1, 1, 1, 2]), "resourceSliceCount": slices,
    }});
    from_value(json!({"metadata": {"name": format!("slice-{number}")}, "spec": merge(spec, place)})).unwrap()
}

pub fn classes() -> Classes {
    let class = |name: &str, expression: &str| -> DeviceClass {
        from_value(json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
            .unwrap()
    };
    let of = |driver: &str| format!("device.driver == '{driver}'");
    Classes::new([
        class("a-fabric", &of(DRIVERS[0])),
        class("gpu", &of(DRIVERS[1])),
        class("z-fabric", &of(DRIVERS[2])),
        class("gpu-a", &format!("device.attributes['{0}'].model == 'a' && {1}", DRIVERS[1], of(DRIVERS[1]))),
        class("any", "true"),
        class("model-b", "device.attributes[device.driver].model == 'b'"),
    ])
}

fn request(random: &mut Random, name: &str) -> Value {
    let class = random.pick(&["a-fabric", "gpu", "gpu", "z-fabric", "gpu-a", "any", "model-b"]);
    let mut asked = json!({"deviceClassName": class, "count": random.pick(&[1, 1, 2, 4, 8])});
    match random.below(20) {
        0 => asked["allocationMode"] = json!("All"),
        1 => asked["adminAccess"] = json!(true),
        2 => asked["selectors"] = json!([{"cel": {"expression": "device.attributes[device.driver].model == 'a'"}}]),
        _ => {}
    }
    if asked["allocationMode"] == "All" {
        asked["count"] = Value::Null;
    }
    if random.percent(15) && asked["adminAccess"].is_null() {
        let other = json!({"name": "other", "deviceClassName": "gpu"});
        return json!({"name": name, "firstAvailable": [merge(json!({"name": "first"}), asked), other]});
    }
    json!({"name": name, "exactly": asked})
}

pub fn claim(random: &mut Random, name: &str) -> ResourceClaim {
    let requests: Vec<Value> =
        (0..random.pick(&[1, 1, 1, 2, 3])).map(|number| request(random, &format!("r{number}"))).collect();
    let constraints = if random.percent(25) {
        let attribute = format!("{}/rack", random.pick(&DRIVERS));
        json!([{"matchAttribute": attribute}])
    } else {
        json!([])
    };
    let spec = json!({"devices": {"requests": requests, "constraints": constraints}});
    from_value(json!({"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec})).unwrap()
}

/// Changes a cluster by one random event, in the model and in what is kept.
pub fn change(random: &mut Random, model: &mut Model, inventory: &mut Inventory) {
    let known = model.slices.len();
    if known > 0 && random.percent(25) {
        let slice = model.slices.remove(random.below(known));
        inventory
            .apply(InventoryEvent::SliceDeleted {
                name: slice.metadata.name.clone().unwrap(),
                uid: slice.metadata.uid.clone(),
            })
            .unwrap();
        return;
    }
    let slice = if known > 0 && random.percent(30) {
        // A driver publishes the next generation, slice by slice.
        let mut slice = (*random.pick(&model.slices)).clone();
        slice.spec.pool.generation += 1;
        Arc::new(slice)
    } else {
        Arc::new(slice(random))
    };
    inventory.apply(InventoryEvent::Slice(Arc::clone(&slice))).unwrap();
    match model.slices.iter_mut().find(|other| other.metadata.name == slice.metadata.name) {
        Some(known) => *known = slice,
        None => model.slices.push(slice),
    }
}
