//! Shapes whose amounts count: partitions, shares, matches and many requests.
//!
//!     cargo run --release -p benches --example amounts [REPEATS] [CASE]
//!
//! Printed is one JSON object a line: for each case the nanoseconds of a node, the least of the repeats, and the steps of all nodes.
//! Everything is prepared before a repeat begins, but for `state-of-7200`, which builds the state. Under a profiler, the difference of
//! two runs with different repeats is the instructions of the repeats alone.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

const GPU: &str = "gpu.example.com";
const NIC: &str = "nic.example.com";
const TEST: &str = "test-driver.cdi.k8s.io";
const ROOT: &str = "resource.kubernetes.io/pcieRoot";
const NUMA: &str = "resource.kubernetes.io/numaNode";

/// Generator of numbers that look random: one step of a linear congruence.
struct Random(u64);

impl Random {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Cluster with the question that is asked of each of its nodes.
struct Case {
    nodes: Vec<Node>,
    slices: Vec<Arc<ResourceSlice>>,
    classes: Vec<DeviceClass>,
    claim: ResourceClaim,
    uses: Vec<Use>,
}

/// Use of one device.
enum Use {
    Held(DeviceId),
    /// Device with a number of shares that consume bandwidth.
    Shared(DeviceId, u64),
}

impl Case {
    fn new(nodes: usize, requests: &Value, constraints: &Value) -> Self {
        let node = |number: usize| json!({"metadata": {"name": format!("node-{number}"), "labels": {"node-with-dra": "true"}}});
        let claim = json!({"metadata": {"name": "c", "namespace": "ns", "uid": "c"},
            "spec": {"devices": {"requests": requests, "constraints": constraints}}});
        let class = |(name, driver): (&str, &str)| {
            let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
            json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})
        };
        Self {
            nodes: (0..nodes).map(|number| read(node(number))).collect(),
            slices: Vec::new(),
            classes: [("gpu", GPU), ("nic", NIC), ("test", TEST)].map(class).map(read).into(),
            claim: read(claim),
            uses: Vec::new(),
        }
    }

    /// Adds a slice. `fields` are those of its spec beside driver and pool.
    fn slice(&mut self, (driver, pool): (&str, &str), number: usize, of: usize, fields: Value) {
        let name = format!("{pool}-{driver}-{number}");
        let mut spec = json!({"driver": driver, "pool": {"name": pool, "generation": 1, "resourceSliceCount": of}});
        if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
            spec.extend(fields);
        }
        self.slices.push(Arc::new(read(json!({"metadata": {"name": name}, "spec": spec}))));
    }

    /// Holds a device.
    fn hold(&mut self, driver: &str, pool: &str, device: &str) {
        self.uses.push(Use::Held(DeviceId::new(driver, pool, device)));
    }

    /// Builds the state.
    fn state(&self) -> AllocatedState {
        let mut state = AllocatedState::default();
        for used in &self.uses {
            match used {
                Use::Held(device) => state.hold(device),
                Use::Shared(device, shares) => {
                    (0..*shares).for_each(|share| state.share(device, &format!("s{share}")));
                    state.consume(device, "bandwidth", shares.to_string().parse().expect("a quantity"));
                }
            }
        }
        state
    }
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    from_value(value).expect("an object")
}

fn request(name: &str, class: &str, count: usize, selector: Option<&str>) -> Value {
    let selectors = selector.map(|expression| json!({"cel": {"expression": expression}}));
    let selectors: Vec<Value> = selectors.into_iter().collect();
    json!({"name": name, "exactly": {"deviceClassName": class, "allocationMode": "ExactCount", "count": count, "selectors": selectors}})
}

/// Pools of six partitions on four counters that all nodes see, one of them in use: two devices of one pool are wanted.
fn partitionable(nodes: usize, pools: usize) -> Case {
    let selector = "device.capacity['test-driver.cdi.k8s.io'].counters.compareTo(quantity('1')) >= 0 && \
         !device.attributes['test-driver.cdi.k8s.io'].preallocate";
    let matching = json!([{"matchAttribute": "dra.example.com/slice", "requests": ["r"]}]);
    let mut case = Case::new(nodes, &json!([request("r", "test", 2, Some(selector))]), &matching);
    let everywhere = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "node-with-dra", "operator": "In", "values": ["true"]}]}]});
    let partitions = [
        ("device-2-counters-1", &[1, 2][..], true),
        ("device-2-counters-2", &[3, 4], false),
        ("device-1-counter-1", &[1], false),
        ("device-1-counter-2", &[2], false),
        ("device-1-counter-3", &[3], false),
        ("device-1-counter-4", &[4], false),
    ];
    let counters = |numbers: &[u8]| -> Value {
        numbers.iter().map(|number| (format!("counter{number}"), json!({"value": "1"}))).collect()
    };
    for number in 0..pools {
        let device = |(name, consumed, is_first): (&str, &[u8], bool)| {
            json!({"name": name, "capacity": {"counters": {"value": consumed.len().to_string()}},
                "attributes": {"preallocate": {"bool": is_first}, "dra.example.com/slice": {"int": number}},
                "consumesCounters": [{"counterSet": "counter-set", "counters": counters(consumed)}]})
        };
        let (pool, devices) = (format!("resourceslice-{number}"), partitions.map(device));
        case.slice((TEST, &pool), 0, 2, json!({"nodeSelector": everywhere, "devices": devices}));
        let sets = json!([{"name": "counter-set", "counters": counters(&[1, 2, 3, 4])}]);
        case.slice((TEST, &pool), 1, 2, json!({"nodeSelector": everywhere, "sharedCounters": sets}));
        case.hold(TEST, &pool, "device-2-counters-1");
    }
    case
}

