//! Random pools and devices.

use serde_json::{Map, Value, json};

use super::{EFFECTS, Plan, Random, STANDARD, TAINT_KEYS};

/// Names of pools. Different drivers have pools of one name.
pub const POOLS: [&str; 5] = ["node-0", "net", "rack/1", "node-1", "z"];
const SETS: [&str; 2] = ["set-0", "set-1"];
const COUNTERS: [&str; 2] = ["memory", "slots"];
const BINDING_GATE: &str = "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus";
const GROUPS: [&str; 3] = ["g1", "g2", "g3"];

/// Nodes that a pool is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Node of the case.
    Here,
    /// Another node.
    Elsewhere,
    /// Different nodes for each slice.
    PerSlice,
    /// Different nodes for each device.
    PerDevice,
}

/// Returns all slices of a cluster.
pub fn slices(random: &mut Random, plan: &Plan) -> Vec<Value> {
    let mut all = Vec::new();
    for driver in &plan.drivers {
        let mut names = random.some(&POOLS[1..], if plan.drivers.len() == 1 { 35 } else { 20 });
        if names.is_empty() || plan.crowded || random.percent(60) {
            names.push(POOLS[0]);
        }
        for name in names {
            all.extend(pool(random, plan, driver, name));
        }
    }
    for slice in &mut all {
        // The name decides the order inside a pool.
        slice["metadata"] = json!({"name": format!("slice-{:03}-{:03}", random.below(1000), random.below(1000))});
    }
    all
}

fn pool(random: &mut Random, plan: &Plan, driver: &str, name: &str) -> Vec<Value> {
    let per_device = if plan.has("DRAPartitionableDevices") { 12 } else { 3 };
    let scope = match random.below(100) {
        _ if name == POOLS[0] => Scope::Here,
        0..25 => Scope::Here,
        25..35 => Scope::Elsewhere,
        35..80 => Scope::PerSlice,
        _ if random.percent(per_device * 5) => Scope::PerDevice,
        _ => Scope::Here,
    };
    let counters = !plan.crowded && plan.uses(random, "DRAPartitionableDevices", 45);
    let sets = if counters { random.between(1, 2) } else { 0 };
    let devices = if plan.crowded { random.between(8, 10) } else { random.pick(&[2, 3, 3, 4, 4, 5, 6, 7]) };
    let mut devices: Vec<Value> =
        (0..devices).map(|index| device(random, plan, driver, &SETS[..sets], index, scope)).collect();

    let mut specs = Vec::new();
    while !devices.is_empty() {
        let rest = devices.split_off(random.between(1, devices.len()));
        specs.push(json!({"devices": devices, "perDeviceNodeSelection": (scope == Scope::PerDevice).then_some(true)}));
        devices = rest;
    }
    if random.percent(4) {
        specs.push(json!({"devices": []}));
    }
    if sets > 0 {
        let each: Vec<Value> = SETS[..sets].iter().map(|set| counter_set(random, set)).collect();
        specs.push(json!({"sharedCounters": each}));
    }
    if plan.is_spoilt(random, 6) {
        spoil(random, &mut specs);
    }
    let generation = random.between(1, 3);
    let mut count = specs.len();
    if plan.is_spoilt(random, 8) {
        count = if random.percent(50) { count + 1 } else { count.max(2) - 1 };
    }
    for spec in &mut specs {
        spec["driver"] = json!(driver);
        spec["pool"] = json!({"name": name, "generation": generation, "resourceSliceCount": count});
        if spec["perDeviceNodeSelection"].is_null() {
            set_nodes(random, plan, spec, scope);
        }
        if !plan.crowded && plan.is_spoilt(random, 20) {
            let lists = [json!(["*"]), json!(["NodePrepareResources"]), json!([]), json!(["NodeFuture"]), json!(true)];
            spec["skipNodeOperations"] = random.pick(&lists);
        }
    }
    if random.percent(6) {
        let mut other = random.pick(&specs);
        let newer = plan.is_spoilt(random, 50);
        other["pool"]["generation"] = json!(if newer { generation + 1 } else { generation - 1 });
        specs.push(other);
    }
    specs.into_iter().map(|spec| json!({"spec": spec})).collect()
}

