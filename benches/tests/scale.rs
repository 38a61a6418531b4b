//! Cost of clusters that are big, shared or full, counted: the work of a budget, and memory that is allocated. Each row of the
//! bench `scale` is measured beside its unit, in one run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "ratios are printed and compared")]

use std::collections::BTreeMap;

use benches::case::Case;
use benches::day::Day;
use benches::objects::{GPU, ask, by_name, class, local, node};
use benches::rows::{ROWS, UNIT};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Outcome, Profile};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// One test, since memory is counted for the whole process.
#[test]
fn cost_follows_what_can_matter() {
    a_node_costs_no_more_than_its_row_says();
    a_pod_in_a_fuller_cluster_costs_at_most_four_times_as_much();
    a_snapshot_costs_what_is_changed();
    one_node_of_many_costs_a_reference_for_each_slice_of_the_others();
    a_class_is_compiled_once_and_other_classes_cost_nothing();
}

/// Largest number of nodes that are asked of a case.
const MOST_ASKED: usize = 50;

/// Blocks and bytes of memory that something allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    blocks: u64,
    bytes: u64,
}

impl Memory {
    /// Counts what some work allocates, whether it is freed again or not.
    fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let _profiler = dhat::Profiler::builder().testing().build();
        let done = work();
        let all = dhat::HeapStats::get();
        (Self { blocks: all.total_blocks, bytes: all.total_bytes }, done)
    }
}

/// Returns the work, blocks and bytes of a node of a case, with the index prepared and selectors compiled.
fn cost(case: Case) -> [f64; 3] {
    let every = case.nodes.len().div_ceil(MOST_ASKED);
    let case = Case { nodes: case.nodes.into_iter().step_by(every).collect(), ..case };
    let inventory = case.inventory();
    let allocator = case.prepared(&inventory);
    case.ask(&allocator, drop);
    let mut work = 0;
    let (memory, ()) = Memory::of(|| case.ask(&allocator, |verdict| work += verdict.work));
    [work, memory.blocks, memory.bytes].map(|total| total as f64 / case.nodes.len() as f64)
}

fn a_node_costs_no_more_than_its_row_says() {
    let unit = cost((ROWS[0].case)());
    assert!(unit.iter().zip(UNIT).all(|(cost, most)| *cost <= most), "the unit costs {unit:?}, at most {UNIT:?}");
    println!("{:40} {:>24} {:>24}", "row", "work, blocks, bytes", "in units");
    let (mut known, mut dear) = (BTreeMap::new(), Vec::new());
    for row in ROWS {
        let cost = cost((row.case)());
        known.insert(row.name, cost);
        let units: [f64; 3] = std::array::from_fn(|kind| cost[kind] / known[row.unit][kind]);
        let [work, blocks, bytes] = cost;
        println!(
            "{:40} {work:8.1} {blocks:7.1} {bytes:7.0} {:8.2} {:7.2} {:7.2}",
            row.name, units[0], units[1], units[2]
        );
        // Bytes are mostly pages of zeros, which cost little.
        assert!(row.counted[..2].iter().all(|counted| *counted <= row.limit), "{}", row.name);
        if units.iter().zip(row.counted).any(|(units, most)| *units > most) {
            dear.push((row.name, units, row.counted));
        }
    }
    assert!(dear.is_empty(), "{dear:#?}");
}

/// Memory that a day takes for each pod that is placed, without its cluster.
fn of_a_pod(mean_stay_hours: usize) -> (f64, usize) {
    let day = |pods| Day { nodes: 100, pods, mean_stay_hours, keeps_verdicts: true };
    let (cluster, _) = Memory::of(|| day(0).play());
    let (all, played) = Memory::of(|| day(1_000).play());
    ((all.blocks - cluster.blocks) as f64 / played.placed() as f64, played.most_used)
}

