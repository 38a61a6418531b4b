//! Claims that compete for few devices and in part ask for all of them under a constraint: whether the search ends in an
//! error depends on what was taken before.

use serde_json::{Value, json};

use super::Random;

const DRIVER: &str = "d.example.com";
const GATES: [&str; 3] = ["DRAAdminAccess", "DRAPrioritizedList", "DRAConsumableCapacity"];

/// Returns the case of a seed, in the layout of the corpus.
pub fn json(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let rack = random.between(1, 3);
    let devices: Vec<Value> = (0..random.between(5, 9)).map(|index| device(random, index, rack)).collect();
    let held: Vec<String> =
        (0..devices.len()).filter(|_| random.percent(5)).map(|index| format!("{DRIVER}/p/dev-{index}")).collect();
    let count = random.between(2, 3);
    // The last claim is the one that asks for all, after others have taken some.
    let claims: Vec<Value> =
        (1..=count).map(|index| claim(random, index, if index == count { 45 } else { 5 })).collect();
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": DRIVER, "nodeName": "node-0", "pool": pool, "devices": devices});
    let mut features: serde_json::Map<String, Value> =
        GATES.iter().map(|gate| ((*gate).to_owned(), json!(true))).collect();
    features.insert("DRAListTypeAttributes".to_owned(), json!(random.percent(50)));
    json!({
        "name": format!("risky {seed}"),
        "profile": random.pick(&["v1.37", "kep"]),
        "features": features,
        "node": {"metadata": {"name": "node-0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": claims,
        "slices": [{"metadata": {"name": "devices"}, "spec": spec}],
        "allocated": {"devices": held, "shared": [], "capacity": {}},
    })
}

fn device(random: &mut Random, index: usize, rack: usize) -> Value {
    let (kind, side) = (random.pick(&["a", "b"]), random.below(3));
    let mut device = json!({"name": format!("dev-{index}"), "attributes": {
        "kind": {"string": kind}, "side": {"int": side}, "rack": {"int": index / rack},
    }});
    if random.percent(5) {
        device["allowMultipleAllocations"] = json!(true);
        device["capacity"] = json!({"m": {"value": "10"}});
    }
    device
}

/// Makes a claim whose alternatives ask for all devices with a probability in percent.
fn claim(random: &mut Random, index: usize, all: u32) -> Value {
    let requests: Vec<Value> = (0..random.between(1, 3)).map(|index| request(random, index, all)).collect();
    let (matched, distinct) = (random.pick(&["side", "rack", "rack"]), format!("{DRIVER}/side"));
    let matched = json!({"matchAttribute": format!("{DRIVER}/{matched}")});
    let constraints = random.pick(&[
        json!([]),
        json!([matched]),
        json!([matched]),
        json!([{"distinctAttribute": distinct}]),
        json!([{"distinctAttribute": distinct, "requests": ["r1"]}]),
    ]);
    json!({
        "metadata": {"name": format!("claim-{index}"), "namespace": "default", "uid": format!("uid-{index}")},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    })
}

fn request(random: &mut Random, index: usize, all: u32) -> Value {
    let name = format!("r{index}");
    if random.percent(50) {
        return json!({"name": name, "exactly": asked(random, all)});
    }
    let alternatives = (0..random.between(1, 3)).map(|index| {
        let mut alternative = asked(random, all);
        alternative["name"] = json!(format!("x{index}"));
        alternative.as_object_mut().unwrap().remove("adminAccess");
        alternative
    });
    json!({"name": name, "firstAvailable": alternatives.collect::<Vec<_>>()})
}

fn asked(random: &mut Random, all: u32) -> Value {
    let mut asked = json!({"deviceClassName": "any", "allocationMode": "ExactCount"});
    if random.percent(all) {
        asked["allocationMode"] = json!("All");
    } else {
        asked["count"] = json!(random.pick(&[1, 1, 2, 3]));
    }
    if random.percent(60) {
        let expression = format!("device.attributes[\"{DRIVER}\"].kind == \"{}\"", random.pick(&["a", "b"]));
        asked["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    if random.percent(4) {
        asked["adminAccess"] = json!(true);
    }
    asked
}