/// Makes a pool invalid.
fn spoil(random: &mut Random, specs: &mut Vec<Value>) {
    let mut copy = random.pick(specs);
    if random.percent(50) {
        // Duplicates devices or counter sets.
        specs.push(copy);
        return;
    }
    if let Some(device) = copy["devices"].get_mut(0) {
        device["name"] = json!("dev-spoilt");
        device["consumesCounters"] = match random.below(2) {
            0 => json!([{"counterSet": "set-9", "counters": {"memory": {"value": "1"}}}]),
            _ => json!([{"counterSet": "set-0", "counters": {"unknown": {"value": "1"}}}]),
        };
        let device = device.clone();
        specs.push(json!({"devices": [device]}));
    }
}

fn set_nodes(random: &mut Random, plan: &Plan, spec: &mut Value, scope: Scope) {
    match scope {
        Scope::Here => spec["nodeName"] = json!("node-0"),
        Scope::Elsewhere => spec["nodeName"] = json!("node-1"),
        Scope::PerSlice | Scope::PerDevice => match random.below(10) {
            0..3 => spec["allNodes"] = json!(true),
            3..5 => spec["nodeName"] = json!(format!("node-{}", random.below(plan.nodes))),
            _ => spec["nodeSelector"] = node_selector(random),
        },
    }
}

fn node_selector(random: &mut Random) -> Value {
    let terms = random.pick(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 2]);
    let terms = (0..terms).map(|_| {
        let expressions: Vec<Value> = (0..random.pick(&[0, 1, 1, 1, 2])).map(|_| requirement(random)).collect();
        let field = json!({
            "key": "metadata.name",
            "operator": random.pick(&["In", "In", "NotIn"]),
            "values": [random.pick(&["node-0", "node-0", "node-1"])],
        });
        let fields = if random.percent(30) { vec![field] } else { Vec::new() };
        json!({"matchExpressions": expressions, "matchFields": fields})
    });
    json!({"nodeSelectorTerms": terms.collect::<Vec<_>>()})
}

fn requirement(random: &mut Random) -> Value {
    let (key, operator, values) = match random.below(20) {
        0..5 => ("region", "In", vec!["west", "east"]),
        5..8 => ("region", "In", vec!["east", "west"]),
        8..10 => ("region", "In", vec!["west"]),
        10..12 => ("region", "NotIn", vec!["north"]),
        12 => ("absent", "NotIn", vec!["x"]),
        13..15 => ("region", "Exists", vec![]),
        15 => ("fast", "Exists", vec![]),
        16 => ("fast", "DoesNotExist", vec![]),
        17..19 => ("cores", "Gt", vec!["7"]),
        _ if random.percent(10) => ("cores", "Gt", vec!["x"]),
        _ => ("cores", "Lt", vec!["16"]),
    };
    json!({"key": key, "operator": operator, "values": values})
}

fn counter_set(random: &mut Random, name: &str) -> Value {
    let counters: Map<String, Value> =
        COUNTERS.iter().map(|name| ((*name).to_owned(), json!({"value": random.between(2, 9).to_string()}))).collect();
    json!({"name": name, "counters": counters})
}

fn device(random: &mut Random, plan: &Plan, driver: &str, sets: &[&str], index: usize, scope: Scope) -> Value {
    let mut device = json!({"name": format!("dev-{index}"), "attributes": attributes(random, plan, driver)});
    if plan.crowded {
        return device;
    }
    if random.percent(40) {
        device["allowMultipleAllocations"] = json!(random.percent(90));
    }
    if random.percent(75) {
        device["capacity"] = capacities(random);
    }
    let consumed: Vec<Value> = random.some(sets, 60).iter().map(|set| consumption(random, set)).collect();
    if !consumed.is_empty() {
        device["consumesCounters"] = json!(consumed);
    }
    if plan.is_spoilt(random, 30) {
        device["taints"] = (0..random.between(1, 2)).map(|_| taint(random)).collect();
    }
    if random.percent(if plan.has(BINDING_GATE) { 10 } else { 3 }) {
        device["bindingConditions"] = json!(["ready"]);
        device["bindingFailureConditions"] = json!(["failed"]);
    }
    if random.percent(5) {
        device["bindsToNode"] = json!(true);
    }
    if scope == Scope::PerDevice {
        let here = if random.percent(50) { Scope::Here } else { Scope::PerDevice };
        set_nodes(random, plan, &mut device, here);
    }
    device
}

