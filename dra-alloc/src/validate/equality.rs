//! Whether an object or a part of it is as it was.
//!
//! As in the API server, amounts are compared by value (`1Gi` is `1024Mi`), and an empty list or map is a missing one.

use dra_attrs::quantity::Quantity;
use serde::Serialize;
use serde_json::Value;

/// Fields that are maps, so that empty is missing. Other objects are there or not.
const MAPS: [&str; 6] = ["annotations", "attributes", "capacity", "consumedCapacity", "counters", "labels"];

/// Fields below which texts may be amounts.
const WITH_AMOUNTS: [&str; 4] = ["capacity", "consumedCapacity", "counters", "nodeAllocatableResources"];

/// How texts are compared.
#[derive(Clone, Copy)]
enum Texts {
    Plain,
    Amounts,
}

/// Whether two values mean the same to the API server.
pub(super) fn same<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    one == other || same_json(one, other, Texts::Plain)
}

/// Whether two values that hold amounts mean the same to the API server.
pub(super) fn same_amounts<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    one == other || same_json(one, other, Texts::Amounts)
}

fn same_json<T: Serialize>(one: &T, other: &T, texts: Texts) -> bool {
    match (serde_json::to_value(one), serde_json::to_value(other)) {
        (Ok(one), Ok(other)) => equal(&one, &other, texts) || is_empty(&one) && is_empty(&other),
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
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            keys.into_iter().all(|key| {
                let below = if WITH_AMOUNTS.contains(&key.as_str()) { Texts::Amounts } else { texts };
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) if equal(one, other, below) => true,
                    (one, other) => is_missing(key, one) && is_missing(key, other),
                }
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

fn is_missing(key: &str, value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty() && MAPS.contains(&key),
        Some(_) => false,
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
