//! Random cases: small clusters in which a request is just possible, or just impossible.

mod claims;
mod expressions;
mod partitioned;
mod racks;
mod risky;
mod slices;
mod tight;
mod unchecked;

use dra_attrs::Quantity;
use serde_json::{Map, Value, json};

use super::Case;

pub use slices::taint;

/// Reserved domain, and the drivers.
pub const STANDARD: &str = "resource.kubernetes.io";
pub const DRIVERS: [&str; 3] = ["cpu.example.com", "gpu.example.com", "nic.example.com"];
pub const TAINT_KEYS: [&str; 2] = ["unhealthy", "maintenance"];
pub const EFFECTS: [&str; 4] = ["NoSchedule", "NoExecute", "None", "Future"];

/// Gates with the probability that each is on, in percent.
const GATES: [(&str, u32); 11] = [
    ("DRAAdminAccess", 90),
    ("DRAPrioritizedList", 95),
    ("DRADeviceTaints", 85),
    ("DRAPartitionableDevices", 90),
    ("DRAConsumableCapacity", 85),
    ("DRADeviceBindingConditions+DRAResourceClaimDeviceStatus", 85),
    ("DRAListTypeAttributes", 80),
    ("DRAOptionalNodeOperations", 80),
    ("DRADerivedAttributes", 85),
    ("DRADeviceCompatibilityGroups", 75),
    ("DRAFractionalCapacityRange", 50),
];

