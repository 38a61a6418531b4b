//! Normal form of answers for comparisons.

use serde_json::{Map, Value, json};

/// Removes fields that are null or empty, and replaces all share IDs by one.
pub fn plain(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| match name.as_str() {
                "shareID" => (name.clone(), json!("share")),
                _ => (name.clone(), plain(value)),
            });
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}
