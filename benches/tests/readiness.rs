//! Allocations: at most four in a step that finds nothing new, for any number of gates; none in the filter of an open node.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use readiness::{EvaluatorRole, FilterOptions, GatedNode, GatedPodView, NodeState, Policy, filter, step};
use serde_json::{Value, from_value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Returns a node that is ready, with `status` as the status of every gate.
fn node(gates: usize, status: &str) -> GatedNode {
    let name = |gate: usize| format!("agent-{gate}.example.com/Ready");
    let taint = json!({"key": "agent", "effect": "NoSchedule"});
    let list: Vec<Value> = (0..gates)
        .map(|gate| json!({"conditionType": name(gate), "timeoutSeconds": 180, "readinessTaint": taint}))
        .collect();
    let reports = (0..gates).map(|gate| json!({"type": name(gate), "status": status, "reason": "Ok"}));
    let conditions: Vec<Value> = reports.chain([json!({"type": "Ready", "status": "True"})]).collect();
    let labels: serde_json::Map<String, Value> =
        (0..gates).map(|gate| (format!("readiness-gate.{}", name(gate)), json!("true"))).collect();
    from_value(json!({"metadata": {"labels": labels}, "spec": {"readinessGates": list},
        "status": {"conditions": conditions}}))
    .unwrap()
}

#[test]
fn what_is_not_news_is_not_allocated() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let _profiler = dhat::Profiler::builder().testing().build();
    let blocks = |work: &mut dyn FnMut()| {
        let before = dhat::HeapStats::get().total_blocks;
        work();
        dhat::HeapStats::get().total_blocks - before
    };
    for policy in [Policy::kep(), Policy::hardened()] {
        for status in ["True", "False"] {
            let counts = [1, 16, 30].map(|gates| {
                let node = node(gates, status);
                let mut state = step(&policy, EvaluatorRole::Combined, &node.view(), now, NodeState::default()).state;
                blocks(&mut || {
                    let step = step(&policy, EvaluatorRole::Combined, &node.view(), now, std::mem::take(&mut state));
                    assert!(step.writes.is_empty());
                    state = step.state;
                })
            });
            println!("{status}: {counts:?} blocks for 1, 16 and 30 gates");
            assert!(counts[1] <= 4, "{counts:?}");
            assert_eq!(counts[1], counts[2], "not one for each gate");
        }
    }
    let (open, pod) = (node(16, "True"), Pod::default());
    let allocated = blocks(&mut || {
        assert!(filter(FilterOptions::kep(), &open.view(), GatedPodView::new(&pod)).is_allowed());
    });
    assert_eq!(allocated, 0);
}