/// Claim of a case with eight GPUs that have partitions, and eight NICs.
enum Wanted {
    /// One partition.
    Partition,
    /// Four GPUs, each with a NIC of its root, of one NUMA node.
    FourPairs,
}

/// Nodes with eight GPUs, each whole or as partitions on eight counters, and eight NICs. `busy` percent of the GPUs are in use.
fn partitions(nodes: usize, busy: u64, wanted: &Wanted) -> Case {
    let profile = |name: &str| format!("device.attributes[\"{GPU}\"].profile == \"{name}\"");
    let (requests, constraints) = match wanted {
        Wanted::Partition => (json!([request("g", "gpu", 1, Some(&profile("1g")))]), json!([])),
        Wanted::FourPairs => {
            let gpus = (0..4).map(|number| request(&format!("g{number}"), "gpu", 1, Some(&profile("whole"))));
            let nics = (0..4).map(|number| request(&format!("n{number}"), "nic", 1, None));
            let pair =
                |number| json!({"matchAttribute": ROOT, "requests": [format!("g{number}"), format!("n{number}")]});
            let numa = json!({"matchAttribute": NUMA, "requests": ["g0", "g1", "g2", "g3"]});
            (gpus.chain(nics).collect(), (0..4).map(pair).chain([numa]).collect())
        }
    };
    let (mut case, mut random) = (Case::new(nodes, &requests, &constraints), Random(2));
    for node in 0..nodes {
        let name = format!("node-{node}");
        let (mut sets, mut devices, mut nics) = (Vec::new(), Vec::new(), Vec::new());
        for gpu in 0..8 {
            let (root, numa) = (json!({"string": format!("pci0000:{gpu:x}")}), json!({"int": gpu / 4}));
            let counters = |memory: usize, slices: std::ops::Range<usize>| -> Value {
                let slices = slices.map(|slice| (format!("slice-{slice}"), json!({"value": "1"})));
                slices.chain([("memory".to_owned(), json!({"value": format!("{memory}Gi")}))]).collect()
            };
            let device = |name: String, profile: &str, consumed: Value| {
                json!({"name": name, "attributes": {"profile": {"string": profile}, "parent": {"int": gpu}, ROOT: root, NUMA: numa},
                    "consumesCounters": [{"counterSet": format!("gpu-{gpu}"), "counters": consumed}]})
            };
            sets.push(json!({"name": format!("gpu-{gpu}"), "counters": counters(80, 0..7)}));
            devices.push(device(format!("gpu-{gpu}"), "whole", counters(80, 0..7)));
            for (size, starts) in [(4, &[0][..]), (3, &[0, 4]), (2, &[0, 2, 4]), (1, &[0, 1, 2, 3, 4, 5, 6])] {
                for start in starts {
                    let consumed = counters(size * 10, *start..7.min(start + size));
                    devices.push(device(format!("gpu-{gpu}-mig-{size}g-{start}"), &format!("{size}g"), consumed));
                }
            }
            nics.push(
                json!({"name": format!("nic-{gpu}"), "attributes": {ROOT: root, NUMA: numa, "speed": {"int": 400}}}),
            );
            if random.below(100) < busy {
                let used = ["", "-mig-3g-0", "-mig-1g-0"][usize::try_from(random.below(3)).unwrap_or_default()];
                case.hold(GPU, &name, &format!("gpu-{gpu}{used}"));
            }
        }
        case.slice((GPU, &name), 0, 3, json!({"nodeName": name, "sharedCounters": sets}));
        for (number, devices) in devices.chunks(64).enumerate() {
            case.slice((GPU, &name), number + 1, 3, json!({"nodeName": name, "devices": devices}));
        }
        case.slice((NIC, &name), 0, 1, json!({"nodeName": name, "devices": nics}));
    }
    case
}

