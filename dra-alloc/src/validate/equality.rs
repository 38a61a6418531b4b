//! Whether an object or a part of it is as it was.
//!
//! As in the API server, objects are compared as it has filled them in, amounts by value (`1Gi` is `1024Mi`), and an empty
//! text, list or map is a missing one. What a driver wrote for itself is compared as it is.

use dra_attrs::quantity::Quantity;
use serde::Serialize;
use serde_json::{Map, Value};

/// Maps whose keys are names that somebody gave, and how the texts below are compared.
const MAPS: [(&str, Texts); 7] = [
    ("annotations", Texts::Plain),
    ("attributes", Texts::Plain),
    ("capacity", Texts::Amounts),
    ("consumedCapacity", Texts::Amounts),
    ("counters", Texts::Amounts),
    ("labels", Texts::Plain),
    ("nodeAllocatableResources", Texts::Amounts),
];

/// Objects that are always there. Others are there or not.
const ALWAYS: [&str; 2] = ["devices", "metadata"];

/// What the API server fills in.
const DEFAULTS: [(&str, &str); 2] = [("allocationMode", "ExactCount"), ("operator", "Equal")];

/// Objects of a driver's own making.
const OPAQUE: [&str; 2] = ["data", "parameters"];

/// How texts are compared.
#[derive(Clone, Copy)]
enum Texts {
    Plain,
    Amounts,
}

/// Whether two values mean the same to the API server.
pub(super) fn same<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    one == other || both(one, other, |one, other| equal(one, other, Texts::Plain) || is_empty(one) && is_empty(other))
}

/// Whether the capacities of two devices mean the same to the API server.
pub(super) fn same_capacity<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    one == other || both(one, other, |one, other| equal_field("capacity", Some(one), Some(other), Texts::Plain))
}

fn both<T: Serialize>(one: &T, other: &T, compare: impl Fn(&Value, &Value) -> bool) -> bool {
    match (serde_json::to_value(one), serde_json::to_value(other)) {
        (Ok(one), Ok(other)) => compare(&one, &other),
        _ => false,
    }
}

fn equal(one: &Value, other: &Value, texts: Texts) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one == other || equal_texts(one, other, texts),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other, texts))
        }
        (Value::Object(one), Value::Object(other)) => {
            names(one, other).all(|name| equal_field(name, one.get(name), other.get(name), texts))
        }
        _ => one == other,
    }
}

fn names<'v>(one: &'v Map<String, Value>, other: &'v Map<String, Value>) -> impl Iterator<Item = &'v str> {
    one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).map(String::as_str)
}

fn equal_field(name: &str, one: Option<&Value>, other: Option<&Value>, texts: Texts) -> bool {
    if OPAQUE.contains(&name) {
        return one == other;
    }
    match (one.filter(|one| !is_missing(name, one)), other.filter(|other| !is_missing(name, other))) {
        (Some(one), Some(other)) => match MAPS.iter().find(|(map, _)| *map == name) {
            Some((_, texts)) => equal_maps(one, other, *texts),
            None => equal(one, other, texts),
        },
        (one, other) => one == other,
    }
}

/// A key says nothing about its value, whatever field has the same name.
fn equal_maps(one: &Value, other: &Value, texts: Texts) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            names(one, other).all(|key| match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => equal(one, other, texts),
                _ => false,
            })
        }
        _ => one == other,
    }
}

fn equal_texts(one: &str, other: &str, texts: Texts) -> bool {
    let amount = |text: &str| text.parse::<Quantity>().ok();
    match texts {
        Texts::Plain => false,
        Texts::Amounts => amount(one).is_some_and(|one| amount(other) == Some(one)),
    }
}

/// Whether the API server has the same for a field that is left out.
fn is_missing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty() || DEFAULTS.contains(&(name, text)),
        // Without a mode, or with `ExactCount`, no count is one; with `All` it must be none.
        Value::Number(number) => name == "count" && matches!(number.as_i64(), Some(0 | 1)),
        Value::Object(fields) if ALWAYS.contains(&name) => fields.iter().all(|(name, value)| is_missing(name, value)),
        Value::Object(fields) => fields.is_empty() && MAPS.iter().any(|(map, _)| *map == name),
        Value::Bool(_) => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
