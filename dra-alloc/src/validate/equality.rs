//! Whether an object or a part of it is as it was.
//!
//! As in the API server, objects are compared as it has filled them in, amounts by value (`1Gi` is `1024Mi`). An empty list
//! or map is a missing one. So is an empty text, unless the API server's type has a pointer there, which tells the two
//! apart. What a driver wrote for itself is compared as it is.

use dra_attrs::quantity::Quantity;
use serde::Serialize;
use serde_json::{Map, Value};

/// Maps whose keys are names that somebody gave, and how the texts below are compared.
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

/// Texts behind pointers: one that is empty is there.
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

/// Objects that are always there. Others are there or not.
const ALWAYS: [&str; 3] = ["devices", "metadata", "spec"];

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
                    // The key of a capacity is a name among amounts.
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

/// A field of an object, if the API server would not have the same without it.
fn field<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !is_missing(name, value, object))
}

/// How texts in a field of the object are compared, if it is a map. The capacity of a request is none, but has one in it.
fn map(name: &str, object: &Map<String, Value>) -> Option<Texts> {
    let of_request = name == "capacity" && object.contains_key("deviceClassName");
    let found = MAPS.iter().find(|(map, _)| *map == name && !of_request);
    found.map(|(_, texts)| *texts)
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

/// Whether the API server has the same for a field of the object that is left out.
fn is_missing(name: &str, value: &Value, object: &Map<String, Value>) -> bool {
    match value {
        _ if OPAQUE.contains(&name) => false,
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty() && !POINTERS.contains(&name) || DEFAULTS.contains(&(name, text)),
        // Where a number of devices is wanted, it is one by default.
        Value::Number(number) if name == "count" => {
            number.as_i64() == Some(0) || number.as_i64() == Some(1) && field(object, "allocationMode").is_none()
        }
        Value::Object(_) if ALWAYS.contains(&name) => is_empty(value),
        Value::Object(fields) => fields.is_empty() && map(name, object).is_some(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether there is nothing in a value that is always there.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.iter().all(|(name, value)| is_missing(name, value, fields)),
        _ => false,
    }
}
