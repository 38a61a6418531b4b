//! Proofs of the best devices: on random states of a node with eight GPUs, cut into 104 partitions, and eight NICs, each preset of
//! an objective is asked for random claims. Prints how many answers are proved within 10,000 nodes of the search, and the
//! processor time of eight GPUs with a NIC each.
//!
//! `cargo run --release -p benches --example best_devices`
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a program for developers")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use benches::random::Random;
use dra_alloc::objective::{GroupBy, Objective, PairCost, PairScope, Pairs, Proof, Term};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Outcome, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

const GPU: &str = "gpu.example.com";
const NIC: &str = "nic.example.com";
const CARDS: usize = 8;
const STATES: u64 = 200;
const STEPS: u64 = 10_000;

/// Profiles of partitions: name, slices of compute and of memory, and the first memory slice of each place.
const PROFILES: [(&str, usize, usize, &[usize]); 4] =
    [("1g", 1, 1, &[0, 1, 2, 3, 4, 5, 6]), ("2g", 2, 2, &[0, 2, 4]), ("3g", 3, 4, &[0, 4]), ("7g", 7, 8, &[0])];

fn place(card: usize) -> Value {
    json!({
        "resource.kubernetes.io/pcieRoot": {"string": format!("pci{card:04}:00")},
        "resource.kubernetes.io/numaNode": {"int": card / 4},
    })
}

fn partition(card: usize, profile: &str, compute: usize, memory: usize, first: usize) -> Value {
    let mut attributes = place(card);
    attributes["profile"] = json!({"string": profile});
    let mut counters = serde_json::Map::from_iter([("compute".to_owned(), json!({"value": compute.to_string()}))]);
    for slice in first..first + memory {
        counters.insert(format!("memory-slice-{slice}"), json!({"value": "1"}));
    }
    json!({
        "name": format!("gpu-{card}-{profile}-{first}"),
        "attributes": attributes,
        "capacity": {"memory": {"value": format!("{}Gi", 10 * memory)}},
        "consumesCounters": [{"counterSet": format!("gpu-{card}"), "counters": counters}],
    })
}

fn slices() -> Vec<ResourceSlice> {
    let slice = |name: &str, driver: &str, count: usize, field: &str, list: Vec<Value>| {
        let pool = json!({"name": "dgx", "generation": 1, "resourceSliceCount": count});
        let spec = json!({"driver": driver, "nodeName": "dgx", "pool": pool, field: list});
        from_value::<ResourceSlice>(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    };
    let set = |card: usize| {
        let slices = (0..8).map(|slice| (format!("memory-slice-{slice}"), json!({"value": "1"})));
        let counters = slices.chain([("compute".to_owned(), json!({"value": "7"}))]);
        json!({"name": format!("gpu-{card}"), "counters": counters.collect::<serde_json::Map<_, _>>()})
    };
    let of_card = |card| {
        let of_profile = move |&(name, compute, memory, places): &(&'static str, usize, usize, &'static [usize])| {
            places.iter().map(move |first| partition(card, name, compute, memory, *first))
        };
        PROFILES.iter().flat_map(of_profile)
    };
    let nic = |card: usize| json!({"name": format!("nic-{card}"), "attributes": place(card)});
    vec![
        slice("gpu-counters", GPU, 2, "sharedCounters", (0..CARDS).map(set).collect()),
        slice("gpu-devices", GPU, 2, "devices", (0..CARDS).flat_map(of_card).collect()),
        slice("nics", NIC, 1, "devices", (0..CARDS).map(nic).collect()),
    ]
}

fn request(name: &str, profile: Option<&str>, count: usize) -> Value {
    let selectors: Vec<Value> = profile
        .iter()
        .map(|profile| json!({"cel": {"expression": format!("device.attributes['{GPU}'].profile == '{profile}'")}}))
        .collect();
    let class = if profile.is_some() { "gpu" } else { "nic" };
    json!({"name": name, "exactly": {"deviceClassName": class, "count": count, "selectors": selectors}})
}

fn claim(requests: &[Value]) -> ResourceClaim {
    from_value(json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})).unwrap()
}

/// Returns a claim for some partitions of one or two kinds and, for every other one, NICs.
fn random_claim(random: &mut Random) -> ResourceClaim {
    let [first, second] = [0, 1].map(|_| PROFILES[[0, 0, 0, 1, 1, 2, 2, 3][random.below(8)]].0);
    let count = 1 + random.below(3);
    let mut requests = vec![request("a", Some(first), count)];
    if random.below(2) == 0 {
        requests.push(request("b", Some(second), 1 + random.below(2)));
    }
    if random.below(2) == 0 {
        requests.push(request("nics", None, count));
    }
    claim(&requests)
}

/// Holds random devices that fit beside each other, up to a random number.
fn random_state(random: &mut Random, slices: &[ResourceSlice]) -> AllocatedState {
    let mut state = AllocatedState::default();
    for _ in 0..random.below(24) {
        let slice = &slices[1 + random.below(2)];
        let devices = slice.spec.devices.as_ref().unwrap();
        let id = DeviceId::new(&slice.spec.driver, "dgx", &devices[random.below(devices.len())].name);
        if state.is_allocated(&id) {
            continue;
        }
        let mut layer = state.layer();
        layer.hold(&id);
        if is_sound(&layer, slices) {
            layer.keep();
        }
    }
    state
}

