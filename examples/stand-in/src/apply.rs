//! Server-side apply: a manager sends all that it wants, and what it wanted before and no longer does goes.
//!
//! A conflict is known between managers that apply. What others write by update or patch is nobody's here; a real API
//! server takes it for the writer's.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::merge_lists::MergeList;
use crate::object::Object;

/// Largest number of managers of an object.
const MAX_MANAGERS: usize = 32;

/// Step to a field: its name, or the keys of an entry of a merged list, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    Entry(String),
}

type Path = Vec<Step>;

/// Fields of an object that managers have applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied(BTreeMap<String, BTreeSet<Path>>);

/// Reason that nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("Apply failed with {} conflict{}: conflicts with {manager:?}: {}", fields.len(),
        if fields.len() == 1 { "" } else { "s" }, fields.join(", "))]
    Conflict { manager: String, fields: Vec<String> },
    #[error("more than {MAX_MANAGERS} managers have applied fields of the object")]
    Managers,
}

/// Applies the configuration of a manager to an object.
///
/// # Errors
/// Another manager has applied another value of a field, and `is_forced` is false.
pub(crate) fn apply(
    kind: &str,
    object: &mut Value,
    config: &Value,
    manager: &str,
    is_forced: bool,
    applied: &mut Applied,
) -> Result<(), ApplyError> {
    let mut wanted = BTreeSet::new();
    leaves(kind, &mut Vec::new(), &mut Vec::new(), config, &mut wanted);
    for (other, fields) in applied.0.iter_mut().filter(|(other, _)| *other != manager) {
        let differs = |path: &&Path| value_at(object, path) != value_at(config, path);
        let taken: Vec<Path> = fields.intersection(&wanted).filter(differs).cloned().collect();
        if !taken.is_empty() && !is_forced {
            return Err(ApplyError::Conflict {
                manager: other.clone(),
                fields: taken.iter().map(|path| shown(path)).collect(),
            });
        }
        fields.retain(|path| !taken.contains(path));
    }
    let before = applied.0.remove(manager).unwrap_or_default();
    let is_others = |path: &Path| applied.0.values().any(|fields| fields.contains(path));
    for path in before.difference(&wanted).filter(|path| !is_others(path)) {
        remove(object, path);
    }
    merge(kind, &mut Vec::new(), object, config);
    if applied.0.len() >= MAX_MANAGERS {
        return Err(ApplyError::Managers);
    }
    applied.0.insert(manager.to_owned(), wanted);
    Ok(())
}

/// Fields that say which object it is, and are nobody's.
fn is_identity(names: &[&str]) -> bool {
    matches!(names, ["apiVersion" | "kind"] | ["metadata", "name" | "namespace" | "uid" | "resourceVersion"])
}

fn keys_of(kind: &str, names: &[&str]) -> Option<&'static [&'static str]> {
    MergeList::find(kind, names).and_then(|list| list.applied)
}

/// Returns what tells an entry of a merged list from the others.
fn identity(entry: &Value, keys: &[&str]) -> String {
    if keys.is_empty() {
        return entry.to_string();
    }
    let parts: Vec<&Value> = keys.iter().map(|key| entry.get(key).unwrap_or(&Value::Null)).collect();
    json!([keys, parts]).to_string()
}

/// Collects the paths of the values of a configuration.
fn leaves<'a>(kind: &str, names: &mut Vec<&'a str>, path: &mut Path, value: &'a Value, found: &mut BTreeSet<Path>) {
    match value {
        _ if is_identity(names) => {}
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                names.push(field);
                path.push(Step::Field(field.clone()));
                leaves(kind, names, path, value, found);
                path.pop();
                names.pop();
            }
        }
        Value::Array(entries) if keys_of(kind, names).is_some() => {
            let keys = keys_of(kind, names).unwrap_or_default();
            for entry in entries {
                path.push(Step::Entry(identity(entry, keys)));
                found.insert(path.clone());
                if entry.is_object() {
                    leaves(kind, names, path, entry, found);
                }
                path.pop();
            }
        }
        _ => {
            found.insert(path.clone());
        }
    }
}

/// Returns the entry of a list with an identity. The keys are those that the identity names.
fn entry_index(list: &[Value], wanted: &str) -> Option<usize> {
    let named: Value = serde_json::from_str(wanted).unwrap_or_default();
    let keys: Vec<&str> = match named.get(0).and_then(Value::as_array) {
        Some(keys) => keys.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    list.iter().position(|entry| identity(entry, &keys) == wanted)
}

fn value_at<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Field(field) => value.get(field),
        Step::Entry(wanted) => {
            let list = value.as_array()?;
            list.get(entry_index(list, wanted)?)
        }
    })
}

fn remove(object: &mut Value, path: &[Step]) {
    let Some((last, outer)) = path.split_last() else { return };
    let mut at = object;
    for step in outer {
        let next = match (step, at) {
            (Step::Field(field), at) => at.get_mut(field),
            (Step::Entry(wanted), Value::Array(entries)) => {
                entry_index(entries, wanted).and_then(|index| entries.get_mut(index))
            }
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (last, at) {
        (Step::Field(field), Value::Object(fields)) => drop(fields.remove(field)),
        (Step::Entry(wanted), Value::Array(entries)) => {
            if let Some(index) = entry_index(entries, wanted) {
                entries.remove(index);
            }
        }
        _ => {}
    }
}

fn merge<'a>(kind: &str, names: &mut Vec<&'a str>, object: &mut Value, config: &'a Value) {
    match config {
        Value::Object(fields) => {
            let object = object.fields();
            for (field, value) in fields {
                names.push(field);
                if value.is_null() {
                    object.remove(field);
                } else {
                    merge(kind, names, object.entry(field.as_str()).or_insert(Value::Null), value);
                }
                names.pop();
            }
        }
        Value::Array(entries) if keys_of(kind, names).is_some() => {
            let keys = keys_of(kind, names).unwrap_or_default();
            if !object.is_array() {
                *object = json!([]);
            }
            let Value::Array(list) = object else { return };
            for entry in entries {
                let wanted = identity(entry, keys);
                match list
                    .iter()
                    .position(|known| identity(known, keys) == wanted)
                    .and_then(|index| list.get_mut(index))
                {
                    Some(known) => merge(kind, names, known, entry),
                    None => list.push(entry.clone()),
                }
            }
        }
        value => *object = value.clone(),
    }
}

fn shown(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(field) => format!(".{field}"),
        Step::Entry(entry) => format!("[{entry}]"),
    };
    path.iter().map(step).collect()
}
