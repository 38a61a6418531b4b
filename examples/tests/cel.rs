//! Shared table of selectors, if it exists.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use dra_alloc::selector::{Options, Selector, SelectorInput};
use k8s_openapi::api::resource::v1::Device;
use serde_json::{Value, json};

/// Rows that Kubernetes rejects because a feature gate is off for *new* expressions. This project has one environment,
/// that for stored expressions, in which all features are on.
const GATED: [&str; 11] = [
    "includes-function-compilation-error",
    "allow_multiple_allocations_disabled",
    "NewExpressions/consumable=false/list=false/list-attribute",
    "NewExpressions/consumable=false/list=false/includes-function",
    "NewExpressions/consumable=false/list=false/multiple-allocations",
    "NewExpressions/consumable=false/list=false/list-attribute-with-multiple-allocations",
    "NewExpressions/consumable=false/list=true/multiple-allocations",
    "NewExpressions/consumable=false/list=true/list-attribute-with-multiple-allocations",
    "NewExpressions/consumable=true/list=false/list-attribute",
    "NewExpressions/consumable=true/list=false/includes-function",
    "NewExpressions/consumable=true/list=false/list-attribute-with-multiple-allocations",
];

#[test]
fn shared_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/cel.json");
    let Ok(text) = fs::read(file) else {
        println!("skipped: no shared corpus beside the project");
        return;
    };
    let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
    assert!(!rows.is_empty());
    let wrong: Vec<String> = rows.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the difference from the answer of Kubernetes.
fn difference(row: &Value) -> Option<String> {
    let name = row["name"].as_str().unwrap();
    let expected = &row["expected"];
    let expression = row["expression"].as_str().unwrap();
    let gated = GATED.contains(&name);
    let refusal = expected["compileErrorSubstring"].as_str().unwrap_or_default();
    assert!(!gated || !refusal.is_empty(), "{name}: listed as gated, but not refused");
    let selector = match Selector::compile(expression, &Options::stored()) {
        Ok(_) if !refusal.is_empty() && !gated => return Some(format!("{name}: compiled, expected {refusal:?}")),
        Ok(selector) => selector,
        Err(error) => {
            let as_expected = !refusal.is_empty() && error.to_string().contains(refusal);
            return (!as_expected).then(|| format!("{name}: {error}, expected {refusal:?}"));
        }
    };
    if gated {
        return None;
    }
    let mut device = json!({ "name": "device", "attributes": row["attributes"], "capacity": row["capacity"] });
    if row["allowMultipleAllocations"].is_boolean() {
        device["allowMultipleAllocations"] = row["allowMultipleAllocations"].clone();
    }
    let device: Device = serde_json::from_value(device).unwrap();
    let result = selector.matches(SelectorInput { driver: row["driver"].as_str().unwrap(), device: &device });
    let failure = expected["matchErrorSubstring"].as_str().unwrap_or_default();
    let as_expected = match &result {
        Ok(matches) => failure.is_empty() && *matches == expected["match"].as_bool().unwrap_or_default(),
        Err(error) => !failure.is_empty() && error.to_string().contains(failure),
    };
    (!as_expected).then(|| format!("{name}: {result:?}, expected {expected}"))
}
