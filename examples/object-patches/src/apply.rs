//! Server-side apply: a manager sends all that it wants, and what it wanted before and no longer does goes.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde_json::{Value, json};

use crate::field_set::{self, FieldSet, Path, fields_of, keys_of, step_to, value_at};
use crate::managed_fields::{Entry, Operation};
use crate::object::Object;

/// Largest number of managers of an object.
const MAX_MANAGERS: usize = 32;

/// Answer to another manager's value of a field that is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a client sends `force`, or does not")]
pub enum OnConflict {
    /// Nothing is applied.
    Refuse,
    /// The field is taken from the other manager.
    Take,
}

/// Reason that nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers have other values of fields.
    #[error("{}", message(.0))]
    Conflicts(Vec<Conflict>),
    /// The object has as many managers as it may have.
    #[error("more than {MAX_MANAGERS} managers have written fields of the object")]
    Managers,
}

/// Field that another manager has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Conflict {
    /// The manager in quotes, with its way of writing.
    pub manager: String,
    /// Path of the field, such as `.spec.replicas`.
    pub field: String,
}

fn message(conflicts: &[Conflict]) -> String {
    if let [Conflict { manager, field }] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {field}");
    }
    let mut lines = Vec::new();
    for (index, Conflict { manager, field }) in conflicts.iter().enumerate() {
        let is_first =
            index.checked_sub(1).and_then(|before| conflicts.get(before)).is_none_or(|it| it.manager != *manager);
        if is_first {
            lines.push(format!("conflicts with {manager}:"));
        }
        lines.push(format!("- {field}"));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// Applies the configuration of a manager to an object of a kind: what the manager applied before and no longer wants goes, unless
/// another one wants it. Returns the fields that the manager has now; its new entry is made by [`applied`].
///
/// `entries` are the managers of the object. A field that is taken from one of them leaves its entry. The time is n log n in the
/// fields of object, configuration and entries, for each entry.
///
/// # Errors
/// Another manager has another value of a field, and `on_conflict` says to refuse; or there are too many managers. The object
/// is as it was after a conflict.
///
/// ```
/// use object_patches::{OnConflict, apply};
/// use serde_json::json;
/// let mut node = json!({"kind": "Node", "metadata": {"name": "n"}});
/// let config = json!({"kind": "Node", "metadata": {"name": "n", "labels": {"rack": "a"}}});
/// let fields = apply("Node", &mut node, &config, ("me", OnConflict::Refuse), &mut [])?;
/// assert_eq!(node, config);
/// assert_eq!(fields.len(), 2, "the map that was made, and the label");
/// # Ok::<(), object_patches::ApplyError>(())
/// ```
///
/// [`applied`]: crate::managed_fields::applied
pub fn apply(
    kind: &str,
    object: &mut Value,
    config: &Value,
    (manager, on_conflict): (&str, OnConflict),
    entries: &mut [Entry],
) -> Result<FieldSet, ApplyError> {
    let wanted = fields_of(kind, config);
    let is_own = |entry: &Entry| entry.operation == Operation::Apply && entry.manager == manager;
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !is_own(entry)) {
        let differs = |path: &&Path| !is_outer(&wanted, path) && value_at(object, path) != value_at(config, path);
        let taken: Vec<Path> = entry.fields.intersection(&wanted).filter(differs).cloned().collect();
        let manager = entry.shown();
        conflicts.extend(taken.iter().map(|path| Conflict { manager: manager.clone(), field: field_set::shown(path) }));
        entry.fields.retain(|path| !taken.contains(path));
    }
    if !conflicts.is_empty() && on_conflict == OnConflict::Refuse {
        conflicts.sort();
        return Err(ApplyError::Conflicts(conflicts));
    }
    let before = entries.iter().find(|entry| is_own(entry)).map(|entry| entry.fields.clone()).unwrap_or_default();
    let is_others = |path: &Path| {
        let mut others = entries.iter().filter(|entry| !is_own(entry));
        others.any(|entry| entry.fields.contains(path) || is_outer(&entry.fields, path))
    };
    for path in before.difference(&wanted).filter(|path| !is_others(path) && !is_outer(&wanted, path)) {
        field_set::remove(object, path);
    }
    merge(kind, &mut Vec::new(), object, config);
    if entries.len() >= MAX_MANAGERS {
        return Err(ApplyError::Managers);
    }
    Ok(wanted)
}

/// Returns true for a list, an entry or a map with fields in it: several managers do not contradict each other in it.
fn is_outer(fields: &FieldSet, path: &Path) -> bool {
    let mut after = fields.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded));
    after.next().is_some_and(|next| next.starts_with(path))
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
            let places = list.iter().enumerate().map(|(index, entry)| (step_to(entry, keys), index));
            let mut places: BTreeMap<String, usize> = places.collect();
            for entry in entries {
                let step = step_to(entry, keys);
                if let Some(known) = places.get(&step).and_then(|index| list.get_mut(*index)) {
                    merge(kind, names, known, entry);
                } else {
                    places.insert(step, list.len());
                    list.push(entry.clone());
                }
            }
        }
        value => *object = value.clone(),
    }
}
