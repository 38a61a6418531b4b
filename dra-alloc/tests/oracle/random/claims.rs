//! Random classes and claims.

use serde_json::{Map, Value, json};

use super::expressions::derived;
use super::{DRIVERS, EFFECTS, Plan, Random, STANDARD, TAINT_KEYS, expression};

/// Name of the derived attribute.
const DERIVED: &str = "derived/key";

pub fn classes(random: &mut Random, plan: &Plan) -> Value {
    let mut all = vec![class(random, "any", Vec::new())];
    for driver in DRIVERS {
        all.push(class(random, driver, vec![format!("device.driver == \"{driver}\"")]));
    }
    let some = if plan.crowded { "true".to_owned() } else { expression(random) };
    all.push(class(random, "some", vec![some]));
    Value::Array(all)
}

fn class(random: &mut Random, name: &str, expressions: Vec<String>) -> Value {
    let configs = random.pick(&[0, 0, 1, 2]);
    let configs: Vec<Value> = (0..configs).map(|index| opaque(&format!("{name}-{index}"))).collect();
    json!({"metadata": {"name": name}, "spec": {"selectors": selectors(expressions), "config": configs}})
}

fn opaque(parameters: &str) -> Value {
    json!({"opaque": {"driver": DRIVERS[0], "parameters": {"of": parameters}}})
}

fn selectors(expressions: Vec<String>) -> Value {
    expressions.into_iter().map(|expression| json!({"cel": {"expression": expression}})).collect()
}

pub fn claims(random: &mut Random, plan: &Plan) -> Value {
    let count = random.pick(&[1, 1, 1, 1, 2, 2, 3]);
    (0..count).map(|index| claim(random, plan, index)).collect()
}

fn claim(random: &mut Random, plan: &Plan, index: usize) -> Value {
    let count = random.pick(&[1, 2, 2, 2, 3]);
    let derives = plan.uses(random, "DRADerivedAttributes", 30);
    let requests: Vec<Value> = (0..count).map(|index| request(random, plan, derives, index)).collect();
    let names = names(&requests);
    let constraints: Vec<Value> =
        (0..random.pick(&[0, 0, 1, 1, 1, 1, 2])).map(|_| constraint(random, plan, derives, &names)).collect();
    let configs: Vec<Value> = (0..random.pick(&[0, 0, 1, 2])).map(|index| config(random, &names, index)).collect();
    json!({
        "metadata": {"name": format!("claim-{index}"), "namespace": "default", "uid": format!("uid-{index}")},
        "spec": {"devices": {"requests": requests, "constraints": constraints, "config": configs}},
    })
}

/// Returns the names of requests and of their alternatives.
fn names(requests: &[Value]) -> Vec<String> {
    let mut all = Vec::new();
    for request in requests {
        let name = request["name"].as_str().unwrap();
        all.push(name.to_owned());
        let list = request["firstAvailable"].as_array().into_iter().flatten();
        all.extend(list.map(|sub| format!("{name}/{}", sub["name"].as_str().unwrap())));
    }
    all
}

fn constraint(random: &mut Random, plan: &Plan, derives: bool, names: &[String]) -> Value {
    let own = format!("{}/{}", random.pick(&plan.drivers), random.pick(&["model", "healthy", "revision"]));
    let attribute = match random.below(20) {
        _ if derives && random.percent(60) => DERIVED.to_owned(),
        0..12 => format!("{STANDARD}/numaNode"),
        12..18 => format!("{STANDARD}/pcieRoot"),
        18 => own,
        _ => DERIVED.to_owned(),
    };
    let requests = if random.percent(50) { Vec::new() } else { random.some(names, 50) };
    match random.below(100) {
        0..60 => json!({"matchAttribute": attribute, "requests": requests}),
        _ if random.percent(98) => json!({"distinctAttribute": attribute, "requests": requests}),
        _ => json!({"requests": requests}),
    }
}

fn config(random: &mut Random, names: &[String], index: usize) -> Value {
    let mut config = opaque(&format!("claim-{index}"));
    config["requests"] = json!(random.some(names, 40));
    config
}

fn request(random: &mut Random, plan: &Plan, derives: bool, index: usize) -> Value {
    let name = format!("req-{index}");
    if plan.uses(random, "DRAPrioritizedList", 25) {
        let subs = (0..random.between(1, 3)).map(|index| {
            let mut sub = ask(random, plan, derives);
            sub["name"] = json!(format!("sub-{index}"));
            sub
        });
        return json!({"name": name, "firstAvailable": subs.collect::<Vec<_>>()});
    }
    let mut exactly = ask(random, plan, derives);
    if plan.uses(random, "DRAAdminAccess", 10) {
        exactly["adminAccess"] = json!(random.percent(80));
    }
    json!({"name": name, "exactly": exactly})
}

/// Returns the fields that requests and alternatives share.
fn ask(random: &mut Random, plan: &Plan, derives: bool) -> Value {
    let class = match random.below(100) {
        0..55 => "any",
        55..88 => random.pick(&plan.drivers),
        _ if random.percent(97) => "some",
        _ => "missing",
    };
    let (mode, count) = match random.below(200) {
        0..180 => ("ExactCount", Some(count(random, plan))),
        _ if random.percent(98) => ("All", None),
        _ => ("Future", None),
    };
    let selectors: Vec<String> = (0..random.pick(&[0, 0, 0, 0, 0, 1, 1, 2])).map(|_| expression(random)).collect();
    let mut ask = json!({
        "deviceClassName": class,
        "allocationMode": mode,
        "count": count,
        "selectors": self::selectors(if plan.crowded { Vec::new() } else { selectors }),
        "tolerations": tolerations(random),
    });
    if plan.uses(random, "DRAConsumableCapacity", 25) {
        ask["capacity"] = json!({"requests": amounts(random)});
    }
    if derives && random.percent(95) {
        ask["derivedAttributes"] = json!([{"name": DERIVED, "expression": derived(random)}]);
    }
    ask
}

fn count(random: &mut Random, plan: &Plan) -> usize {
    if plan.crowded { random.between(4, 33) } else { random.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 3]) }
}

fn amounts(random: &mut Random) -> Map<String, Value> {
    let names = random.some(&["memory", "cores"], 50);
    let mut all = Map::new();
    for name in names {
        let amount = match random.below(100) {
            0..80 => random.pick(&["0", "1", "2", "3", "4"]),
            80..98 => random.pick(&["500m", "700m", "1500m"]),
            _ => random.pick(&["-1", "100E", "1u"]),
        };
        all.insert(name.to_owned(), json!(amount));
    }
    if random.percent(3) {
        all.insert("bandwidth".to_owned(), json!("1"));
    }
    all
}

fn tolerations(random: &mut Random) -> Option<Vec<Value>> {
    if random.percent(60) {
        return None;
    }
    let one = |random: &mut Random| {
        json!({
            "key": random.percent(60).then(|| random.pick(&TAINT_KEYS)),
            "operator": random.pick(&["Exists", "Exists", "Exists", "Equal", "Future"]),
            "value": random.percent(30).then_some("x"),
            "effect": random.percent(40).then(|| random.pick(&EFFECTS)),
        })
    };
    Some((0..random.between(1, 2)).map(|_| one(random)).collect())
}
