//! Cost of nnn by size: updates and queries of the nominator by the number of nominations to other nodes, filtering of all
//! nodes with nominated pods, and views of clusters.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![expect(clippy::expect_used, reason = "a benchmark stops where its input is wrong")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dra_attrs::Resources;
use dra_attrs::{Profile, Quantity, QuantityFormat};
use k8s_openapi::api::core::v1::{Node, Pod};
use nnn::view::{ClusterObjects, ClusterView, ClusterViewOptions};
use nnn::{
    Assumed, Behavior, NodeFit, NominatingInfo, Nomination, NominationOptions, NominationTracker, Nominator,
    PodSnapshot, TrackerInput,
};
use serde_json::{from_value, json};

const NOMINATIONS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
const NODES: usize = 5_000;

fn cpu(units: i64) -> Resources {
    let quantity = |units| Quantity::from_units(units, QuantityFormat::DecimalSi);
    Resources::new([("cpu", quantity(units)), ("memory", quantity(units << 30))])
}

fn pod(number: usize) -> PodSnapshot {
    PodSnapshot::pending("default", &format!("pod-{number}"))
        .with_uid(&format!("4f9b2c1e-0000-4000-8000-{number:012}"))
        .with_requests(cpu(1))
}

fn node(number: usize) -> String {
    format!("node-{number}.example.com")
}

/// Builds a nominator with two nominations on each of half as many nodes.
fn nominator(count: usize) -> Nominator {
    let mut nominator = Nominator::new(Behavior::Safe);
    for number in 0..count {
        nominator.insert(Nomination::new(&pod(number), &node(number / 2)));
    }
    nominator
}

fn nominations(criterion: &mut Criterion) {
    let (moving, home, away) = (pod(usize::MAX), "node-home", "node-away");
    let (at_home, at_away) = (moving.clone().with_nomination(home), moving.with_nomination(away));
    let mut group = criterion.benchmark_group("nominator/update");
    for count in NOMINATIONS {
        let mut nominator = nominator(count);
        nominator.add(&at_home, &NominatingInfo::Noop, Some(&at_home));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                nominator.update(&at_home, &at_away, Some(&at_away));
                nominator.update(&at_away, &at_home, Some(&at_home));
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("nominator/on_node");
    for count in NOMINATIONS {
        let nominator = nominator(count);
        let node = node(count / 4);
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| nominator.on_node(black_box(&node)).count());
        });
    }
    group.finish();
}

fn two_passes(criterion: &mut Criterion) {
    let nodes: Vec<String> = (0..NODES).map(node).collect();
    let free = cpu(2);
    let asking = pod(usize::MAX);
    let mut group = criterion.benchmark_group("reservation/5000_nodes");
    group.throughput(Throughput::Elements(u64::try_from(NODES).expect("a small number")));
    for count in [0, 1_000, 10_000, 100_000] {
        let nominator = nominator(count);
        group.bench_function(BenchmarkId::new("two_pass", count), |bencher| {
            let fit = |running: &[&Nomination]| {
                if running.len() < 2 { NodeFit::Fits } else { NodeFit::Rejected(()) }
            };
            bencher.iter(|| {
                let fits = |node: &&String| asking.filter_with_nominated_pods(nominator.on_node(node), fit).fits();
                nodes.iter().filter(fits).count()
            });
        });
        group.bench_function(BenchmarkId::new("resources", count), |bencher| {
            bencher.iter(|| {
                let fits = |node: &&String| asking.fits_unreserved_resources(&free, nominator.on_node(node));
                nodes.iter().filter(fits).count()
            });
        });
    }
    group.finish();
}

fn cycles(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduler/place_and_bind");
    for count in NOMINATIONS {
        let mut tracker = NominationTracker::new(NominationOptions::new(Profile::V1_37, Behavior::Safe));
        for number in 0..count {
            let hinted = pod(number).with_nomination(&node(number / 2));
            tracker.handle(TrackerInput::PodObserved(hinted)).expect("always possible");
        }
        let waiting = pod(usize::MAX);
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                tracker.handle(TrackerInput::PodObserved(waiting.clone())).expect("always possible");
                tracker.handle(TrackerInput::CycleSucceeded(Assumed::new(&waiting.key, "node-0"))).expect("it waits");
                tracker.handle(TrackerInput::Bound { pod: waiting.key.clone() }).expect("it is assumed");
                tracker.handle(TrackerInput::PodDeleted { uid: waiting.key.uid.clone() }).expect("always possible");
            });
        });
    }
    group.finish();
}

fn views(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("view/nodes");
    for count in [100, 1_000, 5_000] {
        let allocatable = json!({"cpu": "8", "memory": "32Gi"});
        let nodes = (0..count)
            .map(|number| json!({"metadata": {"name": node(number)}, "status": {"allocatable": allocatable}}));
        let nodes: Vec<Node> = nodes.map(|node| from_value(node).expect("a node")).collect();
        let pods = (0..count * 4).map(|number| {
            let place = node(number / 4);
            json!({
                "metadata": {"namespace": "default", "name": format!("pod-{number}"), "uid": format!("uid-{number}")},
                "spec": {"nodeName": if number % 4 == 0 { None } else { Some(&place) },
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
                "status": {"nominatedNodeName": place},
            })
        });
        let pods: Vec<Pod> = pods.map(|pod| from_value(pod).expect("a pod")).collect();
        group.throughput(Throughput::Elements(u64::try_from(count).expect("a small number")));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let objects = ClusterObjects::new(&nodes, &pods);
                let view = ClusterView::new(objects, &ClusterViewOptions::default()).expect("readable");
                view.nodes().filter(|node| node.unremovable_reasons().is_empty()).count()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, nominations, two_passes, cycles, views);
criterion_main!(benches);
