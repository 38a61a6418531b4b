//! Writes with the answer of a real API server, in the shared corpus: `replay` accepts, refuses and stores the same.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod replies;
mod shared_corpus;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use replies::replies;
use shared_corpus::shared_corpus;

/// Namespaces of these objects have the label for admin access.
const ADMINS: [&str; 3] = ["admin", "t-admin", "alloc4"];

/// Answers that may differ are those about CEL expressions, which have a table of their own.
fn is_about_cel(case: &Value) -> bool {
    case["muts"].to_string().contains("cel.expression")
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_writes() {
    let corpus = shared_corpus("validation");
    let packed = fs::read(corpus.join("cases.jsonl.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let gates: Value = serde_json::from_slice(&fs::read(corpus.join("gates.json")).unwrap()).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases: Vec<&Value> = cases.iter().filter(|case| is_comparable(case)).collect();
    assert!(!cases.is_empty());
    let lines: Vec<String> = cases.iter().map(|case| question(case, &gates).to_string()).collect();
    let mut wrong = Vec::new();
    for (case, reply) in cases.iter().zip(replies(&lines)) {
        let reply: Value = serde_json::from_str(&reply).unwrap();
        wrong.extend(difference(case, &reply).map(|what| format!("{}: {what}", case["id"])));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Returns false for objects with a `null`, which types of Kubernetes in Rust can't express, for opaque parameters that
/// the server counts with the spaces in them, and for CEL.
fn is_comparable(case: &Value) -> bool {
    !has_null(&case["new"])
        && (case["old"].is_null() || !has_null(&case["old"]))
        && !is_at_limit(&case["new"])
        && !is_about_cel(case)
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

fn is_at_limit(value: &Value) -> bool {
    const LIMIT: usize = 10 * 1024;
    match value {
        Value::Array(items) => items.iter().any(is_at_limit),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let size = value.to_string().len();
            is_at_limit(value) || name == "parameters" && size <= LIMIT && size + 2 > LIMIT
        }),
        _ => false,
    }
}

fn question(case: &Value, gates: &Value) -> Value {
    let kind = match case["kind"].as_str().unwrap() {
        "status" => "claim_status",
        "template" => "claim_template",
        "rule" => "taint_rule",
        kind => kind,
    };
    let is_admin = ADMINS.contains(&case["new"]["metadata"]["name"].as_str().unwrap_or_default());
    let labels = if is_admin { json!({"resource.kubernetes.io/admin-access": "true"}) } else { json!({}) };
    json!({"op": format!("alloc.validate_{kind}"), "input": {
        "profile": "v1.37", "features": gates, "now": "2026-11-22T18:48:38Z",
        "namespace": {"metadata": {"name": "default", "labels": labels}}, "old": case["old"], "new": case["new"]}})
}

fn difference(case: &Value, reply: &Value) -> Option<String> {
    let expected = &case["expect"];
    let errors = reply["ok"]["errors"].as_array();
    let accepted = errors.is_some_and(Vec::is_empty);
    if accepted != (expected["answer"] == "accepted") {
        return Some(format!("{} by the server, {reply}", expected["answer"]));
    }
    if accepted {
        let stored = |object: &Value| bare(&json!({"spec": object["spec"], "status": object["status"]}));
        let (ours, theirs) = (stored(&reply["ok"]["object"]), stored(&expected["stored"]));
        return (ours != theirs && !keeps_its_sign(case) && !is_filled_in_when_read(case))
            .then(|| format!("stored {ours}, by the server {theirs}"));
    }
    let pair = |field: &Value, kind: &Value| (field.as_str().unwrap().to_owned(), kind.as_str().unwrap().to_owned());
    let ours: BTreeSet<_> = errors.into_iter().flatten().map(|error| pair(&error["field"], &error["type"])).collect();
    let theirs: BTreeSet<_> =
        expected["errors"].as_array().into_iter().flatten().map(|error| pair(&error[0], &error[1])).collect();
    let is_left_out = |(field, _): &(String, String)| field.contains("adminAccess") || field.contains("conditions");
    let comparable = expected["answer"] == "refused"
        && case["kind"] != "template"
        && !ours.iter().chain(&theirs).any(is_left_out)
        // As declared in 1.37, effects of stored taints are looked at again when another device changes.
        && !ours.difference(&theirs).all(|(field, _)| case["op"] == "ratchet" && field.ends_with(".effect"));
    (comparable && ours != theirs).then(|| format!("{ours:?}, by the server {theirs:?}"))
}

/// A quantity such as `+5` stays as it is in Kubernetes; docs/divergences.md has it.
fn keeps_its_sign(case: &Value) -> bool {
    case["new"].to_string().contains("\"+5\"")
}

/// The zero time of a taint is not written: the answer to the write has no time, and an object that is read once more, as
/// these were, has the time of the reading.
fn is_filled_in_when_read(case: &Value) -> bool {
    case["new"].to_string().contains(r#""timeAdded":"0001-01-01T00:00:00Z""#)
}

/// Returns an object without what is empty, and with times of taints by the clock of whoever wrote them.
fn bare(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| match value.as_str() {
                Some(time) if name == "timeAdded" && time.starts_with("2026-11-22T") => (name.clone(), json!("now")),
                _ => (name.clone(), bare(value)),
            });
            kept.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}
