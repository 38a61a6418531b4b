//! Objects as JSON, with the parts of their metadata that the server looks at.

use serde_json::{Map, Value, json};

/// Object as JSON.
pub trait Object {
    /// Returns the text at a pointer, such as `/spec/nodeName`; empty if there is none.
    fn text(&self, pointer: &str) -> &str;
    /// Returns the text of a field of the metadata; empty if there is none.
    fn metadata(&self, field: &str) -> &str;
    /// Sets a field of the metadata.
    fn set_metadata(&mut self, field: &str, value: impl Into<Value>);
    /// Takes a field of the metadata from another object, where it may be absent.
    fn keep_metadata(&mut self, field: &str, from: &Value);
    /// Returns true for an object that is being deleted.
    fn is_terminating(&self) -> bool;
    /// Returns true for an object that stays until somebody has taken its finalizers.
    fn has_finalizers(&self) -> bool;
    /// Returns the fields; an object that has none gets them.
    fn fields(&mut self) -> &mut Map<String, Value>;
    /// Sets a field; an object that has none gets it.
    fn set_field(&mut self, field: &str, value: impl Into<Value>);
}

impl Object for Value {
    fn text(&self, pointer: &str) -> &str {
        self.pointer(pointer).and_then(Self::as_str).unwrap_or_default()
    }

    fn metadata(&self, field: &str) -> &str {
        self.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Self::as_str).unwrap_or_default()
    }

    fn set_metadata(&mut self, field: &str, value: impl Into<Self>) {
        let metadata = self.fields().entry("metadata").or_insert_with(|| json!({}));
        metadata.fields().insert(field.to_owned(), value.into());
    }

    fn keep_metadata(&mut self, field: &str, from: &Value) {
        match from.get("metadata").and_then(|metadata| metadata.get(field)) {
            Some(value) => self.set_metadata(field, value.clone()),
            None => {
                if let Some(metadata) = self.get_mut("metadata").and_then(Self::as_object_mut) {
                    metadata.remove(field);
                }
            }
        }
    }

    fn is_terminating(&self) -> bool {
        !self.metadata("deletionTimestamp").is_empty()
    }

    fn has_finalizers(&self) -> bool {
        self.pointer("/metadata/finalizers").and_then(Self::as_array).is_some_and(|list| !list.is_empty())
    }

    fn fields(&mut self) -> &mut Map<String, Value> {
        if !self.is_object() {
            *self = json!({});
        }
        match self {
            Self::Object(fields) => fields,
            _ => unreachable!("it was made an object"),
        }
    }

    fn set_field(&mut self, field: &str, value: impl Into<Self>) {
        self.fields().insert(field.to_owned(), value.into());
    }
}
