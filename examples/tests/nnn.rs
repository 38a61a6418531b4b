//! Operations `nnn.*` of the replay door, on recorded rows and on the events of a slow volume.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod replies;
mod shared_corpus;

use std::fs;

use serde_json::{Value, json};

use replies::replies;
use shared_corpus::shared_corpus;

fn answer(op: &str, input: &Value) -> Value {
    let request = json!({"id": 1, "op": op, "input": input});
    serde_json::from_str(&replies(&[request.to_string()])[0]).unwrap()
}

fn ok(op: &str, input: &Value) -> Value {
    let answer = answer(op, input);
    assert_eq!(answer["error"], Value::Null, "{op} {input}");
    answer["ok"].clone()
}

fn refused(op: &str, input: &Value, field: &str) {
    let error = &answer(op, input)["error"];
    assert_eq!((error["kind"].as_str(), error["field"].as_str()), (Some("InvalidInput"), Some(field)), "{op} {input}");
}

const TABLES: [(&str, &str); 5] = [
    ("update", "nnn.nominator_update"),
    ("binding_start", "nnn.binding_start"),
    ("cycle", "nnn.cycle_result"),
    ("groups", "nnn.prebind_groups"),
    ("needs_patch", "nnn.needs_patch"),
];

fn check_rows(vectors: &Value) {
    for (table, op) in TABLES {
        let rows = vectors[table].as_array().unwrap();
        assert!(rows.len() >= 7, "{table}");
        for row in rows {
            let mut input = row.clone();
            let result = input.as_object_mut().unwrap().remove("result").unwrap();
            input["profile"] = json!("v1.37");
            assert_eq!(ok(op, &input)["result"], result, "{op} {row}");
        }
    }
}

#[test]
fn recorded_rows() {
    check_rows(&serde_json::from_str(include_str!("../../nnn/tests/data/vectors.json")).unwrap());
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_rows() {
    check_rows(&serde_json::from_slice(&fs::read(shared_corpus("nnn-vectors.json")).unwrap()).unwrap());
}

#[test]
fn outcomes_with_a_node() {
    let result = |outcome: &str, profile: &str| {
        ok("nnn.cycle_result", &json!({"outcome": outcome, "node": "n", "profile": profile}))["result"].clone()
    };
    assert_eq!(result("postfilter_nominated", "v1.37"), json!([1, "n"]));
    assert_eq!(result("success", "v1.37"), json!([0, ""]));
    assert_eq!(result("postfilter_error", "v1.37"), json!([0, ""]));
    assert_eq!(result("postfilter_error", "kep"), json!([1, ""]));
    refused("nnn.cycle_result", &json!({"outcome": "unheard of"}), "outcome");
    refused("nnn.needs_patch", &json!({"mode": 2}), "mode");
    refused("nnn.binding_start", &json!({"host": "h", "preflight": [1]}), "preflight[0]");
    refused("nnn.binding_start", &json!({"host": ""}), "host");
}

#[test]
fn groups_without_the_gate() {
    let plugins = json!([["a", true, true], ["b", false, true]]);
    let groups = |gate: Value| ok("nnn.prebind_groups", &json!({"plugins": plugins, "gate": gate}))["result"].clone();
    assert_eq!(groups(Value::Null), json!([["b"]]));
    assert_eq!(groups(json!(false)), json!([["a"], ["b"]]));
}

fn pod(uid: &str, version: u32, nnn: &str) -> Value {
    json!({"pod": {
        "metadata": {"namespace": "default", "name": uid, "uid": uid, "resourceVersion": version.to_string()},
        "spec": {"priority": 5, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"nominatedNodeName": nnn},
    }})
}

fn types(step: &Value) -> Vec<&str> {
    step["commands"].as_array().unwrap().iter().map(|command| command["type"].as_str().unwrap()).collect()
}

const GATES: &str = "NominatedNodeNameForExpectation";

#[test]
fn a_slow_volume() {
    let steps = json!([
        pod("p", 1, ""),
        {"cycle_succeeded": {"pod": "p", "node": "n", "preflight": ["Skip", "Success"], "claims": [{"uid": "c"}]}},
        {"patch_answered": {"pod": "p", "resource_version": "2"}},
        pod("p", 2, "n"),
        {"cycle_failed": {"pod": "p", "outcome": "postfilter_no_candidates"}},
        {"restart": {"gates": {}}},
        {"cycle_succeeded": {"pod": "p", "node": "n", "preflight": ["Success"]}},
        {"bound": {"pod": "p"}},
        {"bound": {"pod": "p"}},
        {"pod_deleted": {"pod": "p"}},
    ]);
    let shown = ok("nnn.run", &json!({"profile": "v1.37", "gates": {GATES: true}, "steps": steps}));
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 10);
    assert_eq!(types(&steps[1]), ["PatchNnn", "PersistAllocation", "Bind"]);
    assert_eq!(
        steps[1]["commands"][0],
        json!({"type": "PatchNnn", "pod": {"namespace": "default", "name": "p", "uid": "p"}, "node": "n"})
    );
    assert_eq!(steps[1]["state"]["pods"]["p"], json!({"assumed_announced": {"node": "n"}}));
    assert_eq!(steps[3]["notices"], json!([]), "its own write is no foreign one");
    assert_eq!(steps[4]["error"]["kind"], "IllegalTransition");
    assert_eq!(steps[4]["state"], steps[3]["state"], "an illegal event changes nothing");
    assert_eq!(steps[5]["state"]["nominations"], json!({"n": ["p"]}), "rebuilt from the status");
    assert_eq!(types(&steps[6]), ["Release", "None", "Bind"]);
    assert_eq!(steps[6]["commands"][1]["reason"], "GateOff");
    assert_eq!(steps[7]["state"]["pods"]["p"], json!({"bound": {"node": "n"}}));
    assert_eq!(steps[8]["error"]["kind"], "IllegalTransition");
    assert_eq!(steps[9]["state"], json!({"pods": {}, "nominations": {}}));
}

