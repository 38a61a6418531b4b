//! Sets of fields of an object, in the form in which `managedFields` names them (`fieldsV1`).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::merge_lists::MergeList;
use crate::object::Object;

/// Path to a field. A step is `f:FIELD`, `k:{KEYS}` for an entry of a merged list, or `v:VALUE` for one of a set.
pub type Path = Vec<String>;

/// Fields of an object. An entry of a list and a map that a writer has made are members beside what is in them.
pub type FieldSet = BTreeSet<Path>;

/// Fields with maps whose keys clients choose: whoever makes one has the map itself.
pub const MAPS: [&str; 9] = [
    "labels",
    "annotations",
    "nodeSelector",
    "capacity",
    "allocatable",
    "limits",
    "requests",
    "matchLabels",
    "attributes",
];

/// Fields that nobody manages: they say which object it is, or are the server's.
fn is_server_s(names: &[&str]) -> bool {
    matches!(
        names,
        ["apiVersion" | "kind"]
            | [
                "metadata",
                "name"
                    | "namespace"
                    | "uid"
                    | "resourceVersion"
                    | "creationTimestamp"
                    | "generation"
                    | "managedFields"
                    | "selfLink"
                    | "deletionTimestamp"
                    | "deletionGracePeriodSeconds"
            ]
    )
}

/// Returns the keys of a list whose entries are merged; none for one that is replaced as a whole.
pub(crate) fn keys_of(kind: &str, names: &[&str]) -> Option<&'static [&'static str]> {
    MergeList::find(kind, names).and_then(|list| list.applied)
}

/// Returns the step to an entry of a list.
pub(crate) fn step_to(entry: &Value, keys: &[&str]) -> String {
    if keys.is_empty() {
        return format!("v:{entry}");
    }
    let part = |key: &&str| Some(((*key).to_owned(), entry.get(*key)?.clone()));
    format!("k:{}", Value::Object(keys.iter().filter_map(part).collect()))
}

/// Walk through an object and what it was before.
struct Walk<'k> {
    kind: &'k str,
    path: Path,
    found: FieldSet,
}

/// Returns all fields of an object.
pub(crate) fn fields_of(kind: &str, object: &Value) -> FieldSet {
    changed_fields(kind, &Value::Null, object)
}

/// Returns the fields of an object that are new, or have another value than before.
pub(crate) fn changed_fields(kind: &str, before: &Value, object: &Value) -> FieldSet {
    let mut walk = Walk { kind, path: Path::new(), found: FieldSet::new() };
    walk.visit(&mut Vec::new(), Some(before).filter(|before| !before.is_null()), object);
    walk.found.remove(&Path::new());
    walk.found
}

impl Walk<'_> {
    fn visit<'v>(&mut self, names: &mut Vec<&'v str>, before: Option<&Value>, value: &'v Value) {
        if before == Some(value) || is_server_s(names) {
            return;
        }
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                if before.is_none() && names.last().is_some_and(|name| MAPS.contains(name)) {
                    self.found.insert(self.path.clone());
                }
                for (field, value) in fields {
                    names.push(field);
                    self.path.push(format!("f:{field}"));
                    self.visit(names, before.and_then(|before| before.get(field)), value);
                    self.path.pop();
                    names.pop();
                }
            }
            Value::Array(entries) if keys_of(self.kind, names).is_some() => {
                let keys = keys_of(self.kind, names).unwrap_or_default();
                if before.is_none() {
                    self.found.insert(self.path.clone());
                }
                self.visit_entries(names, before, entries, keys);
            }
            _ => drop(self.found.insert(self.path.clone())),
        }
    }

    fn visit_entries<'v>(
        &mut self,
        names: &mut Vec<&'v str>,
        before: Option<&Value>,
        entries: &'v [Value],
        keys: &[&str],
    ) {
        let known = before.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let known: std::collections::BTreeMap<String, &Value> =
            known.iter().map(|entry| (step_to(entry, keys), entry)).collect();
        for entry in entries {
            let step = step_to(entry, keys);
            let before = known.get(&step).copied();
            self.path.push(step);
            if before.is_none() {
                self.found.insert(self.path.clone());
            }
            if entry.is_object() {
                self.visit(names, before, entry);
            }
            self.path.pop();
        }
    }
}

/// Writes a set as `fieldsV1`.
pub(crate) fn to_json(set: &FieldSet) -> Value {
    let mut root = json!({});
    for path in set {
        let mut at = &mut root;
        for step in path {
            at = at.fields().entry(step.as_str()).or_insert_with(|| json!({}));
        }
        at.set_field(".", json!({}));
    }
    without_lone_dots(&mut root);
    root
}

/// A field with nothing in it needs no dot.
fn without_lone_dots(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    if fields.len() == 1 {
        fields.remove(".");
    }
    fields.iter_mut().filter(|(step, _)| *step != ".").for_each(|(_, value)| without_lone_dots(value));
}

/// Reads `fieldsV1`.
pub(crate) fn from_json(value: &Value) -> FieldSet {
    let mut set = FieldSet::new();
    if let Value::Object(fields) = value {
        read(fields, &mut Path::new(), &mut set);
    }
    set
}

fn read(fields: &Map<String, Value>, path: &mut Path, set: &mut FieldSet) {
    for (step, value) in fields {
        match value {
            _ if step == "." => drop(set.insert(path.clone())),
            Value::Object(inner) => {
                path.push(step.clone());
                if inner.is_empty() {
                    set.insert(path.clone());
                }
                read(inner, path, set);
                path.pop();
            }
            _ => {}
        }
    }
}

/// Returns a path as messages name it: `.spec.containers[name="c"].image`.
pub(crate) fn shown(path: &[String]) -> String {
    let step = |step: &String| match step.split_once(':') {
        Some(("f", field)) => format!(".{field}"),
        Some(("v", value)) => format!("[={value}]"),
        Some((_, keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let parts: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        None => step.clone(),
    };
    path.iter().map(step).collect()
}

/// Returns the place of an entry in a list by the step to it.
pub(crate) fn entry_index(list: &[Value], step: &str) -> Option<usize> {
    match step.split_once(':')? {
        ("v", text) => {
            let wanted: Value = serde_json::from_str(text).ok()?;
            list.iter().position(|entry| *entry == wanted)
        }
        (_, text) => {
            let keys: Map<String, Value> = serde_json::from_str(text).ok()?;
            list.iter().position(|entry| keys.iter().all(|(key, value)| entry.get(key) == Some(value)))
        }
    }
}

/// Returns the value at a path.
pub(crate) fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| {
        if let Some(field) = step.strip_prefix("f:") {
            return value.get(field);
        }
        let list = value.as_array()?;
        list.get(entry_index(list, step)?)
    })
}

/// Removes what is at a path.
pub(crate) fn remove(object: &mut Value, path: &[String]) {
    let Some((last, outer)) = path.split_last() else { return };
    let mut at = object;
    for step in outer {
        let next = match (step.strip_prefix("f:"), at) {
            (Some(field), at) => at.get_mut(field),
            (None, Value::Array(entries)) => entry_index(entries, step).and_then(|index| entries.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (last.strip_prefix("f:"), at) {
        (Some(field), Value::Object(fields)) => drop(fields.remove(field)),
        (None, Value::Array(entries)) => {
            if let Some(index) = entry_index(entries, last) {
                entries.remove(index);
            }
        }
        _ => {}
    }
}
