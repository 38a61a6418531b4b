//! Strategic merge patches, as kubectl and the components of Kubernetes send them.

use serde_json::{Map, Value, json};

use crate::merge_lists::MergeList;
use crate::object::Object;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object of a kind.
pub(crate) fn merge(kind: &str, object: &mut Value, change: Value) {
    merge_value(kind, &[], object, change);
}

fn merge_value(kind: &str, path: &[&str], current: &mut Value, change: Value) {
    let Value::Object(mut fields) = change else {
        *current = change;
        return;
    };
    match fields.remove(DIRECTIVE).as_ref().and_then(Value::as_str) {
        Some("delete") => return *current = json!({}),
        Some("replace") => return *current = without_directives(fields),
        _ => {}
    }
    let current = current.fields();
    if let Some(Value::Array(kept)) = fields.remove(RETAIN_KEYS) {
        current.retain(|field, _| kept.iter().any(|key| key == field));
    }
    let mut orders = Vec::new();
    for (field, value) in fields {
        if let Some(list) = field.strip_prefix(ORDER) {
            orders.push((list.to_owned(), value));
        } else if let Some(list) = field.strip_prefix(DELETE_FROM) {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(list)) = current.get_mut(list) {
                list.retain(|entry| !gone.contains(entry));
            }
        } else if value.is_null() {
            current.remove(&field);
        } else {
            merge_field(kind, &[path, &[&field]].concat(), current.entry(&field).or_insert(Value::Null), value);
        }
    }
    for (field, order) in orders {
        if let (Some(Value::Array(list)), Value::Array(order)) = (current.get_mut(&field), order) {
            let key = key_of(kind, &[path, &[&field]].concat()).unwrap_or_default();
            // The entries that the order names come in that order; the others follow.
            let place = |entry: &Value| order.iter().position(|wanted| is_same(key, wanted, entry));
            list.sort_by_cached_key(|entry| place(entry).unwrap_or(order.len()));
        }
    }
}

fn key_of(kind: &str, path: &[&str]) -> Option<&'static str> {
    MergeList::find(kind, path).and_then(|list| list.strategic)
}

/// Returns true for two forms of one entry of a list.
fn is_same(key: &str, one: &Value, other: &Value) -> bool {
    if key.is_empty() { one == other } else { one.get(key) == other.get(key) }
}

fn merge_field(kind: &str, path: &[&str], current: &mut Value, value: Value) {
    match (value, key_of(kind, path)) {
        (Value::Array(entries), Some(key)) => merge_list(kind, path, current, key, entries),
        (value, _) => merge_value(kind, path, current, value),
    }
}

fn merge_list(kind: &str, path: &[&str], current: &mut Value, key: &str, entries: Vec<Value>) {
    if !current.is_array() {
        *current = json!([]);
    }
    let Value::Array(list) = current else { return };
    let directive = |entry: &Value| entry.text("/$patch").to_owned();
    if entries.iter().any(|entry| directive(entry) == "replace") {
        *list = entries.into_iter().filter(|entry| directive(entry).is_empty()).collect();
        return;
    }
    for entry in entries {
        let found = list.iter().position(|known| is_same(key, known, &entry));
        match found.and_then(|index| list.get_mut(index)) {
            _ if directive(&entry) == "delete" => list.retain(|known| !is_same(key, known, &entry)),
            Some(known) => merge_value(kind, path, known, entry),
            None => {
                let mut new = Value::Null;
                merge_value(kind, path, &mut new, entry);
                list.push(new);
            }
        }
    }
}

fn without_directives(mut fields: Map<String, Value>) -> Value {
    fields.retain(|field, value| !field.starts_with('$') && !value.is_null());
    Value::Object(fields)
}
