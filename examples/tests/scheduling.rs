//! Decisions about pods through the replay door: the project's own cases and, if they exist, the shared vectors.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod replies;

use std::fs;
use std::path::Path;

use dra_alloc::Component;
use dra_alloc::kubelet::ClaimCache;
use dra_attrs::Profile;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::{Assumed, Behavior, BindingClaim, Command, NominationOptions, NominationTracker, PodSnapshot, TrackerInput};
use serde_json::{Value, from_value, json};

use replies::replies;

fn answers(requests: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    replies(&lines).iter().map(|reply| serde_json::from_str(reply).unwrap()).collect()
}

/// Returns a value without what counts as absent: null, false, and what is empty.
fn stripped(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), stripped(value)));
            fields.filter(|(_, value)| !is_absent(value)).collect()
        }
        Value::Array(items) => items.iter().map(stripped).collect(),
        scalar => scalar.clone(),
    }
}

fn is_absent(value: &Value) -> bool {
    [json!(null), json!(false), json!([]), json!({}), json!("")].contains(value)
}

/// Returns true if an answer has what is expected, key by key.
fn agrees(got: &Value, expected: &Value) -> bool {
    match expected {
        Value::Object(fields) if got.is_object() => fields.iter().all(|(name, value)| {
            let (got, expected) = (stripped(&got[name.as_str()]), stripped(value));
            got == expected || is_absent(&got) && is_absent(&expected)
        }),
        _ => stripped(got) == stripped(expected),
    }
}

#[test]
fn shared_vectors() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/scheduling/vectors.json");
    let Ok(text) = fs::read_to_string(&file) else {
        return println!("skipped: no {}", file.display());
    };
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let rows: Vec<&Value> = vectors["rows"].as_array().unwrap().iter().filter(|row| is_answered(row)).collect();
    let request = |row: &&Value| {
        let op = format!("scheduling.{}", row["op"].as_str().unwrap());
        json!({"id": row["id"], "op": op, "input": row["input"]})
    };
    let requests: Vec<Value> = rows.iter().map(request).collect();
    let differ = rows
        .iter()
        .zip(answers(&requests))
        .filter(|(row, answer)| answer.get("ok").is_none_or(|ok| !agrees(&ok["result"], &row["expect"])));
    let differ: Vec<String> = differ.map(|(row, answer)| format!("{} {}: {answer}", row["id"], row["note"])).collect();
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
    assert!(rows.len() > 120);
}

/// Operations that this door has.
fn is_answered(row: &Value) -> bool {
    const OPERATIONS: [&str; 21] = [
        "name",
        "group_name",
        "bind_to",
        "is_for_pod",
        "is_for_group",
        "is_reserved",
        "can_reserve",
        "class_cache",
        "requests",
        "node_allocatable",
        "cycle",
        "binding",
        "score",
        "normalize",
        "claim_hint",
        "pod_hint",
        "controller",
        "evict",
        "ready",
        "utilization",
        "template",
    ];
    OPERATIONS.contains(&row["op"].as_str().unwrap())
}

#[test]
fn refusals_name_the_field() {
    let pod = json!({"metadata": {"name": "p"}});
    let rows = [
        ("name", json!({}), "pod"),
        ("cycle", json!({"pod": pod, "steps": ["Fly"]}), "steps[0]"),
        ("cycle", json!({"pod": pod, "steps": ["Pod:q"]}), "steps[0]"),
        ("cycle", json!({"pod": pod, "steps": [], "fail": ["update resourceclaims=never"]}), "fail[0]"),
        ("cycle", json!({"pod": pod, "steps": [], "nodes": [{"metadata": 7}]}), "nodes[0].metadata"),
        ("is_for_pod", json!({"pod": pod, "claim": {}, "gates": {"DRAWorkloadResourceClaim": true}}), "gates"),
        ("score", json!({"results": [{"devices": 1}]}), "results[0].devices"),
        ("binding", json!({"claim": {}, "now": "soon"}), "now"),
        ("class_cache", json!({"events": [{"add": {"spec": 1}}]}), "events[0].add.spec"),
        ("requests", json!({"pod": pod, "classes": [{"spec": 1}]}), "classes[0].spec"),
        ("node_allocatable", json!({"pod": pod, "node": {}, "requested": {"cpu": "much"}}), "requested"),
    ];
    let requests = rows.each_ref().map(|(op, input, _)| json!({"op": format!("scheduling.{op}"), "input": input}));
    for ((op, input, field), answer) in rows.iter().zip(answers(&requests)) {
        assert_eq!(
            (&answer["error"]["kind"], &answer["error"]["field"]),
            (&json!("InvalidInput"), &json!(field)),
            "{op} {input}"
        );
    }
}

/// The number of lines that docs/embedding.md promises for a scheduler of pods, without imports and blank lines.
#[test]
fn the_scheduler_of_pods_is_short() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/embedding.md");
    let text = fs::read_to_string(path).unwrap();
    let chapter = text.split("## A scheduler of pods").nth(1).unwrap();
    let code = chapter.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let statements = code.split_inclusive('\n').filter(|line| !line.trim().is_empty());
    let mut within = false;
    let counted = statements.filter(|line| {
        let is_import = within || line.starts_with("use ");
        within = is_import && !line.trim_end().ends_with(';');
        !is_import
    });
    let lines = counted.count();
    assert!((50..150).contains(&lines), "{lines}");
}

