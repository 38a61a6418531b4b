//! Strategic merge patches, as kubectl and the components of Kubernetes send them.

use std::collections::{BTreeMap, BTreeSet};

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
            let gone = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let gone: BTreeSet<String> = gone.iter().map(ToString::to_string).collect();
            if let Some(Value::Array(list)) = current.get_mut(list) {
                list.retain(|entry| !gone.contains(&entry.to_string()));
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
            let places: BTreeMap<String, usize> =
                order.iter().enumerate().map(|(place, wanted)| (identity(key, wanted), place)).collect();
            list.sort_by_cached_key(|entry| places.get(&identity(key, entry)).copied().unwrap_or(order.len()));
        }
    }
}

fn key_of(kind: &str, path: &[&str]) -> Option<&'static str> {
    MergeList::find(kind, path).and_then(|list| list.strategic)
}

/// Returns what two forms of one entry of a list have in common.
fn identity(key: &str, entry: &Value) -> String {
    if key.is_empty() { entry.to_string() } else { entry.get(key).map(ToString::to_string).unwrap_or_default() }
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
    let mut places: BTreeMap<String, usize> =
        list.iter().enumerate().rev().map(|(place, known)| (identity(key, known), place)).collect();
    let mut gone = BTreeSet::new();
    for entry in entries {
        let wanted = identity(key, &entry);
        if directive(&entry) == "delete" {
            gone.insert(wanted);
            continue;
        }
        if let Some(known) = places.get(&wanted).and_then(|place| list.get_mut(*place)) {
            merge_value(kind, path, known, entry);
        } else {
            let mut new = Value::Null;
            merge_value(kind, path, &mut new, entry);
            places.insert(wanted, list.len());
            list.push(new);
        }
    }
    list.retain(|known| !gone.contains(&identity(key, known)));
}

fn without_directives(mut fields: Map<String, Value>) -> Value {
    fields.retain(|field, value| !field.starts_with('$') && !value.is_null());
    Value::Object(fields)
}