#[test]
fn a_policy_by_name_or_by_its_parts() {
    let steps = json!([
        pod("p", 1, "x"),
        {"cycle_failed": {"pod": "p", "outcome": "postfilter_nominated", "node": "z"}},
        pod("p", 2, "x"),
    ]);
    let nominations = |policy: Value| {
        let input = json!({"profile": "v1.37", "policy": policy, "steps": steps});
        ok("nnn.run", &input)["steps"][2]["state"]["nominations"].clone()
    };
    assert_eq!(nominations(json!("safe")), json!({"z": ["p"]}));
    assert_eq!(nominations(json!("upstream")), json!({"x": ["p"]}));
    assert_eq!(nominations(json!({"clearing": "never"})), json!({"z": ["p"]}));
    assert_eq!(nominations(json!({"base": "upstream", "clearing": "never"})), json!({"x": ["p"]}));
}

#[test]
fn refusals_of_a_run_name_the_step() {
    let steps = |step: Value| json!({"steps": [pod("p", 1, ""), step]});
    refused("nnn.run", &steps(json!({"bound": {"pod": "q"}})), "steps[1].bound.pod");
    refused("nnn.run", &steps(json!({"pod": {"metadata": {"name": "q"}}})), "steps[1].pod");
    refused(
        "nnn.run",
        &steps(json!({"patch_answered": {"pod": "p", "resource_version": "x"}})),
        "steps[1].patch_answered.resource_version",
    );
    refused("nnn.run", &steps(json!({"member_failed": {"pod": "p", "mode": 7}})), "steps[1].member_failed.mode");
    let nowhere = json!({"cycle_succeeded": {"pod": "p", "node": ""}});
    refused("nnn.run", &steps(nowhere), "steps[1].cycle_succeeded.node");
    let succeeded = json!({"cycle_failed": {"pod": "p", "outcome": "success", "node": "n"}});
    refused("nnn.run", &steps(succeeded), "steps[1].cycle_failed.outcome");
    let restart = json!({"restart": {"policy": {"clearing": "x"}}});
    refused("nnn.run", &steps(restart), "steps[1].restart.policy.clearing");
}

#[test]
fn refusals_of_a_policy_name_the_knob() {
    refused("nnn.run", &json!({"policy": {"clearing": "x"}}), "policy.clearing");
    refused("nnn.run", &json!({"policy": {"base": "x"}}), "policy.base");
    refused("nnn.run", &json!({"policy": {"pending_writes": "ignored"}}), "policy.pending_writes");
    for policy in [json!("x"), json!(1), json!([])] {
        refused("nnn.run", &json!({"policy": policy}), "policy");
    }
}
