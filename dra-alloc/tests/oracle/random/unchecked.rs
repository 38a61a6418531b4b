//! Requests for several devices under `distinctAttribute` while list-typed attributes are off: the first device of a
//! constraint may have a list, which is not checked, and a later one may not. So the order of devices matters.

use serde_json::{Value, json};

use super::Random;

const DRIVER: &str = "d.example.com";

/// Returns the case of a seed, in the layout of the corpus.
pub fn json(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let listed = random.pick(&[20, 40, 60]);
    let devices: Vec<Value> = (0..random.between(4, 8)).map(|index| device(random, listed, index)).collect();
    let claims: Vec<Value> = (0..random.pick(&[1, 1, 2])).map(|index| claim(random, index)).collect();
    json!({
        "name": format!("unchecked {seed}"),
        "profile": random.pick(&["v1.37", "v1.37", "kep"]),
        "features": {"DRAPrioritizedList": true, "DRAListTypeAttributes": random.percent(5)},
        "node": {"metadata": {"name": "node-0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": claims,
        "slices": [{"metadata": {"name": "devices"}, "spec": {
            "driver": DRIVER, "nodeName": "node-0", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        }}],
        "allocated": {"devices": [], "shared": [], "capacity": {}},
    })
}

fn device(random: &mut Random, listed: u32, index: usize) -> Value {
    let value = if random.percent(listed) {
        json!({"strings": ["x", "y"]})
    } else {
        json!({"string": random.pick(&["x", "y", "z"])})
    };
    let attributes = json!({"kind": {"string": random.pick(&["a", "a", "b"])}, "value": value});
    json!({"name": format!("dev-{index}"), "attributes": attributes})
}

fn claim(random: &mut Random, index: usize) -> Value {
    let requests: Vec<Value> = (0..random.between(1, 4)).map(|index| request(random, index)).collect();
    let names: Vec<String> = (0..requests.len()).map(|index| format!("r{index}")).collect();
    let constraint = |random: &mut Random| {
        let kind = random.pick(&["distinctAttribute", "distinctAttribute", "distinctAttribute", "matchAttribute"]);
        json!({kind: format!("{DRIVER}/value"), "requests": random.some(&names, 60)})
    };
    let constraints: Vec<Value> = (0..random.pick(&[1, 1, 2])).map(|_| constraint(random)).collect();
    json!({
        "metadata": {"name": format!("claim-{index}"), "namespace": "default", "uid": format!("uid-{index}")},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    })
}

fn request(random: &mut Random, index: usize) -> Value {
    let name = format!("r{index}");
    if !random.percent(15) {
        return json!({"name": name, "exactly": asked(random)});
    }
    let alternatives = (0..2).map(|index| {
        let mut asked = asked(random);
        asked["name"] = json!(format!("x{index}"));
        asked
    });
    json!({"name": name, "firstAvailable": alternatives.collect::<Vec<_>>()})
}

fn asked(random: &mut Random) -> Value {
    let mut asked = json!({"deviceClassName": "any", "allocationMode": "ExactCount"});
    asked["count"] = json!(random.pick(&[1, 1, 2, 2, 3]));
    if random.percent(30) {
        let expression = format!("device.attributes[\"{DRIVER}\"].kind == \"{}\"", random.pick(&["a", "b"]));
        asked["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    asked
}