/// Random number generator: splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    /// Returns a number from `first` to `last`.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Returns true with a probability in percent.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.next() % 100 < u64::from(percent)
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Returns each element with a probability in percent, in their order.
    pub fn some<T: Clone>(&mut self, from: &[T], percent: u32) -> Vec<T> {
        from.iter().filter(|_| self.percent(percent)).cloned().collect()
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

/// Properties that the parts of a case share.
#[derive(Clone, Debug)]
pub struct Plan {
    pub drivers: Vec<&'static str>,
    pub nodes: usize,
    gates: Map<String, Value>,
    /// True for many plain devices, near the limits.
    pub crowded: bool,
    /// Frequency of obstacles to allocation, in percent of the maximum.
    noise: u32,
}

impl Plan {
    pub fn has(&self, gate: &str) -> bool {
        self.gates.get(gate).is_some()
    }

    /// Returns true if a gated feature is to be used: often if its gate is on, and seldom if it is off, since that is
    /// an error.
    pub fn uses(&self, random: &mut Random, gate: &str, percent: u32) -> bool {
        random.percent(if self.has(gate) { percent } else { 1 })
    }

    /// Returns true if an obstacle to allocation is to be added.
    pub fn is_spoilt(&self, random: &mut Random, percent: u32) -> bool {
        random.next() % 10_000 < u64::from(percent * self.noise)
    }
}

/// Returns a random selector.
pub fn expression(random: &mut Random) -> String {
    expressions::selector(random)
}

/// Returns the case of a seed.
pub fn case(seed: u64) -> Case {
    Case::from_json(json(seed))
}

/// Returns the case of a seed in which devices and requests are nearly interchangeable.
pub fn tight(seed: u64) -> Case {
    Case::from_json(tight::json(seed))
}

/// Returns the case of a seed with many small pools of partitions that are nearly alike.
pub fn partitioned(seed: u64) -> Case {
    Case::from_json(partitioned::json(seed))
}

/// Returns one more claim for such a case.
pub fn partitioned_claim(random: &mut Random, index: usize) -> Value {
    partitioned::claim(random, index)
}

/// Returns the case of a seed with equal groups of devices.
pub fn racks(seed: u64) -> Case {
    Case::from_json(racks::json(seed))
}

/// Returns the case of a seed with requests for all devices whose search may end in an error.
pub fn risky(seed: u64) -> Case {
    Case::from_json(risky::json(seed))
}

/// Returns the case of a seed in which the first device of a constraint may go unchecked.
pub fn unchecked(seed: u64) -> Case {
    Case::from_json(unchecked::json(seed))
}

/// Returns the case of a seed, in the layout of the corpus.
pub fn json(seed: u64) -> Value {
    let random = &mut Random::new(seed);
    let plan = plan(random);
    let mut slices = slices::slices(random, &plan);
    let allocated = allocated(random, &plan, &slices);
    random.shuffle(&mut slices);
    let profile = if random.percent(90) { "v1.37" } else { "kep" };
    let features: Map<String, Value> = match profile {
        "kep" => {
            plan.gates.clone().into_iter().map(|(gate, on)| (gate.replace("Operations", "Preparation"), on)).collect()
        }
        _ => plan.gates.clone(),
    };
    let features: Map<String, Value> = features
        .into_iter()
        .chain(seed.is_multiple_of(8).then(|| ("DRADeviceTaintRules".to_owned(), json!(false))))
        .collect();
    json!({
        "name": format!("seed {seed}"),
        "profile": profile,
        "features": features,
        "node": node(random),
        "classes": claims::classes(random, &plan),
        "claims": claims::claims(random, &plan),
        "slices": slices,
        "taint_rules": taint_rules(random, &plan),
        "allocated": allocated,
    })
}

fn plan(random: &mut Random) -> Plan {
    let all_on = random.percent(40);
    let gates = GATES.iter().filter(|(_, percent)| all_on || random.percent(*percent));
    let gates: Map<String, Value> = gates.map(|(gate, _)| ((*gate).to_owned(), json!(true))).collect();
    let mut drivers = DRIVERS.to_vec();
    random.shuffle(&mut drivers);
    drivers.truncate(random.between(1, 3));
    Plan { drivers, nodes: random.between(1, 3), gates, crowded: random.percent(3), noise: random.pick(&[10, 30, 100]) }
}

fn node(random: &mut Random) -> Value {
    let declared = if random.percent(80) { json!(["DRAOptionalNodeOperations", "Other"]) } else { json!(["Other"]) };
    let mut labels = json!({"region": random.pick(&["west", "east"]), "cores": random.pick(&["8", "16", "many"])});
    if random.percent(50) {
        labels["fast"] = json!("");
    }
    json!({"metadata": {"name": "node-0", "labels": labels}, "status": {"declaredFeatures": declared}})
}

fn taint_rules(random: &mut Random, plan: &Plan) -> Value {
    let count = if plan.is_spoilt(random, 30) { random.between(1, 2) } else { 0 };
    let rules = (0..count).map(|index| {
        let selector = json!({
            "driver": random.percent(60).then(|| random.pick(&plan.drivers)),
            "pool": random.percent(40).then(|| random.pick(&slices::POOLS)),
            "device": random.percent(60).then(|| format!("dev-{}", random.below(4))),
        });
        json!({
            "metadata": {"name": format!("rule-{index}")},
            "spec": {"deviceSelector": random.percent(95).then_some(selector), "taint": taint(random)},
        })
    });
    rules.collect()
}

/// Returns devices in use: some exclusively, some with shares.
fn allocated(random: &mut Random, plan: &Plan, slices: &[Value]) -> Value {
    let (mut devices, mut shared, mut capacity) = (Vec::new(), Vec::new(), Map::new());
    let usual = random.pick(&[0, 20, 40]);
    for slice in slices {
        let spec = &slice["spec"];
        let pool = format!("{}/{}", spec["driver"].as_str().unwrap(), spec["pool"]["name"].as_str().unwrap());
        for device in spec["devices"].as_array().into_iter().flatten() {
            let key = format!("{pool}/{}", device["name"].as_str().unwrap());
            // A few devices became shareable, or ceased to be, after they were allocated.
            let is_shared = (device["allowMultipleAllocations"] == true) != random.percent(3);
            let is_used = is_shared && random.percent(usual) || plan.is_spoilt(random, usual);
            if !is_used {
                continue;
            }
            if !is_shared {
                devices.push(key);
                continue;
            }
            shared.push(format!("{key}/share-{}", random.below(100)));
            let mut amounts = Map::new();
            for (name, capacity) in device["capacity"].as_object().into_iter().flatten() {
                if random.percent(90) {
                    amounts.insert(name.clone(), json!(part(random, capacity["value"].as_str().unwrap())));
                }
            }
            if !amounts.is_empty() && random.percent(90) {
                capacity.insert(key, Value::Object(amounts));
            }
        }
    }
    if random.percent(3) {
        devices.push(format!("{}/gone/dev-0", random.pick(&DRIVERS)));
    }
    json!({"devices": devices, "shared": shared, "capacity": capacity})
}

/// Returns a part of a quantity, in quarters; seldom more than the whole.
fn part(random: &mut Random, whole: &str) -> String {
    let whole: Quantity = whole.parse().unwrap();
    let end = if random.percent(5) { 6 } else { 5 };
    let quarters = i128::try_from(random.below(end)).unwrap();
    Quantity::from_nanos(whole.nanos() / 4 * quarters, whole.format()).to_string()
}