fn a_pod_in_a_fuller_cluster_costs_at_most_four_times_as_much() {
    let ((empty, little), (full, much)) = (of_a_pod(2), of_a_pod(12));
    println!("{little} % in use: {empty:.0} blocks a pod; {much} % in use: {full:.0}");
    assert!(little < 25 && much > 65);
    assert!(full < 2.0 * empty, "{full} beside {empty}");
}

fn a_snapshot_costs_what_is_changed() {
    let device = |number: usize| DeviceId::new(GPU, &format!("host-{}", number / 8), &format!("gpu-{}", number % 8));
    let changed = |devices: usize| {
        let mut state = AllocatedState::default();
        (0..devices).for_each(|number| state.hold(&device(number)));
        let (copy, _) = Memory::of(|| state.clone());
        assert_eq!(copy.blocks, 0, "a reference");
        [1, 10, 100].map(|changes| {
            let changes: Vec<DeviceId> = (0..changes).map(|number| device(number * devices / 100)).collect();
            Memory::of(|| changes.iter().for_each(|device| state.layer().share(device, "share"))).0
        })
    };
    let (small, large) = (changed(1_600), changed(160_000));
    println!("1, 10 and 100 changes: {small:?} of 1,600 devices, {large:?} of 160,000");
    for of in [small, large] {
        assert!(of[2].blocks < 110 * of[0].blocks && of[2].bytes < 110 * of[0].bytes, "{of:?}");
    }
    assert!(large[2].blocks < 2 * small[2].blocks && large[2].bytes < 2 * small[2].bytes);
}

/// Returns what an index and a first call for one node cost, beside other nodes that are full, and the call's work.
fn one_node(nodes: usize) -> (Memory, u64) {
    let case = Case::new(local(nodes, by_name), vec![node(3)], ask("gpu", 4));
    let case = case.held(|number| number / 12 != 3);
    // A class is compiled once, in the first call of all.
    let warm = case.inventory();
    case.ask(&Allocator::new(Profile::V1_37, &warm, &case.classes), drop);
    let mut work = 0;
    let (memory, ()) = Memory::of(|| {
        let inventory = case.inventory();
        let allocator = Allocator::new(Profile::V1_37, &inventory, &case.classes);
        case.ask(&allocator, |verdict| {
            assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
            work = verdict.work;
        });
    });
    (memory, work)
}

fn one_node_of_many_costs_a_reference_for_each_slice_of_the_others() {
    let ((few, work_of_few), (many, work_of_many)) = (one_node(10), one_node(1_000));
    println!("10 nodes: {few:?}, work {work_of_few}; 1,000 nodes: {many:?}, work {work_of_many}");
    assert_eq!((work_of_many, many.blocks), (work_of_few, few.blocks));
    let (slices, reference) = (2 * (1_000 - 10), u64::try_from(size_of::<usize>()).unwrap());
    assert_eq!(many.bytes - few.bytes, slices * reference);
}

/// Returns the memory of two preparations and calls, one after the other, in a cluster with some classes.
fn with_classes(count: usize) -> [Memory; 2] {
    let classes = Classes::new((0..count).map(|number| class(&format!("class-{number}"), GPU)));
    let case = Case { classes, ..Case::new(local(1, by_name), vec![node(0)], ask("class-2", 1)) };
    let inventory = case.inventory();
    std::array::from_fn(|_| {
        let call = || {
            let allocator = case.prepared(&inventory);
            let verdict = allocator.allocate(&case.state, &case.nodes[0], &case.claims, Budget::default()).unwrap();
            assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
        };
        Memory::of(call).0
    })
}

fn a_class_is_compiled_once_and_other_classes_cost_nothing() {
    with_classes(4); // What a process allocates once is not counted below.
    let (few, many) = (with_classes(4), with_classes(10_000));
    println!("4 classes: {few:?}; 10,000: {many:?}");
    assert_eq!(many, few);
    assert!(few[1].blocks * 2 < few[0].blocks, "the first call compiles");
}
