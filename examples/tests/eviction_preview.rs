//! `scheduler evict`: what taint rules would do, before they are written.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod program;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use program::Run;

fn run(args: &[&str], stdin: &str) -> Run {
    Run::of(env!("CARGO_BIN_EXE_scheduler"), args, stdin)
}

/// Runs the program on manifests and checks that it reports no problem.
fn clean(args: &[&str], stdin: &str) -> Run {
    run(args, stdin).clean()
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn evictable() -> Vec<Value> {
    let claim = |name: &str, device: &str, tolerations: Value| {
        let mut claim = object("ResourceClaim", name, &json!({}));
        claim["metadata"]["namespace"] = json!("default");
        claim["status"] = json!({"reservedFor": [{"resource": "pods", "name": name, "uid": ""}], "allocation": {"devices": {
            "results": [{"request": "r", "driver": "cpu.example.com", "pool": "node-1", "device": device, "tolerations": tolerations}]}}});
        claim
    };
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": "node-1", "containers": [], "resourceClaims": [{"name": "r", "resourceClaimName": name}]}})
    };
    let minute = json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]);
    vec![claim("a", "cpu-0", json!([])), claim("b", "cpu-1", minute), pod("a"), pod("b")]
}

fn taint_rule(folder: &TempDir, selector: &Value) -> PathBuf {
    let rule = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "ill"},
        "spec": {"deviceSelector": selector, "taint": {"key": "example.com/ill", "effect": "NoExecute"}}});
    let path = folder.path().join("rule.json");
    fs::write(&path, rule.to_string()).unwrap();
    path
}

#[test]
fn a_taint_rule_is_looked_at_before_it_is_written() {
    let (manifests, folder) = (list(&evictable()), TempDir::new().unwrap());
    let rule = taint_rule(&folder, &json!({"driver": "cpu.example.com", "pool": "node-1"}));
    let args = ["evict", rule.to_str().unwrap(), "-", "--now", "2026-01-01T00:00:00Z"];
    assert_eq!(
        clean(&args, &manifests).stdout,
        "rule ill: taint example.com/ill with effect NoExecute\n\
         \x20 warning: the deviceSelector selects no published device\n\
         \x20 devices: 0 published, 2 allocated\n\
         \x20 evicts pods: 2\n\
         \x20   in namespace default: 2\n\
         \x20   2026-01-01T00:00:00Z default/a\n\
         \x20   2026-01-01T00:01:00Z default/b\n\
         \x20 status: 2 pods need to be evicted in 1 namespace.\n"
    );
    let json = clean(&[&args[..], &["-o", "json"]].concat(), &manifests).json();
    let answer = &json["rules"][0];
    assert_eq!(answer["namespaces"], json!({"default": 2}));
    assert_eq!(answer["times"], json!({"2026-01-01T00:00:00Z": 1, "2026-01-01T00:01:00Z": 1}));
    let none = json!("the deviceSelector selects no published device");
    assert_eq!((&answer["warning"], &answer["pods"][1]["name"]), (&none, &json!("b")));
    let slice = object(
        "ResourceSlice",
        "s",
        &json!({"driver": "cpu.example.com", "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "cpu-0"}]}),
    );
    let json = clean(&[&args[..], &["-o", "json"]].concat(), &list(&[evictable(), vec![slice]].concat())).json();
    assert_eq!(json["rules"][0]["warning"], Value::Null);
}

#[test]
fn a_rule_that_no_api_server_stores_has_no_preview() {
    let rule = |name: &str, taint: Value| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": name},
            "spec": {"deviceSelector": {"driver": "cpu.example.com"}, "taint": taint}})
    };
    let folder = TempDir::new().unwrap();
    let rules = folder.path().join("rules.json");
    let typo = json!({"key": "example.com/ill", "effect": "NoExec"});
    let good = json!({"key": "example.com/ill", "effect": "NoExecute"});
    let texts = [rule("typo", typo), rule("none", json!({})), rule("good", good)].map(|rule| rule.to_string());
    fs::write(&rules, texts.join("\n---\n")).unwrap();
    let args = ["evict", rules.to_str().unwrap(), "-"];
    let answer = run(&args, &list(&evictable()));
    assert_eq!(answer.code, 1);
    let refused = "rule typo:\n  the API server would refuse it: spec.taint.effect: Unsupported value: \"NoExec\": ";
    assert!(answer.stdout.starts_with(refused), "{}", answer.stdout);
    assert!(answer.stdout.contains("  the API server would refuse it: spec.taint.effect: Required value\n"));
    assert_eq!(answer.stdout.matches("evicts pods").count(), 1, "the good one alone: {}", answer.stdout);
    let json = run(&[&args[..], &["-o", "json"]].concat(), &list(&evictable())).json();
    assert_eq!((&json["rules"][0]["rule"], json["rules"][1]["refused"].as_array().unwrap().len()), (&json!("typo"), 3));
    // Such a rule has no effect elsewhere, and that is said.
    let placed =
        run(&["-"], &list(&[evictable(), vec![rule("typo", json!({"key": "a", "effect": "NoExec"}))]].concat()));
    assert!(
        placed.stderr.contains("DeviceTaintRule typo: an API server refuses it, and it has no effect here: spec.taint")
    );
}

#[test]
fn rules_that_select_too_much_are_warned_about() {
    let folder = TempDir::new().unwrap();
    let rule = taint_rule(&folder, &json!({}));
    let text = clean(&["evict", rule.to_str().unwrap(), "-"], &list(&evictable())).stdout;
    assert!(text.contains("  warning: the empty deviceSelector selects every device of the cluster"), "{text}");
    let missing = run(&["evict", "/no/such/file.yaml", "-"], &list(&evictable()));
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stderr.contains("/no/such/file.yaml: no DeviceTaintRule"), "{}", missing.stderr);
    assert_eq!(run(&["evict"], "").code, 2, "a file is needed");
    assert_eq!(run(&["evict", rule.to_str().unwrap(), "--now", "soon"], "").code, 2);
    assert_eq!(run(&["--live", "evict", rule.to_str().unwrap()], "").code, 2, "manifests only");
}
