//! Many small pools of partitions that differ in few things: what is in use, the numbers of their counters, compatibility groups,
//! capacities with policies, and now and then an attribute that a selector misses.

use serde_json::{Map, Value, json};

use super::Random;

const DRIVER: &str = "d.example.com";
const GATES: [&str; 4] = ["DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRAConsumableCapacity"];
const SOME_GATES: [&str; 3] = ["DRADeviceCompatibilityGroups", "DRAFractionalCapacityRange", "DRADeviceTaints"];
const COUNTERS: [&str; 3] = ["x", "y", "z"];

/// Returns the case of a seed, in the layout of the corpus.
pub(super) fn json(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let mut features: Map<String, Value> = GATES.iter().map(|gate| ((*gate).to_owned(), json!(true))).collect();
    features.extend(random.some(&SOME_GATES, 60).into_iter().map(|gate| (gate.to_owned(), json!(true))));
    let kinds: Vec<(Vec<Value>, Value)> = (0..random.between(1, 4)).map(|_| kind(random)).collect();
    let (mut slices, mut held, mut shared, mut capacity) = (Vec::new(), Vec::new(), Vec::new(), Map::new());
    let is_busy = random.pick(&[5, 20, 60]);
    for number in 0..random.between(14, 26) {
        let (mut devices, sets) = random.pick(&kinds);
        for device in &mut devices {
            device["attributes"]["slice"] = json!({"int": number});
            if !random.percent(is_busy) {
                spoil(random, device);
                continue;
            }
            let key = format!("{DRIVER}/p-{number}/{}", device["name"].as_str().unwrap());
            if device["allowMultipleAllocations"] == json!(true) {
                shared.push(format!("{key}/share"));
                capacity.insert(key, json!({"m": random.pick(&["0", "3", "5"])}));
            } else {
                held.push(key);
            }
        }
        slices.extend(pool(random, number, &devices, &sets));
    }
    let claims: Vec<Value> = (0..random.pick(&[1, 1, 1, 2])).map(|index| claim(random, index)).collect();
    json!({
        "name": format!("partitioned {seed}"),
        "profile": "v1.37",
        "features": features,
        "node": {"metadata": {"name": "node-0", "labels": {"zone": "z"}}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": claims,
        "slices": slices,
        "allocated": {"devices": held, "shared": shared, "capacity": capacity},
    })
}

/// Devices of a kind of pools, and their counter sets.
fn kind(random: &mut Random) -> (Vec<Value>, Value) {
    let sets: Vec<&str> = if random.percent(70) { vec!["s"] } else { vec!["s", "t"] };
    let amount = |random: &mut Random, amounts: &[&str]| json!({"value": random.pick(amounts)});
    let counters = |random: &mut Random, share: u32, amounts: &[&str]| -> Map<String, Value> {
        let named = random.some(&COUNTERS, share);
        named.into_iter().map(|name| (name.to_owned(), amount(random, amounts))).collect()
    };
    let is_grouped = random.percent(25);
    let mut device = |number: usize| {
        let mut device = json!({"name": format!("dev-{number}"),
            "attributes": {"kind": {"string": random.pick(&["a", "a", "b"])}, "half": {"int": number / 2}}});
        if random.percent(90) {
            let consumed = random.some(&sets, 80).into_iter().map(|set| {
                let mut consumed = json!({"counterSet": set, "counters": counters(random, 60, &["0", "1", "1", "2"])});
                if is_grouped && random.percent(70) {
                    consumed["compatibilityGroups"] = json!(random.some(&["g", "h"], 70));
                }
                consumed
            });
            device["consumesCounters"] = Value::Array(consumed.collect());
        }
        if random.percent(40) {
            device["allowMultipleAllocations"] = json!(random.percent(50));
            device["capacity"] = json!({"m": {"value": random.pick(&["5", "10"]), "requestPolicy": policy(random)}});
        }
        device
    };
    let devices = (0..4).map(&mut device).collect();
    let set = |random: &mut Random, name: &str| {
        let counters: Map<String, Value> =
            COUNTERS.iter().map(|name| ((*name).to_owned(), amount(random, &["1", "2", "3"]))).collect();
        json!({"name": name, "counters": counters})
    };
    let sets = sets.iter().map(|name| set(random, name)).collect();
    (devices, sets)
}

fn policy(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"default": "3", "validRange": {"min": "1", "step": "2"}}),
        1 => json!({"validRange": {"min": "500m", "step": "250m", "max": "8"}}),
        2 => json!({"validValues": ["1", "4", "5"], "default": "4"}),
        _ => Value::Null,
    }
}

