//! `managedFields`: who has written which fields of an object.
//!
//! An object in the store has them as one text, which answers take over as it is.

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::field_set::{FieldSet, changed_fields, fields_of, from_json, to_json};
use crate::object::Object;

/// Largest number of managers that update; the fields of older ones are put together.
const MOST_UPDATERS: usize = 10;

/// Name of the managers that were put together.
const ANCIENT: &str = "ancient-changes";

/// Longest name of a manager.
const LONGEST_NAME: usize = 128;

/// Way of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "an API server has these two")]
pub enum Operation {
    /// A server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// Who writes, and how.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the caller says all of it")]
pub struct Writer {
    /// Name of the writer, as [`manager_name`] gives it.
    pub manager: String,
    /// Way of the write.
    pub operation: Operation,
    /// Version in which the object was sent.
    pub api_version: String,
    /// Subresource that was written; empty for the object itself.
    pub subresource: String,
    /// Time of the write.
    pub now: Timestamp,
}

/// Fields of a manager.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Name of the manager.
    pub manager: String,
    /// Way in which it has written.
    pub operation: Operation,
    /// Version in which it has sent the object.
    pub api_version: String,
    /// Subresource that it has written; empty for the object itself.
    pub subresource: String,
    time: String,
    /// Its fields.
    pub fields: FieldSet,
}

/// Entry as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    manager: String,
    operation: Operation,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(default)]
    time: String,
    fields_type: String,
    #[serde(rename = "fieldsV1")]
    fields: Value,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    subresource: String,
}

impl Entry {
    /// Returns the manager as a conflict names it.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {} at {}", self.api_version, self.time);
        }
        text
    }

    fn is_of(&self, writer: &Writer) -> bool {
        (&self.manager, self.operation, &self.api_version, &self.subresource)
            == (&writer.manager, writer.operation, &writer.api_version, &writer.subresource)
    }
}

/// Returns the managers that a stored object has as values, as clients see them.
#[must_use]
pub fn shown(object: &Value) -> Value {
    serde_json::from_str(object.metadata("managedFields")).unwrap_or_default()
}

/// Returns the managers that an update begins with: those that the client sends, or else those of the stored object.
pub fn sent_or_stored(sent: Option<&Value>, old: &Value) -> Vec<Entry> {
    match sent {
        Some(Value::Array(list)) if list.iter().all(|entry| entry == &json!({})) => Vec::new(),
        Some(sent) if *sent != shown(old) => {
            serde_json::from_value(sent.clone()).map_or_else(|_| managers_of(old), entries)
        }
        _ => managers_of(old),
    }
}

/// Reads the managers of a stored object.
#[must_use]
pub fn managers_of(object: &Value) -> Vec<Entry> {
    entries(serde_json::from_str(object.metadata("managedFields")).unwrap_or_default())
}

fn entries(written: Vec<Written>) -> Vec<Entry> {
    let entry = |written: Written| Entry {
        fields: from_json(&written.fields),
        manager: written.manager,
        operation: written.operation,
        api_version: written.api_version,
        subresource: written.subresource,
        time: written.time,
    };
    written.into_iter().map(entry).collect()
}

/// Writes the managers into an object that is to be stored.
fn set_managers(object: &mut Value, entries: Vec<Entry>) {
    let written = |entry: Entry| Written {
        fields: to_json(&entry.fields),
        manager: entry.manager,
        operation: entry.operation,
        api_version: entry.api_version,
        time: entry.time,
        fields_type: "FieldsV1".to_owned(),
        subresource: entry.subresource,
    };
    let written: Vec<Written> = entries.into_iter().map(written).collect();
    match serde_json::to_string(&written) {
        Ok(text) if !written.is_empty() => object.set_metadata("managedFields", text),
        _ => object.keep_metadata("managedFields", &Value::Null),
    }
}

