//! Small pools and requests that are nearly interchangeable: a search backtracks most of the time, and apparent
//! symmetries are often none.

use serde_json::{Map, Value, json};

use super::Random;

const DRIVER: &str = "d.example.com";
const GATES: [&str; 4] = ["DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRAConsumableCapacity"];

/// Amounts that devices consume of a counter, if there is one. Negative amounts give back.
const AMOUNTS: [&[&str]; 4] = [&[], &[], &["0", "1", "1", "2"], &["0", "1", "2", "-1", "-1"]];

/// Special properties of a case.
struct Style {
    values: bool,
    capacity: bool,
    amounts: &'static [&'static str],
}

/// Returns the case of a seed, in the layout of the corpus.
pub fn json(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let style = Style { values: random.percent(60), capacity: random.percent(50), amounts: random.pick(&AMOUNTS) };
    let mut features: Map<String, Value> = GATES.iter().map(|gate| ((*gate).to_owned(), json!(true))).collect();
    if random.percent(50) {
        features.insert("DRAListTypeAttributes".to_owned(), json!(true));
    }
    let devices: Vec<Value> = (0..random.between(3, 6)).map(|index| device(random, &style, index)).collect();
    let allocated = allocated(random, &style, &devices);
    let claims: Vec<Value> = (0..random.pick(&[1, 1, 1, 2])).map(|index| claim(random, &style, index)).collect();
    json!({
        "name": format!("tight {seed}"),
        "profile": random.pick(&["v1.37", "kep"]),
        "features": features,
        "node": {"metadata": {"name": "node-0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": claims,
        "slices": slices(random, &style, &devices),
        "allocated": allocated,
    })
}

fn slices(random: &mut Random, style: &Style, devices: &[Value]) -> Value {
    let slice = |name: &str| {
        let pool =
            json!({"name": "p", "generation": 1, "resourceSliceCount": if style.amounts.is_empty() { 1 } else { 2 }});
        let mut slice = json!({"metadata": {"name": name}, "spec": {"driver": DRIVER, "nodeName": "node-0"}});
        slice["spec"]["pool"] = pool;
        slice
    };
    let mut all = vec![slice("devices")];
    all[0]["spec"]["devices"] = json!(devices);
    if !style.amounts.is_empty() {
        let mut counters = slice("counters");
        let left = random.between(0, 5).to_string();
        counters["spec"]["sharedCounters"] = json!([{"name": "s", "counters": {"x": {"value": left}}}]);
        all.push(counters);
    }
    Value::Array(all)
}

fn device(random: &mut Random, style: &Style, index: usize) -> Value {
    let mut device =
        json!({"name": format!("dev-{index}"), "attributes": {"kind": {"string": random.pick(&["a", "b"])}}});
    if style.values && random.percent(90) {
        device["attributes"]["value"] = random.pick(&[
            json!({"string": "x"}),
            json!({"string": "x"}),
            json!({"string": "y"}),
            json!({"strings": ["x", "y"]}),
            json!({"strings": ["z"]}),
            json!({"strings": ["w", "z"]}),
            json!({"strings": ["u", "w", "y"]}),
        ]);
    }
    if style.capacity && random.percent(90) {
        device["capacity"] = json!({"m": {"value": random.pick(&["5", "10", "10"])}});
        device["allowMultipleAllocations"] = json!(random.percent(15));
    }
    if !style.amounts.is_empty() && random.percent(90) {
        let amount = random.pick(style.amounts);
        device["consumesCounters"] = json!([{"counterSet": "s", "counters": {"x": {"value": amount}}}]);
    }
    device
}

/// Returns devices in use: some exclusively, some partly, independently of whether they are shareable now.
fn allocated(random: &mut Random, style: &Style, devices: &[Value]) -> Value {
    let (mut held, mut shared, mut capacity) = (Vec::new(), Vec::new(), Map::new());
    for device in devices {
        let key = format!("{DRIVER}/p/{}", device["name"].as_str().unwrap());
        match random.below(100) {
            0..8 => held.push(key),
            8..35 if style.capacity => {
                shared.push(format!("{key}/share"));
                capacity.insert(key, json!({"m": random.pick(&["0", "3", "5"])}));
            }
            _ => {}
        }
    }
    json!({"devices": held, "shared": shared, "capacity": capacity})
}

fn claim(random: &mut Random, style: &Style, index: usize) -> Value {
    let usual = exactly(random, style);
    let requests: Vec<Value> = (0..random.between(1, 4)).map(|index| request(random, style, &usual, index)).collect();
    let names: Vec<String> = (0..requests.len()).map(|index| format!("r{index}")).collect();
    let mut constraints = Vec::new();
    if style.values && random.percent(70) {
        let kind = random.pick(&["matchAttribute", "distinctAttribute"]);
        let requests = if random.percent(60) { Vec::new() } else { random.some(&names, 70) };
        constraints.push(json!({kind: format!("{DRIVER}/value"), "requests": requests}));
    }
    json!({
        "metadata": {"name": format!("claim-{index}"), "namespace": "default", "uid": format!("uid-{index}")},
        "spec": {"devices": {"requests": requests, "constraints": constraints}},
    })
}

fn request(random: &mut Random, style: &Style, usual: &Value, index: usize) -> Value {
    let name = format!("r{index}");
    if random.percent(15) {
        let alternatives = (0..random.between(1, 2)).map(|index| {
            let mut alternative = exactly(random, style);
            alternative["name"] = json!(format!("x{index}"));
            alternative
        });
        return json!({"name": name, "firstAvailable": alternatives.collect::<Vec<_>>()});
    }
    let exactly = if random.percent(60) { usual.clone() } else { exactly(random, style) };
    json!({"name": name, "exactly": exactly})
}

fn exactly(random: &mut Random, style: &Style) -> Value {
    let mut exactly = json!({"deviceClassName": "any", "allocationMode": "ExactCount"});
    exactly["count"] = json!(random.pick(&[1, 1, 1, 2]));
    if random.percent(40) {
        let expression = format!("device.attributes[\"{DRIVER}\"].kind == \"{}\"", random.pick(&["a", "b"]));
        exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
    }
    if style.capacity && random.percent(60) {
        exactly["capacity"] = json!({"requests": {"m": random.pick(&["3", "5", "10"])}});
    }
    exactly
}
