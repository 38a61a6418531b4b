//! Clusters that are big, shared or full: microseconds for each node that is asked, as a ratio to the same question in a
//! cluster of node-local devices (the unit), all in one run.
//!
//! `cargo bench -p benches --bench scale` prints the table of docs/performance.md;
//! `cargo bench -p benches --bench scale -- day 6 11` plays a day of 50,000 pods on 5,000 nodes for each mean stay, in hours;
//! `day-anew` asks all nodes anew for each pod, and places the pods the same.
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

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Detail, DeviceId, Inventory, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::json;

mod day;
mod objects;

use day::Day;
use objects::{
    FABRIC, GPU, NIC, ask, by_name, by_selector, claim, class, devices, fabric, local, node, pool, racks, some,
};

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

/// Plays a day of 50,000 pods on 5,000 nodes.
fn day(mean_stay_hours: usize, keeps_verdicts: bool) {
    let day = Day { nodes: 5_000, pods: 50_000, mean_stay_hours, keeps_verdicts };
    let played = day.play();
    println!(
        "mean stay {mean_stay_hours:2} h: at most {:2} % of devices in use, {:.1} nodes asked a pod, {:.0} allocations a second, {} refused",
        played.most_used,
        played.asked as f64 / day.pods as f64,
        played.placed() as f64 / played.time.as_secs_f64(),
        day.pods - played.placed(),
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.split_first() {
        Some((first, stays)) if first == "day" || first == "day-anew" => {
            let stays: Vec<usize> = stays.iter().map(|stay| stay.parse().expect("hours")).collect();
            let stays = if stays.is_empty() { vec![2, 9, 11, 12] } else { stays };
            for stay in stays {
                day(stay, first == "day");
            }
        }
        _ => rows(),
    }
}
