//! Clusters that are big, shared or full: microseconds for each node that is asked, as a ratio to the same question in a
//! cluster of node-local devices (the unit), all in one run.
//!
//! `cargo bench -p benches --bench scale` prints the table of docs/performance.md;
//! `cargo bench -p benches --bench scale -- day 6 11` plays a day of 50,000 pods on 5,000 nodes for each mean stay, in hours.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark stops where its input is wrong"
)]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and ratios are printed, and a stay is drawn"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dra_alloc::{
    AllocatedState, Allocator, Budget, Classes, Detail, DeviceId, Inventory, InventoryEvent, Outcome, Profile, Verdict,
};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

const GPU: &str = "gpu.example.com";
const NIC: &str = "nic.example.com";
const FABRIC: &str = "fabric.example.com";
/// Rounds of which the fastest counts.
const ROUNDS: usize = 7;

/// Objects of a cluster with the question that is asked of each of its nodes.
struct Case {
    slices: Vec<Arc<ResourceSlice>>,
    classes: Classes,
    nodes: Vec<Node>,
    state: AllocatedState,
    claims: [ResourceClaim; 1],
    detail: Detail,
}

impl Case {
    fn new(slices: Vec<Arc<ResourceSlice>>, nodes: Vec<Node>, claims: [ResourceClaim; 1]) -> Self {
        let classes = [("gpu", GPU), ("nic", NIC), ("fabric", FABRIC)].map(|(name, driver)| class(name, driver));
        let state = AllocatedState::default();
        Self { slices, classes: Classes::new(classes), nodes, state, claims, detail: Detail::Off }
    }

    fn full(self) -> Self {
        self.held(|_| true)
    }

    /// Holds the devices whose numbers `is_held` accepts.
    fn held(mut self, is_held: impl Fn(usize) -> bool) -> Self {
        let devices = self.slices.iter().flat_map(|slice| {
            let pool = (&slice.spec.driver, &slice.spec.pool.name);
            slice.spec.devices.iter().flatten().map(move |device| DeviceId::new(pool.0, pool.1, &device.name))
        });
        for (_, device) in devices.enumerate().filter(|(number, _)| is_held(*number)) {
            self.state.hold(&device);
        }
        self
    }

    /// Returns the time for each node, with everything prepared.
    fn time(&self) -> Duration {
        let inventory = Inventory::new(self.slices.iter().cloned());
        let allocator = Allocator::new(Profile::V1_37, &inventory, &self.classes).with_explanation(self.detail);
        allocator.prepare(&self.state, &self.nodes);
        let round = || {
            let begin = Instant::now();
            for verdict in allocator.allocate_each(&self.state, &self.nodes, &self.claims, Budget::default()) {
                black_box(verdict.expect("a verdict"));
            }
            begin.elapsed()
        };
        per_node(round, self.nodes.len())
    }

    /// Returns the time for each node of a loop of single calls.
    fn time_of_loop(&self) -> Duration {
        let inventory = Inventory::new(self.slices.iter().cloned());
        let allocator = Allocator::new(Profile::V1_37, &inventory, &self.classes);
        allocator.prepare(&self.state, &self.nodes);
        let round = || {
            let begin = Instant::now();
            for node in &self.nodes {
                black_box(allocator.allocate(&self.state, node, &self.claims, Budget::default()).expect("a verdict"));
            }
            begin.elapsed()
        };
        per_node(round, self.nodes.len())
    }
}

fn per_node(mut round: impl FnMut() -> Duration, nodes: usize) -> Duration {
    let fastest = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    fastest / u32::try_from(nodes).unwrap_or(u32::MAX)
}

fn class(name: &str, driver: &str) -> DeviceClass {
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
    from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).expect("a class")
}

fn node(number: usize) -> Node {
    let labels = json!({"kubernetes.io/hostname": format!("host-{number}"), "rack": format!("rack-{}", number / 18)});
    from_value(json!({"metadata": {"name": format!("host-{number}"), "labels": labels}})).expect("a node")
}

/// Builds some nodes of a cluster, spread evenly.
fn some(nodes: usize, asked: usize) -> Vec<Node> {
    (0..asked).map(|number| node(number * (nodes / asked))).collect()
}