/// Returns true if no counter is overcommitted.
fn is_sound(state: &AllocatedState, slices: &[ResourceSlice]) -> bool {
    let mut used = BTreeMap::<(String, String), usize>::new();
    for device in slices[1].spec.devices.iter().flatten() {
        if state.is_allocated(&DeviceId::new(GPU, "dgx", &device.name)) {
            for set in device.consumes_counters.iter().flatten() {
                for (name, counter) in &set.counters {
                    *used.entry((set.counter_set.clone(), name.clone())).or_default() +=
                        counter.value.0.parse::<usize>().unwrap();
                }
            }
        }
    }
    used.iter().all(|((_, name), used)| *used <= if name == "compute" { 7 } else { 1 })
}

fn presets() -> Vec<(&'static str, Objective)> {
    vec![
        ("pack partitions", Objective::pack_partitions()),
        ("keep whole", Objective::keep_whole()),
        ("close together", Objective::close_together()),
        ("pair requests", Objective::pair_requests("a", "nics")),
        ("least waste", Objective::least_waste("gpu.example.com/memory").unwrap()),
        ("spread over", Objective::spread_over("resource.kubernetes.io/numaNode").unwrap()),
    ]
}

/// Prints how many answers of a preset are proved.
fn ask(name: &str, objective: Objective) {
    let objective = objective.with_steps(STEPS);
    let (slices, node) = (slices(), from_value::<Node>(json!({"metadata": {"name": "dgx"}})).unwrap());
    let classes = Classes::new([class("gpu", GPU), class("nic", NIC)]);
    let inventory = Inventory::new(slices.iter().cloned());
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_objective(&objective);
    let (mut asked, mut proved, mut better, mut steps) = (0, 0, 0, Vec::new());
    let mut time = Duration::ZERO;
    for seed in 0..STATES {
        let random = &mut Random(seed);
        let state = random_state(random, &slices);
        let claim = random_claim(random);
        let begin = Instant::now();
        let verdict = allocator.allocate(&state, &node, [&claim], Budget::default()).unwrap();
        time += begin.elapsed();
        let (Outcome::Allocated(_), Some(score)) = (verdict.outcome, verdict.score) else { continue };
        asked += 1;
        proved += u32::from(score.proof == Proof::Least);
        better += u32::from(score.value < score.first_fit);
        steps.push(score.steps);
    }
    steps.sort_unstable();
    let [half, most] = [steps[steps.len() / 2], steps[steps.len() * 9 / 10]];
    let mean = time.as_micros() / u128::from(STATES);
    println!("{name:<16} {proved:>4} of {asked} proved, {better:>3} better, nodes {half:>6} {most:>6}, {mean:>6} us");
}

fn class(name: &str, driver: &str) -> DeviceClass {
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
    from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).unwrap()
}

/// Prints the time of eight GPUs with a NIC each, of which three are at the first GPU's root.
fn ask_for_pairs() {
    let device = |name: String, root: usize| json!({"name": name, "attributes": {"resource.kubernetes.io/pcieRoot": {"string": format!("pci{root:04}:00")}}});
    let slice = |driver: &str, devices: Vec<Value>| {
        let pool = json!({"name": "dgx", "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": driver, "nodeName": "dgx", "pool": pool, "devices": devices});
        from_value::<ResourceSlice>(json!({"metadata": {"name": driver}, "spec": spec})).unwrap()
    };
    let gpus = (0..8).map(|number| device(format!("g{number}"), number)).collect();
    let nics = (0..10).map(|number: usize| device(format!("n{number}"), number.saturating_sub(2))).collect();
    let (inventory, node) =
        (Inventory::new([slice(GPU, gpus), slice(NIC, nics)]), json!({"metadata": {"name": "dgx"}}));
    let classes = Classes::new([class("gpu", GPU), class("nic", NIC)]);
    let gpus = json!({"name": "gpus", "exactly": {"deviceClassName": "gpu", "count": 8}});
    let (claim, state) = (claim(&[gpus, request("nics", None, 8)]), AllocatedState::default());
    let near = PairCost::Distance { attributes: vec!["resource.kubernetes.io/pcieRoot".to_owned()] };
    let near = Term::Pairs(Pairs { cost: near, within: PairScope::Claim });
    for objective in [Objective::pair_requests("gpus", "nics"), Objective::new([vec![near.into()]]).unwrap()] {
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_objective(&objective);
        let node = from_value(node.clone()).unwrap();
        let begin = Instant::now();
        let score = allocator.allocate(&state, &node, [&claim], Budget::default()).unwrap().score.unwrap();
        println!("8 GPUs, 8 NICs: {:?} {:?}, {} nodes, {:?}", score.value, score.proof, score.steps, begin.elapsed());
    }
}

fn main() {
    for (name, objective) in presets() {
        ask(name, objective);
    }
    ask("spread, sets", Objective::new([vec![Term::Spread { by: GroupBy::CounterSet }.into()]]).unwrap());
    ask_for_pairs();
}
