//! Benchmarks of dra-attrs: NUMA lists by number of nodes, constraints by number of devices, and quantities.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![expect(clippy::expect_used, reason = "a benchmark stops where its input is wrong")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dra_attrs::numa::{NumaNode, NumaTopology};
use dra_attrs::{DistinctState, ListTypes, MatchError, MatchState, Quantity, ValueSet};
use k8s_openapi::api::resource::v1::DeviceAttribute;

const NODES: [u32; 3] = [8, 64, 1024];
const DEVICES: [i64; 4] = [10, 100, 1_000, 10_000];
const QUANTITIES: [&str; 6] = ["64", "100m", "1.5Gi", "9223372036854775807", "1e21", "0.123456789"];

/// Builds a machine with four nodes per socket, like AMD EPYC with NPS4.
fn machine(nodes: u32) -> Vec<NumaNode> {
    let node = |from: u32| {
        let distance = |to: u32| match (to == from, to / 4 == from / 4) {
            (true, _) => 10,
            (false, true) => 12,
            (false, false) => 32,
        };
        NumaNode::new(from.into(), (0..nodes).map(distance).collect::<Vec<_>>()).on_socket((from / 4).into())
    };
    (0..nodes).map(node).collect()
}

fn numa(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("numa/local_nodes_of_all");
    for nodes in NODES {
        let topology = NumaTopology::new(machine(nodes)).expect("a topology");
        group.throughput(Throughput::Elements(nodes.into()));
        group.bench_with_input(BenchmarkId::from_parameter(nodes), &topology, |bencher, topology| {
            bencher.iter(|| {
                topology.nodes().iter().map(|node| topology.local_nodes(node.id()).nodes.len()).sum::<usize>()
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("numa/topology");
    for nodes in NODES {
        let machine = machine(nodes);
        group.throughput(Throughput::Elements(nodes.into()));
        group.bench_with_input(BenchmarkId::from_parameter(nodes), &machine, |bencher, machine| {
            bencher.iter_batched(|| machine.clone(), NumaTopology::new, BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// Pushes and pops every device. The state keeps its buffers, as in a backtracking search.
fn bench_states<'a, S>(
    criterion: &mut Criterion,
    name: &str,
    devices: &'a [DeviceAttribute],
    mut state: S,
    push: fn(&mut S, &ValueSet<'a>) -> Result<(), MatchError>,
    pop: fn(&mut S),
) {
    let mut group = criterion.benchmark_group(name);
    for count in DEVICES {
        let count = usize::try_from(count).expect("a small number");
        let devices = devices.iter().take(count);
        let sets: Vec<_> = devices.map(|device| ValueSet::from_attribute(Some(device), ListTypes::Enabled)).collect();
        group.throughput(Throughput::Elements(u64::try_from(count).expect("a small number")));
        group.bench_with_input(BenchmarkId::from_parameter(count), &sets, |bencher, sets| {
            bencher.iter(|| {
                sets.iter().try_for_each(|set| push(&mut state, black_box(set))).expect("no violation");
                for _ in sets {
                    pop(&mut state);
                }
            });
        });
    }
    group.finish();
}

fn matching(criterion: &mut Criterion) {
    let most = DEVICES.into_iter().max().unwrap_or_default();
    // The value 0 is common to all devices; the other seven are the device's own.
    let list = |device: i64| std::iter::once(0).chain((1..8).map(|own| device * 7 + own)).collect();
    let lists: Vec<_> =
        (0..most).map(|device| DeviceAttribute { ints: Some(list(device)), ..DeviceAttribute::default() }).collect();
    bench_states(criterion, "matching/match", &lists, MatchState::new(), MatchState::push, MatchState::pop);

    let scalars: Vec<_> =
        (0..most).map(|device| DeviceAttribute { int: Some(device), ..DeviceAttribute::default() }).collect();
    bench_states(
        criterion,
        "matching/distinct",
        &scalars,
        DistinctState::new(),
        DistinctState::push,
        DistinctState::pop,
    );
}

fn quantity(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("quantity/parse_and_print");
    for text in QUANTITIES {
        group.bench_with_input(BenchmarkId::from_parameter(text), text, |bencher, text| {
            bencher.iter(|| black_box(text).parse::<Quantity>().map(|quantity| quantity.to_string()));
        });
    }
    group.finish();
}

criterion_group!(benches, numa, matching, quantity);
criterion_main!(benches);
