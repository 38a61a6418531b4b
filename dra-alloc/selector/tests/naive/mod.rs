//! A second evaluator of selectors: typed expressions made from bytes, and their values by plain recursion.
//!
//! An expression is a tree of its own with a text; the evaluator reads the tree, the library the text. Nothing is shared,
//! and nothing here is fast, lazy or shortened: names are bound to expressions, loops are written out.
//!
//! Tests and a fuzz target use the same file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::float_arithmetic, clippy::float_cmp, clippy::cast_precision_loss, reason = "the language has doubles")]
#![allow(clippy::manual_try_fold, reason = "later rounds of a loop can replace an error")]

mod evaluate;
mod expression;
mod generate;

use std::collections::BTreeMap;

use dra_selector::{EvaluationError, Options, Selector, SelectorInput, Value};
use evaluate::{Fault, Plain};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

/// Driver of the device, and the domain of its attributes.
const DRIVER: &str = "gpu.example";

/// Compares the two evaluators on the expression that some bytes stand for.
pub(crate) fn compare(bytes: &[u8]) {
    let expression = generate::expression(bytes);
    let text = expression.to_string();
    let selector = Selector::compile_any(&text, &Options::stored()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let device = device();
    let found = selector.evaluate(SelectorInput::new(DRIVER, &device)).result;
    let is_error = found.is_err();
    // `sort` and `distinct` of an error end upstream's evaluation as a whole.
    let is_internal = |error: &EvaluationError| error.to_string().starts_with("internal error");
    if found.as_ref().is_err_and(|error| *error == EvaluationError::CostExceeded || is_internal(error)) {
        return;
    }
    let expected = evaluate::evaluate(&expression, &attributes(), &BTreeMap::new()).map_err(quoted);
    assert_eq!(found.map(|value| plain(&value)).map_err(|error| kind(&error)), expected, "{text}");
    let repeated = selector.evaluate(SelectorInput::new(DRIVER, &device)).result;
    assert_eq!(repeated.is_err(), is_error, "{text}");
}

fn device() -> Device {
    let attribute = |name: &str, attribute| (name.to_owned(), attribute);
    let attributes = [
        attribute("count", DeviceAttribute { int: Some(3), ..Default::default() }),
        attribute("gpu.example/model", DeviceAttribute { string: Some("h100-ä".to_owned()), ..Default::default() }),
        attribute("healthy", DeviceAttribute { bool: Some(true), ..Default::default() }),
        attribute("nodes", DeviceAttribute { ints: Some(vec![0, 4, 4]), ..Default::default() }),
    ];
    Device { attributes: Some(attributes.into()), ..Default::default() }
}

/// Returns the same attributes for the evaluator here.
fn attributes() -> Plain {
    let entries = [
        ("count", Plain::Int(3)),
        ("model", Plain::Text("h100-ä".to_owned())),
        ("healthy", Plain::Bool(true)),
        ("nodes", Plain::List(vec![Plain::Int(0), Plain::Int(4), Plain::Int(4)])),
    ];
    Plain::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn plain(value: &Value) -> Plain {
    match value {
        Value::Bool(value) => Plain::Bool(*value),
        Value::Int(number) => Plain::Int(*number),
        Value::Uint(number) => Plain::Uint(*number),
        Value::Double(number) => Plain::Double(*number),
        Value::String(text) => Plain::Text(text.clone()),
        Value::List(items) => Plain::List(items.iter().map(plain).collect()),
        Value::Map(entries) => Plain::Map(
            entries
                .iter()
                .map(|(key, value)| (key.to_string().replace("string ", "").replace('"', ""), plain(value)))
                .collect(),
        ),
        Value::Optional(held) => Plain::Optional(held.as_ref().map(|held| Box::new(plain(held)))),
        other => panic!("no such values are made: {other}"),
    }
}

/// Cuts a key that an error would quote in full. The library quotes 512 characters.
fn quoted(fault: Fault) -> Fault {
    match fault {
        Fault::NoSuchKey(key) if key.chars().count() > 512 => {
            Fault::NoSuchKey(key.chars().take(512).chain("...".chars()).collect())
        }
        other => other,
    }
}

fn kind(error: &EvaluationError) -> Fault {
    match error {
        EvaluationError::NoSuchKey { key } => Fault::NoSuchKey(key.clone()),
        EvaluationError::NoSuchOverload { .. } => Fault::NoSuchOverload,
        other => Fault::Text(other.to_string()),
    }
}
