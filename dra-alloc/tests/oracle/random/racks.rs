//! Equal groups of devices (racks, cards with counters, NICs with shares) and claims that need most of them: states of a
//! search come up again in another rack, and searches come near to errors.

use serde_json::{Map, Value, json};

use super::Random;

const DRIVER: &str = "d.example.com";
const GATES: [&str; 4] = ["DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRAConsumableCapacity"];

/// Properties of the devices of a cluster.
struct Style {
    /// Number of devices of a rack.
    rack: usize,
    counters: bool,
    shares: bool,
    /// Percent of the devices whose racks are a list, or lack a value.
    odd: u32,
}

/// Returns the case of a seed, in the layout of the corpus.
pub fn json(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let style = Style {
        rack: random.between(1, 3),
        counters: random.percent(35),
        shares: random.percent(30),
        odd: random.pick(&[0, 0, 10, 30]),
    };
    let mut features: Map<String, Value> = GATES.iter().map(|gate| ((*gate).to_owned(), json!(true))).collect();
    features.insert("DRAListTypeAttributes".to_owned(), json!(random.percent(50)));
    let devices: Vec<Value> = (0..random.between(4, 8)).map(|index| device(random, &style, index)).collect();
    let held: Vec<String> =
        (0..devices.len()).filter(|_| random.percent(8)).map(|index| format!("{DRIVER}/p/dev-{index}")).collect();
    let claims: Vec<Value> = (0..random.pick(&[1, 2, 2, 3])).map(|index| claim(random, &style, index)).collect();
    json!({
        "name": format!("racks {seed}"),
        "profile": random.pick(&["v1.37", "v1.37", "kep"]),
        "features": features,
        "node": {"metadata": {"name": "node-0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": claims,
        "slices": slices(&style, &devices),
        "allocated": {"devices": held, "shared": [], "capacity": {}},
    })
}

fn slices(style: &Style, devices: &[Value]) -> Value {
    let count = if style.counters { 2 } else { 1 };
    let slice = |name: &str, field: &str, value: Value| {
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": count});
        let spec = json!({"driver": DRIVER, "nodeName": "node-0", "pool": pool, field: value});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let mut all = vec![slice("devices", "devices", json!(devices))];
    if style.counters {
        let card = |card| json!({"name": format!("card-{card}"), "counters": {"x": {"value": "2"}}});
        let cards: Vec<Value> = (0..devices.len().div_ceil(style.rack)).map(card).collect();
        all.push(slice("counters", "sharedCounters", json!(cards)));
    }
    Value::Array(all)
}

fn device(random: &mut Random, style: &Style, index: usize) -> Value {
    let rack = index / style.rack;
    let value = if random.percent(style.odd) {
        random.pick(&[json!({"ints": [rack, rack + 1]}), json!({"ints": [rack]}), json!({})])
    } else {
        json!({"int": rack})
    };
    let mut device = json!({"name": format!("dev-{index}"), "attributes": {
        "kind": {"string": random.pick(&["a", "a", "b"])}, "rack": value, "side": {"int": index % style.rack.max(2)},
    }});
    if random.percent(60) {
        device["attributes"]["extra"] = json!({"bool": true});
    }
    if style.counters && random.percent(80) {
        let amount = random.pick(&["1", "1", "2"]);
        let consumed = json!([{"counterSet": format!("card-{rack}"), "counters": {"x": {"value": amount}}}]);
        device["consumesCounters"] = consumed;
    }
    if style.shares {
        device["capacity"] = json!({"m": {"value": random.pick(&["10", "10", "7"])}});
        device["allowMultipleAllocations"] = json!(random.percent(60));
    }
    device
}

fn claim(random: &mut Random, style: &Style, index: usize) -> Value {
    let usual = exactly(random, style);
    let requests: Vec<Value> = (0..random.between(1, 3)).map(|index| request(random, style, &usual, index)).collect();
    let names: Vec<String> = (0..requests.len()).map(|index| format!("r{index}")).collect();
    let constraints: Vec<Value> = (0..random.pick(&[0, 1, 1, 2]))
        .map(|_| {
            let kind = random.pick(&["matchAttribute", "matchAttribute", "distinctAttribute"]);
            let attribute = random.pick(&["rack", "rack", "side"]);
            let requests = if random.percent(50) { Vec::new() } else { random.some(&names, 70) };
            json!({kind: format!("{DRIVER}/{attribute}"), "requests": requests})
        })
        .collect();
    json!({
        "metadata": {"name": format!("claim-{index}"), "namespace": "default", "uid": format!("uid-{index}")},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    })
}

fn request(random: &mut Random, style: &Style, usual: &Value, index: usize) -> Value {
    let name = format!("r{index}");
    if random.percent(20) {
        let alternatives = (0..random.between(1, 3)).map(|index| {
            let mut alternative = exactly(random, style);
            alternative["name"] = json!(format!("x{index}"));
            // Counts around the limit of results.
            if random.percent(10) {
                alternative["count"] = json!(30);
            }
            alternative
        });
        return json!({"name": name, "firstAvailable": alternatives.collect::<Vec<_>>()});
    }
    let exactly = if random.percent(60) { usual.clone() } else { exactly(random, style) };
    json!({"name": name, "exactly": exactly})
}

fn exactly(random: &mut Random, style: &Style) -> Value {
    let mut exactly = json!({"deviceClassName": "any", "allocationMode": "ExactCount"});
    exactly["count"] = json!(random.pick(&[1, 1, 2, 2, 3]));
    // The second selector fails on devices without the attribute.
    let expressions = [
        format!("device.attributes[\"{DRIVER}\"].kind == \"a\""),
        format!("device.attributes[\"{DRIVER}\"].kind == \"b\" || device.attributes[\"{DRIVER}\"].extra"),
    ];
    if random.percent(35) {
        let expression = random.pick(&[&expressions[0], &expressions[0], &expressions[0], &expressions[1]]);
        exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    if random.percent(12) {
        exactly["allocationMode"] = json!("All");
        exactly.as_object_mut().unwrap().remove("count");
    }
    if style.shares && random.percent(60) {
        exactly["capacity"] = json!({"requests": {"m": random.pick(&["3", "5", "6"])}});
    }
    exactly
}
