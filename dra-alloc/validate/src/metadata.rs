//! Validation of the metadata of an object.
//!
//! An absent name is not checked: the API server takes it from the path of the HTTP request or from `generateName`.

use dra_attrs::{FieldError, FieldPath, NameFormat};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::context::ValidationContext;
use super::{immutable, limits, names};

/// Metadata that a template gives to its claims.
const TEMPLATE: [&str; 2] = ["annotations", "labels"];

/// Checks that the name of the object is valid.
pub(super) fn check_name(metadata: &ObjectMeta, context: &mut ValidationContext) {
    check_form(metadata, names::subdomain, context);
}

/// Checks that the name of a class is valid. Its rule is declared, and has other messages.
pub(super) fn check_class_name(metadata: &ObjectMeta, context: &mut ValidationContext) {
    check_form(metadata, names::declared_subdomain, context);
}

fn check_form(
    metadata: &ObjectMeta,
    check: fn(&str, &FieldPath<'_>, &mut ValidationContext),
    context: &mut ValidationContext,
) {
    let root = FieldPath::new("metadata");
    match metadata.name.as_deref() {
        None => {}
        Some("") if metadata.generate_name.as_ref().is_some_and(|prefix| !prefix.is_empty()) => {}
        Some("") => {
            context.push(FieldError::required(&root.child("name"), "name or generateName is required"));
        }
        Some(name) => check(name, &root.child("name"), context),
    }
}

/// Checks that an update does not change the metadata fields that identify the stored object.
pub(super) fn check_update(new: &ObjectMeta, old: &ObjectMeta, context: &mut ValidationContext) {
    let root = FieldPath::new("metadata");
    let fields =
        [("name", &new.name, &old.name), ("namespace", &new.namespace, &old.namespace), ("uid", &new.uid, &old.uid)];
    for (name, new, old) in fields {
        if new.is_some() && old.is_some() {
            immutable::check(new, old, &root.child(name), context);
        }
    }
}

/// Checks the metadata that a template gives to its claims: only labels and annotations.
pub(super) fn check_template(metadata: &ObjectMeta, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let annotations = metadata.annotations.iter().flatten();
    let at_annotations = at.child("annotations");
    for (key, _) in annotations.clone() {
        for problem in NameFormat::LabelKey.problems(&key.to_lowercase()) {
            context.push(FieldError::invalid(&at_annotations, key, problem));
        }
    }
    let size: usize = annotations.map(|(key, value)| key.len().saturating_add(value.len())).sum();
    if size > limits::ANNOTATIONS {
        context.push(FieldError::too_long(&at_annotations, limits::ANNOTATIONS));
    }
    let at_labels = at.child("labels");
    for (key, value) in metadata.labels.iter().flatten() {
        names::label_key(key, &at_labels, context);
        names::label_value(value, &at_labels, context);
    }
    let Ok(Value::Object(fields)) = serde_json::to_value(metadata) else { return };
    let is_set = |value: &Value| !value.is_null() && value != "" && value != 0;
    for (field, _) in fields.iter().filter(|(field, value)| !TEMPLATE.contains(&field.as_str()) && is_set(value)) {
        // The API server makes the path from the name of a Go field.
        let field = if field == "uid" { "uID" } else { field };
        context.push(FieldError::forbidden(&at.child(field), "cannot be set"));
    }
}