fn labelled(key: &str, value: &str) -> Value {
    json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]})
}

/// Builds the slices of a pool, of 125 devices each.
fn pool(driver: &str, name: &str, devices: &[Value], place: &Value) -> Vec<Arc<ResourceSlice>> {
    let parts: Vec<&[Value]> = devices.chunks(125).collect();
    let slice = |(number, devices): (usize, &&[Value])| {
        let mut spec = json!({"driver": driver, "devices": devices,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": parts.len()}});
        if let (Some(spec), Some(place)) = (spec.as_object_mut(), place.as_object()) {
            spec.extend(place.clone());
        }
        Arc::new(
            from_value(json!({"metadata": {"name": format!("{name}-{driver}-{number}")}, "spec": spec}))
                .expect("a slice"),
        )
    };
    parts.iter().enumerate().map(slice).collect()
}

fn devices(kind: &str, count: usize, group: usize) -> Vec<Value> {
    let device = |number: usize| {
        let numa = number / 4;
        json!({"name": format!("{kind}-{number}"), "attributes": {
            "model": {"string": "big"}, "group": {"int": number / group},
            "resource.kubernetes.io/numaNode": {"int": numa}, "resource.kubernetes.io/pcieRoot": {"string": format!("pci0000:{numa:02x}")},
        }})
    };
    (0..count).map(device).collect()
}

/// Builds the slices of nodes with 8 GPUs and 4 NICs each.
fn local(nodes: usize, place: impl Fn(&str) -> Value) -> Vec<Arc<ResourceSlice>> {
    let (gpus, nics) = (devices("gpu", 8, 2), devices("nic", 4, 2));
    let slices = |number: usize| {
        let name = format!("host-{number}");
        let place = place(&name);
        [pool(GPU, &name, &gpus, &place), pool(NIC, &name, &nics, &place)].concat()
    };
    (0..nodes).flat_map(slices).collect()
}

fn by_name(name: &str) -> Value {
    json!({"nodeName": name})
}

fn by_selector(name: &str) -> Value {
    json!({"nodeSelector": labelled("kubernetes.io/hostname", name)})
}

fn fabric(driver: &str, count: usize) -> Vec<Arc<ResourceSlice>> {
    pool(driver, "fabric", &devices("port", count, 72), &json!({"allNodes": true}))
}

/// Builds the slices of racks, each with 64 devices that name the rack one by one.
fn racks(count: usize) -> Vec<Arc<ResourceSlice>> {
    let rack = |number: usize| {
        let mut devices = devices("port", 64, 8);
        for device in devices.iter_mut().filter_map(Value::as_object_mut) {
            device.insert("nodeSelector".to_owned(), labelled("rack", &format!("rack-{number}")));
        }
        pool(FABRIC, &format!("rack-{number}"), &devices, &json!({"perDeviceNodeSelection": true}))
    };
    (0..count).flat_map(rack).collect()
}

fn claim(requests: &Value, constraints: &Value) -> [ResourceClaim; 1] {
    let devices = json!({"requests": requests, "constraints": constraints});
    [from_value(json!({"metadata": {"name": "claim"}, "spec": {"devices": devices}})).expect("a claim")]
}

fn ask(class: &str, count: usize) -> [ResourceClaim; 1] {
    claim(&json!([{"name": "r", "exactly": {"deviceClassName": class, "count": count}}]), &json!([]))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn rows() {
    let one_rack = || {
        let asked = json!([{"name": "r", "exactly": {"deviceClassName": "fabric", "count": 8}}]);
        claim(&asked, &json!([{"matchAttribute": format!("{FABRIC}/group")}]))
    };
    let unit = |nodes| Case::new(local(nodes, by_name), some(nodes, nodes), ask("gpu", 1));
    let small = unit(200).time();
    let large = unit(5_000).time();
    println!("{:44} {:>10} {:>8}", "case", "us a node", "units");
    let print = |name: &str, time: Duration, unit: Duration| {
        println!("{name:44} {:10.2} {:8.1}", micros(time), micros(time) / micros(unit));
    };
    print("local, 200 nodes", small, small);
    print("local, 5,000 nodes", large, large);
    for count in [1_000, 10_000] {
        for driver in ["a-fabric.example.com", "z-fabric.example.com"] {
            let slices = [local(200, by_name), fabric(driver, count)].concat();
            let case = Case::new(slices, some(200, 40), ask("gpu", 1));
            print(&format!("beside {count} of {driver}"), case.time(), small);
        }
    }
    let slices = [local(200, by_name), fabric("z-fabric.example.com", 10_000)].concat();
    print(
        "beside 10000, GPUs held: no",
        Case::new(slices, some(200, 40), ask("gpu", 1)).held(|n| n < 2400).time(),
        small,
    );
    let shared = |claims| Case::new(fabric(FABRIC, 10_000), some(40, 40), claims);
    print("1 of 10,000 shared, half held", shared(ask("fabric", 1)).held(|number| number < 5_000).time(), small);
    print("8 of one rack, 10 far ones free: no", shared(one_rack()).held(|number| number % 1_000 != 500).time(), small);
    print("8 of one rack, 10 neighbours free", shared(one_rack()).held(|n| !(4_998..5_008).contains(&n)).time(), small);
    for count in [10, 100, 300] {
        let case = Case::new(racks(count), some(count * 18, 40), ask("fabric", 1));
        print(&format!("{count} racks"), case.time(), small);
    }
    for nodes in [500, 5_000] {
        let named = Case::new(local(nodes, by_name), some(nodes, 40), ask("gpu", 1)).time();
        let selected = Case::new(local(nodes, by_selector), some(nodes, 40), ask("gpu", 1)).time();
        print(&format!("{nodes} nodes by nodeSelector : nodeName"), selected, named);
    }
    print("5,000 full nodes: no", unit(5_000).full().time(), large);
    let explained = Case { detail: Detail::Full, ..unit(5_000).full() };
    print("5,000 full nodes: explained", explained.time(), large);
    let few = pool(FABRIC, "host-0", &devices("port", 10_000, 72), &by_name("host-0"));
    let few = Case::new(few, some(1, 1), ask("fabric", 32)).held(|number| number % 1_000 != 500);
    print("32 wanted, 10 of 10,000 local free: no", few.time(), small);
    let whole = Case::new(local(5_000, by_name), some(5_000, 5_000), ask("gpu", 8));
    print("8 GPUs, allocate_each : loop of allocate", whole.time(), whole.time_of_loop());
    one_node();
    snapshots();
}

/// One node of 1,000, nothing known before: an index, and one call.
fn one_node() {
    let case = Case::new(local(1_000, by_name), Vec::new(), ask("gpu", 4)).held(|number| number < 10_800);
    let node = node(993);
    let round = || {
        let slices = case.slices.clone();
        let begin = Instant::now();
        let inventory = Inventory::new(slices);
        let allocator = Allocator::new(Profile::V1_37, &inventory, &case.classes);
        black_box(allocator.allocate(&case.state, &node, &case.claims, Budget::default()).expect("a verdict"));
        begin.elapsed()
    };
    println!("{:44} {:10.2}", "one node of 1,000, index and call", micros(per_node(round, 1)));
}

/// Snapshots and layers of a state with 160,000 devices in use.
fn snapshots() {
    let mut state = AllocatedState::default();
    let device = |number: usize| DeviceId::new(GPU, &format!("host-{}", number / 8), &format!("gpu-{}", number % 8));
    (0..160_000).for_each(|number| state.hold(&device(number)));
    let copy = per_node(|| timed(|| drop(black_box(state.clone()))), 1);
    println!("{:44} {:10.2}", "snapshot of 160,000 devices", micros(copy));
    for changes in [1, 10, 100] {
        let round = || {
            let begin = Instant::now();
            let mut layer = state.layer();
            (0..changes).for_each(|number| layer.share(&device(number * 1_000), "share"));
            drop(layer);
            begin.elapsed()
        };
        let time = per_node(round, 1);
        println!("{:44} {:10.2}", format!("layer with {changes} changes, dropped"), micros(time));
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// Numbers that look random and are the same in each run: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) >> 8).unwrap_or_default() % end
    }
}

const NODES: usize = 5_000;
const PODS: usize = 50_000;
/// Pods between two slices that a driver publishes anew.
const REPUBLISHED: usize = 50;

/// Plays a day: pods come evenly, stay for a while and go; each takes the first node that fits, from the node of the last
/// pod on. Of 20 pods 12 ask for a GPU, 5 for two GPUs and a NIC on one NUMA node, one for 8 GPUs, two for the first of two
/// alternatives.
fn day(mean_stay_hours: usize) {
    let slices = local(NODES, by_name);
    let nodes = some(NODES, NODES);
    let classes = Classes::new([("gpu", GPU), ("nic", NIC)].map(|(name, driver)| class(name, driver)));
    let near = json!([{"matchAttribute": "resource.kubernetes.io/numaNode"}]);
    let two = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}, {"name": "nic", "exactly": {"deviceClassName": "nic"}}]);
    let list = json!([{"name": "r", "firstAvailable": [
        {"name": "four", "deviceClassName": "gpu", "count": 4}, {"name": "two", "deviceClassName": "gpu", "count": 2}]}]);
    let kinds = [ask("gpu", 1), claim(&two, &near), ask("gpu", 8), claim(&list, &json!([]))];
    let mut inventory = Inventory::new(slices.iter().cloned());
    let (mut state, mut random) = (AllocatedState::default(), Random(1));
    Allocator::new(Profile::V1_37, &inventory, &classes).prepare(&state, &nodes);
    let mut leaving: BTreeMap<(usize, usize), ResourceClaim> = BTreeMap::new();
    let (mut latest, mut tried, mut placed, mut refused, mut most) = (0, 0, 0_usize, 0_usize, 0);
    let begin = Instant::now();
    for pod in 0..PODS {
        while let Some(entry) = leaving.first_entry().filter(|entry| entry.key().0 <= pod) {
            state.forget(&entry.remove());
        }
        if pod % REPUBLISHED == 0 {
            let slice = &slices[random.below(slices.len())];
            inventory.apply(InventoryEvent::Slice(Arc::clone(slice))).expect("a named slice");
        }
        let kind = match random.below(20) {
            0..12 => 0,
            12..17 => 1,
            17 => 2,
            _ => 3,
        };
        let mut claim = kinds[kind].clone();
        claim[0].metadata.uid = Some(pod.to_string());
        let found = {
            let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
            let attempt = allocator.attempt(&state, &claim);
            let rotated = (0..NODES).map(|step| (latest + step) % NODES);
            let mut fitting =
                rotated.filter(|node| attempt.fits(&nodes[*node], Budget::work(100_000)).expect("no error"));
            fitting
                .next()
                .map(|node| (node, results(attempt.allocate(&nodes[node], Budget::default()).expect("a verdict"))))
        };
        let Some((node, results)) = found else {
            (refused, tried) = (refused + 1, tried + NODES);
            continue;
        };
        tried += (node + NODES - latest) % NODES + 1;
        latest = node;
        let [claim] = claim;
        state.assume(&claim, &results[0]).expect("an allocation");
        placed += 1;
        most = most.max(state.len());
        // Exponential stay by inversion of a number in 1..=1000.
        let chance = (random.below(1_000) + 1) as f64 / 1_000.0;
        let stay = -chance.ln() * (mean_stay_hours * PODS / 24) as f64;
        leaving.insert((pod + 1 + stay as usize, pod), claim);
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "mean stay {mean_stay_hours:2} h: at most {:2.0} % of devices in use, {:.1} nodes tried a pod, {:.0} allocations a second, {refused} refused",
        most as f64 * 100.0 / (NODES * 12) as f64,
        tried as f64 / PODS as f64,
        placed as f64 / seconds,
    );
}

fn results(verdict: Verdict) -> Vec<AllocationResult> {
    match verdict.outcome {
        Outcome::Allocated(results) => results,
        outcome => panic!("the node fitted: {outcome:?}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.split_first() {
        Some((first, stays)) if first == "day" => {
            let stays: Vec<usize> = stays.iter().map(|stay| stay.parse().expect("hours")).collect();
            let stays = if stays.is_empty() { vec![2, 6, 9, 11] } else { stays };
            stays.into_iter().for_each(day);
        }
        _ => rows(),
    }
}
