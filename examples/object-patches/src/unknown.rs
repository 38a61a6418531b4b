//! Fields of an object that its type does not have.

use std::fmt::Write;

use serde_json::Value;

/// Largest number of unknown fields that are named.
const MOST: usize = 10;

/// Returns sentences about the fields that an object has and that are missing after it was read and written again, ten at the
/// most.
///
/// ```
/// use object_patches::unknown_fields;
/// use serde_json::json;
/// let sent = json!({"spec": {"nodes": [{"nam": "a"}]}});
/// assert_eq!(unknown_fields(&sent, &json!({"spec": {"nodes": [{}]}})), ["unknown field \"spec.nodes[0].nam\""]);
/// ```
#[must_use]
pub fn unknown_fields(sent: &Value, read: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(sent, read, &mut String::new(), &mut found);
    found
}

fn compare(sent: &Value, read: &Value, path: &mut String, found: &mut Vec<String>) {
    if found.len() >= MOST {
        return;
    }
    let length = path.len();
    match (sent, read) {
        (Value::Object(sent), Value::Object(read)) => {
            for (field, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
                path.push_str(if length == 0 { "" } else { "." });
                path.push_str(field);
                match read.get(field) {
                    Some(read) => compare(value, read, path, found),
                    None => found.push(format!("unknown field {path:?}")),
                }
                path.truncate(length);
            }
        }
        (Value::Array(sent), Value::Array(read)) => {
            for (index, (sent, read)) in sent.iter().zip(read).enumerate() {
                // Writing to a string can't fail.
                let _ = write!(path, "[{index}]");
                compare(sent, read, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