/// Returns attributes with few different values, so that they agree by chance. One attribute may be a number, a list or
/// a text.
fn attributes(random: &mut Random, plan: &Plan, driver: &str) -> Value {
    let mut all = Map::new();
    let mut set = |name: String, value: Value| {
        all.insert(name, value);
    };
    if !plan.is_spoilt(random, 15) {
        let one = random.pick(&[0, 0, 0, 1, 1, 2]);
        let value = match random.below(20) {
            0..11 => json!({"int": one}),
            11..16 => json!({"ints": [one, random.below(4)]}),
            16..18 => json!({"ints": [one, one + 1, one]}),
            18 => json!({"string": one.to_string()}),
            _ if random.percent(10) => json!({"ints": []}),
            _ => json!({"strings": [one.to_string(), "1"]}),
        };
        set(format!("{STANDARD}/numaNode"), value);
    }
    if !plan.is_spoilt(random, 25) {
        let value = match random.below(10) {
            0..8 => json!({"string": random.pick(&["pci0", "pci1", "pci2"])}),
            _ => json!({"strings": random.some(&["pci0", "pci1", "pci2"], 70)}),
        };
        if value["strings"] != json!([]) {
            set(format!("{STANDARD}/pcieRoot"), value);
        }
    }
    if random.percent(60) {
        set("model".to_owned(), json!({"string": random.pick(&["a", "b"])}));
    }
    if random.percent(10) {
        set(format!("{driver}/model"), json!({"string": random.pick(&["a", "b"])}));
    }
    if random.percent(40) {
        let value = match random.below(5) {
            0..4 => json!({"version": random.pick(&["1.0.0", "1.10.0", "2.0.0-rc.1"])}),
            _ => json!({"versions": ["1.0.0", "1.10.0"]}),
        };
        set("revision".to_owned(), value);
    }
    if random.percent(40) {
        let value =
            if random.percent(85) { json!({"bool": random.percent(70)}) } else { json!({"bools": [true, false]}) };
        set("healthy".to_owned(), value);
    }
    Value::Object(all)
}

fn capacities(random: &mut Random) -> Value {
    let mut all = Map::new();
    for name in random.some(&["memory", "cores"], 85) {
        let value = random.pick(&["1", "2", "4", "4", "8"]);
        let policy = match random.below(10) {
            0..4 => Value::Null,
            4 => json!({"default": random.pick(&["1", "2", value])}),
            5..7 => json!({"default": "2", "validValues": ["1", "2", "4"]}),
            7 => json!({"default": "1", "validRange": {"min": "1", "max": random.pick(&["3", value])}}),
            8 => json!({"default": "1", "validRange": {"min": "1", "step": "2", "max": value}}),
            _ => json!({"default": "500m", "validRange": {"min": "500m", "step": "250m"}}),
        };
        all.insert(name.to_owned(), json!({"value": value, "requestPolicy": policy}));
    }
    Value::Object(all)
}

fn consumption(random: &mut Random, set: &str) -> Value {
    let counters: Map<String, Value> = random
        .some(&COUNTERS, 70)
        .iter()
        .map(|name| ((*name).to_owned(), json!({"value": random.between(1, 3).to_string()})))
        .collect();
    let groups = if random.percent(20) { random.some(&GROUPS, 60) } else { Vec::new() };
    json!({"counterSet": set, "counters": counters, "compatibilityGroups": groups})
}

pub fn taint(random: &mut Random) -> Value {
    json!({
        "key": random.pick(&TAINT_KEYS),
        "value": random.pick(&["", "x"]),
        "effect": random.pick(&EFFECTS),
    })
}
