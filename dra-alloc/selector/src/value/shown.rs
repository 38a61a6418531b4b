//! Values as texts.

use std::fmt::Write;

use dra_attrs::Quoted;

use super::Value;
use crate::scalar::{double, time};

/// Shows a value as a text without quotes, if it is a scalar that has one.
pub(crate) fn plain(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => double::shown(*number),
        Value::Null => "null".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Duration(nanos) => time::shown_duration(*nanos),
        Value::Timestamp(time) => time::shown_timestamp(*time),
        Value::Type(name) => (*name).to_owned(),
        Value::Ip(address) => address.to_string(),
        _ => return None,
    })
}

/// Returns bytes as Go quotes them: what is no text in hexadecimal.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("b\"");
    for chunk in bytes.utf8_chunks() {
        let text = Quoted(chunk.valid()).to_string();
        quoted.push_str(text.get(1..text.len() - 1).unwrap_or_default());
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(quoted, "\\x{byte:02x}");
        }
    }
    quoted.push('"');
    quoted
}