/// Adds an error, or something that refuses a device. Amounts stay quantities: no cluster has other ones.
fn spoil(random: &mut Random, device: &mut Value) {
    match random.below(400) {
        0..4 => drop(device["attributes"].as_object_mut().unwrap().remove("kind")),
        4..9 => device["taints"] = json!([{"key": "unhealthy", "effect": "NoSchedule"}]),
        9..12 => device["bindingConditions"] = json!(["ready"]),
        12..17 => drop(device["attributes"].as_object_mut().unwrap().remove("slice")),
        _ => {}
    }
}

fn pool(random: &mut Random, number: usize, devices: &[Value], sets: &Value) -> [Value; 2] {
    let place = random.pick(&["all", "all", "all", "zone", "node"]);
    ["devices", "counters"].map(|part| {
        let mut spec = json!({"driver": DRIVER, "pool": {"name": format!("p-{number}"), "generation": 1, "resourceSliceCount": 2}});
        let field = if part == "devices" { "devices" } else { "sharedCounters" };
        spec[field] = if part == "devices" { json!(devices) } else { sets.clone() };
        match place {
            "all" => spec["allNodes"] = json!(true),
            "zone" => {
                spec["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["z"]}]}]});
            }
            _ => spec["nodeName"] = json!("node-0"),
        }
        json!({"metadata": {"name": format!("{part}-{number}")}, "spec": spec})
    })
}

/// Returns a claim that two or three devices of a pool serve, mostly.
pub(super) fn claim(random: &mut Random, index: usize) -> Value {
    let requests: Vec<Value> = (0..random.pick(&[1, 1, 2, 3])).map(|index| request(random, index)).collect();
    let attribute = random.pick(&["slice", "slice", "half", "kind"]);
    let kind = if random.percent(85) { "matchAttribute" } else { "distinctAttribute" };
    let constraints = if random.percent(80) { json!([{kind: format!("{DRIVER}/{attribute}")}]) } else { json!([]) };
    json!({
        "metadata": {"name": format!("claim-{index}"), "namespace": "default", "uid": format!("uid-{index}")},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    })
}

fn request(random: &mut Random, index: usize) -> Value {
    let mut exactly =
        json!({"deviceClassName": "any", "allocationMode": "ExactCount", "count": random.pick(&[1, 2, 2, 3])});
    let expressions = [
        format!("device.attributes[\"{DRIVER}\"].kind == \"a\""),
        format!("!(device.attributes[\"{DRIVER}\"].kind != \"a\")"),
        format!("device.capacity[\"{DRIVER}\"].m.compareTo(quantity(\"5\")) >= 0"),
    ];
    if random.percent(60) {
        let known = if random.percent(90) { 2 } else { 3 };
        exactly["selectors"] = json!([{"cel": {"expression": random.pick(&expressions[..known])}}]);
    }
    if random.percent(25) {
        exactly["capacity"] = json!({"requests": {"m": random.pick(&["1", "1500m", "4", "7"])}});
    }
    if random.percent(5) {
        exactly["adminAccess"] = json!(true);
    }
    if random.percent(3) {
        exactly.as_object_mut().unwrap().remove("count");
        exactly["allocationMode"] = json!("All");
    }
    json!({"name": format!("r{index}"), "exactly": exactly})
}
