//! Clusters that are big, shared or full: microseconds for each node that is asked, as a ratio to the same question in a
//! cluster of node-local devices (the unit), all in one run.
//!
//! `cargo bench -p benches --bench scale` prints the table of docs/performance.md;
//! `cargo bench -p benches --bench scale -- day 6 11` plays a day of 50,000 pods on 5,000 nodes for each mean stay, in hours;
//! `day-anew` asks all nodes anew for each pod, and places the pods the same.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark stops where its input is wrong")]
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "times and ratios are printed")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::case::Case;
use benches::day::Day;
use benches::objects::{GPU, ask, by_name, local, node};
use benches::rows::ROWS;
use dra_alloc::{AllocatedState, Allocator, Budget, DeviceId, Inventory, Profile};

/// Rounds of which the fastest counts.
const ROUNDS: usize = 7;

/// Returns the time for each node, with everything prepared.
fn time(case: &Case) -> Duration {
    let inventory = case.inventory();
    let allocator = case.prepared(&inventory);
    let round = || {
        let begin = Instant::now();
        case.ask(&allocator, |verdict| drop(black_box(verdict)));
        begin.elapsed()
    };
    per_node(round, case.nodes.len())
}

fn per_node(mut round: impl FnMut() -> Duration, nodes: usize) -> Duration {
    let fastest = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    fastest / u32::try_from(nodes).unwrap_or(u32::MAX)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn rows() {
    println!("{:44} {:>10} {:>8}", "case", "us a node", "units");
    let mut known: BTreeMap<&str, f64> = BTreeMap::new();
    for row in ROWS {
        let micros = micros(time(&(row.case)()));
        known.insert(row.name, micros);
        println!("{:44} {micros:10.2} {:8.1}", row.name, micros / known[row.unit]);
    }
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