/// Takes an update into the managers: what it changes is the writer's, and what it removes is nobody's. `old` is the object
/// before, `entries` are its managers; the new ones are written into `new`.
///
/// ```
/// use k8s_openapi::jiff::Timestamp;
/// use object_patches::managed_fields::{Operation, Writer, managers_of, updated};
/// let mut node = serde_json::json!({"metadata": {"name": "n", "labels": {"rack": "a"}}});
/// let writer = Writer { manager: "me".to_owned(), operation: Operation::Update, api_version: "v1".to_owned(),
///     subresource: String::new(), now: Timestamp::UNIX_EPOCH };
/// updated("Node", None, Vec::new(), &mut node, &writer);
/// let managers = managers_of(&node);
/// assert_eq!((managers.len(), managers[0].manager.as_str()), (1, "me"));
/// ```
pub fn updated(kind: &str, old: Option<&Value>, mut entries: Vec<Entry>, new: &mut Value, writer: &Writer) {
    let all = fields_of(kind, new);
    let changed = written_by(writer, changed_fields(kind, old.unwrap_or(&Value::Null), new));
    for entry in &mut entries {
        let is_own = entry.is_of(writer);
        entry.fields.retain(|path| all.contains(path) && (is_own || !changed.contains(path)));
    }
    record(&mut entries, writer, |fields| fields.extend(changed));
    set_managers(new, entries);
}

/// Takes an apply into the managers: the writer has what its configuration has (`wanted`), and no more.
pub fn applied(kind: &str, mut entries: Vec<Entry>, new: &mut Value, wanted: FieldSet, writer: &Writer) {
    let all = fields_of(kind, new);
    for entry in &mut entries {
        entry.fields.retain(|path| all.contains(path));
    }
    record(&mut entries, writer, |fields| *fields = written_by(writer, wanted));
    set_managers(new, entries);
}

/// A status is written by its subresource alone.
fn written_by(writer: &Writer, mut fields: FieldSet) -> FieldSet {
    let is_status = writer.subresource == "status";
    fields.retain(|path| is_status || path.first().is_none_or(|step| step != "f:status"));
    fields
}

fn record(entries: &mut Vec<Entry>, writer: &Writer, change: impl FnOnce(&mut FieldSet)) {
    let time = Timestamp::from_second(writer.now.as_second()).unwrap_or(writer.now).to_string();
    let known = entries.iter().position(|entry| entry.is_of(writer)).map(|index| entries.remove(index));
    let mut entry = known.unwrap_or_else(|| Entry {
        manager: writer.manager.clone(),
        operation: writer.operation,
        api_version: writer.api_version.clone(),
        subresource: writer.subresource.clone(),
        time: time.clone(),
        fields: FieldSet::new(),
    });
    let before = entry.fields.clone();
    change(&mut entry.fields);
    if entry.fields != before {
        entry.time = time;
    }
    entries.push(entry);
    entries.retain(|entry| !entry.fields.is_empty());
    join_oldest(entries);
    entries.sort_by(|one, other| {
        (one.operation, &one.time, &one.manager).cmp(&(other.operation, &other.time, &other.manager))
    });
}

fn join_oldest(entries: &mut Vec<Entry>) {
    let is_updater = |entry: &Entry| entry.operation == Operation::Update && entry.subresource.is_empty();
    while entries.iter().filter(|entry| is_updater(entry)).count() > MOST_UPDATERS {
        let Some(oldest) = entries.iter().position(is_updater) else { return };
        let gone = entries.remove(oldest);
        match entries.iter_mut().find(|entry| is_updater(entry)) {
            Some(kept) => {
                ANCIENT.clone_into(&mut kept.manager);
                kept.fields.extend(gone.fields);
            }
            None => return,
        }
    }
}

/// Returns the name of a writer: what it calls itself, or else its program, the part of `User-Agent` before a slash.
#[must_use]
pub fn manager_name(wanted: &str, user_agent: &str) -> String {
    let name = if wanted.is_empty() { user_agent.split('/').next().unwrap_or_default() } else { wanted };
    let name: String = name.chars().filter(|character| !character.is_control()).take(LONGEST_NAME).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}