/// A claim that two pods share, on the nomination tracker's commands: the kubelet accepts both pods.
#[test]
fn both_pods_of_a_shared_claim_are_reserved_and_prepared() {
    let pod = |name: &str| -> Pod {
        from_value(json!({"metadata": {"namespace": "default", "name": name, "uid": name},
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))
        .unwrap()
    };
    let mut claim: ResourceClaim =
        from_value(json!({"metadata": {"namespace": "default", "name": "c", "uid": "c"}})).unwrap();
    let mut tracker = NominationTracker::new(NominationOptions::new(Profile::V1_37, Behavior::Safe));
    let situations = [("a", BindingClaim::Chosen("c".to_owned())), ("b", BindingClaim::Shared("c".to_owned()))];
    for (name, situation) in situations {
        let snapshot = PodSnapshot::from_pod(&pod(name)).unwrap();
        tracker.handle(TrackerInput::PodObserved(snapshot.clone())).unwrap();
        let assumed = Assumed::new(&snapshot.key, "node-1").with_claims(vec![situation]);
        for command in tracker.handle(TrackerInput::CycleSucceeded(assumed)).unwrap().commands {
            let status = claim.status.get_or_insert_default();
            let pod = match command {
                Command::PersistAllocation { pod, .. } => {
                    status.allocation = from_value(json!({"devices": {"results": [
                        {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]}}))
                    .unwrap();
                    pod
                }
                Command::PersistReservation { pod, .. } => pod,
                _ => continue,
            };
            let consumer = json!({"resource": "pods", "name": pod.name, "uid": pod.uid});
            status.reserved_for.get_or_insert_default().push(from_value(consumer).unwrap());
        }
    }
    let options = Component::of(Profile::V1_37);
    let mut cache = ClaimCache::default();
    for name in ["a", "b"] {
        let plan = cache.plan_prepare(&pod(name), std::slice::from_ref(&claim), |_| true, options);
        assert!(plan.is_ok(), "{name}: {plan:?}");
    }
}

#[test]
fn preemption_says_who_goes_or_who_is_in_the_way() {
    let claim = |name: &str, status: Value| {
        json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "status": status, "spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
    };
    let held = json!({"allocation": {"devices": {"results": [
            {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "g0"}]}},
        "reservedFor": [{"resource": "pods", "name": "v", "uid": "v"}]});
    let victim = json!({"metadata": {"namespace": "ns", "name": "v", "uid": "v"},
        "spec": {"containers": [], "nodeName": "n", "priority": 10}});
    let preemptor = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p"}, "spec": {"containers": [],
        "priority": 100, "resourceClaims": [{"name": "c", "resourceClaimName": "wanted"}]}});
    let input = json!({"profile": "v1.37", "features": {"DRAPreemption": true}, "now": "2026-01-01T00:00:00Z",
        "pod": preemptor, "pods": [victim], "nodes": [{"metadata": {"name": "n"}}],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "claims": [claim("held", held), claim("wanted", json!({}))],
        "slices": [{"metadata": {"name": "n"}, "spec": {"driver": "gpu.example.com", "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "g0"}]}}]});
    let with = |field: &str, value: Value| {
        let mut changed = input.clone();
        changed[field] = value;
        changed
    };
    let mut important = input.clone();
    important["pods"][0]["spec"]["priority"] = json!(100);
    let room = json!({"outcome": "room", "node": "n", "victims": ["ns/v"], "violations": 0, "freed": ["ns/held"],
        "results": {"ns/wanted": ["r=gpu.example.com/n/g0"]}});
    let in_the_way = json!({"outcome": "none", "reason": "blocked", "blockers": [{"kind": "priority", "pod": "ns/v"}]});
    let never = {
        let mut pod = input["pod"].clone();
        pod["spec"]["preemptionPolicy"] = json!("Never");
        pod
    };
    let message = "preemption: not eligible due to preemptionPolicy=Never.";
    let table = [
        ("preempt", input.clone(), room),
        ("preempt", with("harm", json!("cost")), json!({"outcome": "room", "value": [0, 1, 1], "proof": "least"})),
        ("preempt", important, in_the_way),
        ("preempt", with("features", json!({})), json!({"outcome": "none", "reason": "gate_off"})),
        (
            "preempt",
            with("pod", never.clone()),
            json!({"outcome": "none", "reason": "may_not_preempt", "message": message}),
        ),
        (
            "may_preempt",
            json!({"pod": never}),
            json!({"eligible": false, "reason": "policy_never", "message": message}),
        ),
        ("may_preempt", json!({"pod": input["pod"]}), json!({"eligible": true, "reason": null, "message": null})),
    ];
    let requests: Vec<Value> =
        table.iter().map(|(op, input, _)| json!({"op": format!("scheduling.{op}"), "input": input})).collect();
    for (reply, (op, input, expected)) in answers(&requests).iter().zip(&table) {
        assert!(agrees(&reply["ok"]["result"], expected), "{op} {input}: {reply}");
    }
}
