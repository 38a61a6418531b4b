//! Semantic equality of objects, by which unchanged parts of an update are recognised.
//!
//! Objects are compared as the API server compares them: after defaulting, with quantities compared by value (`1Gi`
//! equals `1024Mi`). An empty list or map equals an absent one. An empty string equals an absent one, unless the field
//! is a pointer in the API server's Go type. Opaque JSON of drivers is compared without any of these rules.

use dra_attrs::Quantity;
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields that are maps with user-defined keys, with the way to compare the strings in them.
const MAPS: [(&str, Texts); 8] = [
    ("annotations", Texts::Plain),
    ("attributes", Texts::Plain),
    ("capacity", Texts::Amounts),
    ("consumedCapacity", Texts::Amounts),
    ("counters", Texts::Amounts),
    ("labels", Texts::Plain),
    ("nodeAllocatableResources", Texts::Amounts),
    ("requests", Texts::Amounts),
];

/// String fields that are pointers in the API server's Go types, so that an empty string differs from an absent one.
const POINTERS: [&str; 12] = [
    "capacityKey",
    "device",
    "distinctAttribute",
    "driver",
    "extendedResourceName",
    "matchAttribute",
    "nodeName",
    "partitionTypeAttribute",
    "pool",
    "shareID",
    "string",
    "version",
];

/// Object fields that are not pointers in the API server's Go types, so that an empty object equals an absent one.
const ALWAYS: [&str; 3] = ["devices", "metadata", "spec"];

/// Fields with the defaults that the API server sets.
const DEFAULTS: [(&str, &str); 2] = [("allocationMode", "ExactCount"), ("operator", "Equal")];

/// Fields with JSON that only a driver interprets.
const OPAQUE: [&str; 2] = ["data", "parameters"];

/// Way to compare strings: as text, or as quantities.
#[derive(Clone, Copy)]
enum Texts {
    Plain,
    Amounts,
}

/// Returns true if the API server treats two values as equal.
pub(crate) fn same<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    one == other || both(one, other, |one, other| equal(one, other, Texts::Plain) || is_empty(one) && is_empty(other))
}

/// Returns true if the API server treats the capacities of two devices as equal.
pub(super) fn same_capacity<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    one == other
        || both(one, other, |one, other| equal_maps(one, other, Texts::Amounts) || is_empty(one) && is_empty(other))
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
            names(one, other).all(|name| match (field(one, name), field(other, name)) {
                (Some(_), Some(_)) if OPAQUE.contains(&name) => one.get(name) == other.get(name),
                (Some(this), Some(that)) => match map(name, one).filter(|_| this.is_object()) {
                    Some(texts) => equal_maps(this, that, texts),
                    // `capacityKey` is a name, although the strings beside it are quantities.
                    None => equal(this, that, if name == "capacityKey" { Texts::Plain } else { texts }),
                },
                (this, that) => this.is_none() && that.is_none(),
            })
        }
        _ => one == other,
    }
}

fn names<'v>(one: &'v Map<String, Value>, other: &'v Map<String, Value>) -> impl Iterator<Item = &'v str> {
    one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).map(String::as_str)
}

/// Returns a field of an object; `None` if its value is equal to an absent field.
fn field<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !is_missing(name, value, object))
}

/// Returns the way to compare strings in a field that is a map. `capacity` of a request is not a map, but has one in it
/// (`requests`).
fn map(name: &str, object: &Map<String, Value>) -> Option<Texts> {
    let of_request = name == "capacity" && object.contains_key("deviceClassName");
    let found = MAPS.iter().find(|(map, _)| *map == name && !of_request);
    found.map(|(_, texts)| *texts)
}

/// Compares two maps by key. The keys are user-defined: a key that equals the name of a known field has no special
/// meaning.
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

/// Returns true if a field with this value equals an absent field.
fn is_missing(name: &str, value: &Value, object: &Map<String, Value>) -> bool {
    match value {
        _ if OPAQUE.contains(&name) => false,
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty() && !POINTERS.contains(&name) || DEFAULTS.contains(&(name, text)),
        // The default of `count` is 1 if the allocation mode is `ExactCount`.
        Value::Number(number) if name == "count" => {
            number.as_i64() == Some(0) || number.as_i64() == Some(1) && field(object, "allocationMode").is_none()
        }
        Value::Object(_) if ALWAYS.contains(&name) => is_empty(value),
        Value::Object(fields) => fields.is_empty() && map(name, object).is_some(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if the value of a field that is not a pointer is null, an empty list, or an object without non-empty
/// fields.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.iter().all(|(name, value)| is_missing(name, value, fields)),
        _ => false,
    }
}