/// Nodes with eight NICs of 200 units of bandwidth each, of which some are consumed.
fn shares(nodes: usize, consumed: u64, count: usize, amount: &str) -> Case {
    let request = json!([{"name": "b", "exactly": {"deviceClassName": "nic", "allocationMode": "ExactCount", "count": count,
        "capacity": {"requests": {"bandwidth": amount}}}}]);
    let mut case = Case::new(nodes, &request, &json!([]));
    for node in 0..nodes {
        let name = format!("node-{node}");
        let device = |number: usize| {
            let policy = json!({"default": "1", "validRange": {"min": "1", "step": "1"}});
            json!({"name": format!("nic-{number}"), "allowMultipleAllocations": true, "attributes": {NUMA: {"int": number % 2}},
                "capacity": {"bandwidth": {"value": "200", "requestPolicy": policy}}})
        };
        let devices: Vec<Value> = (0..8).map(device).collect();
        case.slice((NIC, &name), 0, 1, json!({"nodeName": name, "devices": devices}));
        for number in 0..8 {
            case.uses.push(Use::Shared(DeviceId::new(NIC, &name, &format!("nic-{number}")), consumed));
        }
    }
    case
}

/// Nodes with pools of GPUs, four on a root. `held` percent of them are in use.
fn plain(nodes: usize, gpus: usize, held: u64, requests: &Value, constraints: &Value) -> Case {
    let (mut case, mut random) = (Case::new(nodes, requests, constraints), Random(1));
    for node in 0..nodes {
        let name = format!("node-{node}");
        let device = |number: usize| {
            json!({"name": format!("gpu-{number}"), "attributes": {"model": {"string": "h100"},
                "uuid": {"string": format!("GPU-{number}")}, ROOT: {"string": format!("pci0000:{:x}", number / 4)},
                NUMA: {"int": number / 32 % 2}}})
        };
        let devices: Vec<Value> = (0..gpus).map(device).collect();
        let chunks = devices.chunks(128);
        let of = chunks.len();
        for (number, devices) in chunks.enumerate() {
            case.slice((GPU, &name), number, of, json!({"nodeName": name, "devices": devices}));
        }
        for number in 0..gpus {
            if random.below(100) < held {
                case.hold(GPU, &name, &format!("gpu-{number}"));
            }
        }
    }
    case
}

/// Builds a case.
type Make = fn() -> Case;

/// Cases by name. The numbers of the published workload are pools; the others are as their functions say.
const CASES: [(&str, Make); 14] = [
    ("partitionable-200", || partitionable(20, 200)),
    ("partitionable-1000", || partitionable(20, 1_000)),
    ("partitionable-1000-one-node", || partitionable(1, 1_000)),
    ("partition-of-100", || partitions(100, 30, &Wanted::Partition)),
    ("four-pairs-of-100", || partitions(100, 0, &Wanted::FourPairs)),
    ("four-pairs-of-100-busy", || partitions(100, 40, &Wanted::FourPairs)),
    ("share-199-held", || shares(100, 199, 1, "1")),
    ("share-4-of-200", || shares(100, 150, 4, "20")),
    ("share-none-held", || shares(100, 0, 1, "1")),
    ("root-of-1024", || {
        plain(10, 1_024, 40, &json!([request("g", "gpu", 4, None)]), &json!([{"matchAttribute": ROOT}]))
    }),
    ("requests-32-of-64", || {
        let requests: Value = (0..32).map(|number| request(&format!("r{number}"), "gpu", 1, None)).collect();
        plain(1, 64, 0, &requests, &json!([]))
    }),
    ("one-of-8", || plain(200, 8, 0, &json!([request("g", "gpu", 1, None)]), &json!([]))),
    ("one-of-16-half", || plain(200, 16, 50, &json!([request("g", "gpu", 1, None)]), &json!([]))),
    ("state-of-7200", || plain(900, 8, 100, &json!([request("g", "gpu", 1, None)]), &json!([]))),
];

fn main() -> Result<(), Box<dyn Error>> {
    let repeats: usize = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    let only = std::env::args().nth(2);
    for (name, build) in CASES.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        let case = build();
        let (inventory, classes) = (Inventory::new(case.slices.iter().cloned()), Classes::new(case.classes.clone()));
        let state = case.state();
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
        allocator.prepare(&state, &case.nodes);
        let (mut best, mut steps, mut allocated) = (u128::MAX, 0, 0);
        for repeat in 0..=repeats {
            let begin = Instant::now();
            if name.starts_with("state") {
                drop(black_box(case.state()));
            } else {
                let verdicts = allocator.allocate_each(&state, &case.nodes, [&case.claim], Budget::default());
                let verdicts: Vec<_> = verdicts.collect::<Result<_, _>>()?;
                steps = verdicts.iter().map(|verdict| verdict.steps).sum();
                allocated = verdicts.iter().filter(|it| matches!(it.outcome, dra_alloc::Outcome::Allocated(_))).count();
            }
            // The first one compiles the selectors.
            if repeat > 0 {
                best = best.min(begin.elapsed().as_nanos());
            }
        }
        let of = if name.starts_with("state") { 1 } else { case.nodes.len() };
        let told = json!({"case": name, "ns_per_node": u64::try_from(best)? / u64::try_from(of)?, "steps": steps,
            "nodes": case.nodes.len(), "allocated": allocated});
        println!("{told}");
    }
    Ok(())
}
