//! Cost of readiness: the filter by number of nodes and gates, an idle step by number of gates.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![expect(clippy::expect_used, reason = "a benchmark stops where its input is wrong")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use readiness::{EvaluatorRole, FilterOptions, GatedNode, GatedPodView, NodeState, Policy, filter, step};
use serde_json::{Value, from_value, json};

const NODES: [usize; 3] = [50, 500, 5_000];
const GATES: [usize; 4] = [1, 4, 16, 64];

/// Returns a node with all gates True, except the last gate of every other node, among the conditions of kubelet.
fn node(index: usize, gates: usize) -> GatedNode {
    let name = |gate: usize| format!("agent-{gate}.example.com/Ready");
    let list: Vec<Value> = (0..gates)
        .map(|gate| json!({"conditionType": name(gate), "timeoutSeconds": 180, "failureAction": "BypassWithWarning"}))
        .collect();
    let own = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    let own = own.iter().map(|kind| json!({"type": kind, "status": "True"}));
    let met = gates - index % 2;
    let reports = (0..met).map(|gate| json!({"type": name(gate), "status": "True", "reason": "Ok"}));
    let conditions: Vec<Value> = own.chain(reports).collect();
    let labels: serde_json::Map<String, Value> =
        (0..gates).map(|gate| (format!("readiness-gate.{}", name(gate)), json!("true"))).collect();
    from_value(json!({"metadata": {"name": format!("node-{index}"), "labels": labels},
        "spec": {"readinessGates": list}, "status": {"conditions": conditions}}))
    .expect("a node")
}

fn filters(criterion: &mut Criterion) {
    let (options, pod) = (FilterOptions::kep(), Pod::default());
    let allowed = |nodes: &[GatedNode]| {
        nodes.iter().filter(|node| filter(options, &node.view(), GatedPodView::new(&pod)).is_allowed()).count()
    };
    let mut group = criterion.benchmark_group("filter/nodes_with_16_gates");
    for count in NODES {
        let nodes: Vec<GatedNode> = (0..count).map(|index| node(index, 16)).collect();
        assert_eq!(allowed(&nodes), count / 2);
        group.throughput(Throughput::Elements(u64::try_from(count).expect("a small number")));
        group.bench_with_input(BenchmarkId::from_parameter(count), &nodes, |bencher, nodes| {
            bencher.iter(|| allowed(black_box(nodes)));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("filter/gates_of_one_node");
    for gates in GATES {
        let nodes = [node(0, gates)];
        group.bench_with_input(BenchmarkId::from_parameter(gates), &nodes, |bencher, nodes| {
            bencher.iter(|| allowed(black_box(nodes)));
        });
    }
    group.finish();
}

fn steps(criterion: &mut Criterion) {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("an instant");
    let mut group = criterion.benchmark_group("step/without_news");
    for gates in GATES {
        let node = node(0, gates);
        let mut state = step(&Policy::kep(), EvaluatorRole::Combined, &node.view(), now, NodeState::default()).state;
        group.throughput(Throughput::Elements(u64::try_from(gates).expect("a small number")));
        group.bench_with_input(BenchmarkId::from_parameter(gates), &node, |bencher, node| {
            bencher.iter(|| {
                let step = step(
                    &Policy::kep(),
                    EvaluatorRole::Combined,
                    &black_box(node).view(),
                    now,
                    std::mem::take(&mut state),
                );
                assert!(step.writes.is_empty() && step.verdict.schedulable);
                state = step.state;
            });
        });
    }
    group.finish();
}

criterion_group!(benches, filters, steps);
criterion_main!(benches);
