//! Rules of metadata that hold for objects of every kind.

use dra_attrs::{FieldError, FieldErrors, FieldPath, NameFormat};
use object_patches::Object;
use serde_json::{Map, Value};

/// Largest size of all annotations.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Finalizers without a domain.
const FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Returns the format of the names of a kind.
fn format_of(kind: &str) -> NameFormat {
    if kind == "Namespace" { NameFormat::Label } else { NameFormat::Subdomain }
}

/// Checks the form of a text.
pub(crate) fn check_format(format: NameFormat, text: &str, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for problem in format.problems(text) {
        errors.push(FieldError::invalid(at, text, problem));
    }
}

/// Checks a label: key, and value.
pub(crate) fn check_label(key: &str, value: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    check_format(NameFormat::LabelKey, key, at, errors);
    check_format(NameFormat::LabelValue, value.as_str().unwrap_or_default(), at, errors);
}

/// Checks the name of an object, and what it was made of.
pub(crate) fn name_problems(kind: &str, object: &Value) -> FieldErrors {
    let (format, at) = (format_of(kind), FieldPath::new("metadata"));
    let mut errors = FieldErrors::new();
    for (field, text) in [("generateName", object.metadata("generateName")), ("name", object.metadata("name"))] {
        let checked = match text.strip_suffix('-') {
            // The end of a name is yet to come.
            Some(base) if field == "generateName" => format!("{base}a"),
            _ => text.to_owned(),
        };
        if !text.is_empty() {
            for problem in format.problems(&checked) {
                errors.push(FieldError::invalid(&at.child(field), text, problem));
            }
        }
    }
    errors
}

/// Checks the rest of the metadata, of a new object or of a new version of one.
pub(crate) fn problems(old: Option<&Value>, new: &Value) -> FieldErrors {
    let at = FieldPath::new("metadata");
    let mut errors = FieldErrors::new();
    let is_going = old.is_some_and(Object::is_terminating);
    if let Some(error) = old.filter(|_| is_going).and_then(|old| new_finalizers(old, new, &at.child("finalizers"))) {
        errors.push(error);
    }
    for (key, value) in entries(new, "labels") {
        check_label(key, value, &at.child("labels"), &mut errors);
    }
    let mut size = 0_usize;
    for (key, value) in entries(new, "annotations") {
        for problem in NameFormat::LabelKey.problems(&key.to_lowercase()) {
            errors.push(FieldError::invalid(&at.child("annotations"), key.as_str(), problem));
        }
        size = size.saturating_add(key.len()).saturating_add(value.as_str().unwrap_or_default().len());
    }
    if size > MOST_ANNOTATIONS {
        errors.push(FieldError::too_long(&at.child("annotations"), MOST_ANNOTATIONS));
    }
    owners(new, &at.child("ownerReferences"), &mut errors);
    finalizers(old.is_none(), new, &at.child("finalizers"), &mut errors);
    errors
}

fn entries<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn texts<'v>(object: &'v Value, field: &str) -> Vec<&'v str> {
    let list = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn new_finalizers(old: &Value, new: &Value, at: &FieldPath<'_>) -> Option<FieldError> {
    let known = texts(old, "finalizers");
    let mut added: Vec<&str> = texts(new, "finalizers").into_iter().filter(|it| !known.contains(it)).collect();
    added.sort_unstable();
    added.dedup();
    let shown: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        shown.join(", ")
    );
    (!added.is_empty()).then(|| FieldError::forbidden(at, detail))
}

fn owners(object: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut controller: Option<String> = None;
    let list = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    for owner in list.into_iter().flatten() {
        for (field, problem) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner.text(&format!("/{field}")).is_empty() {
                errors.push(FieldError::invalid(&at.child(field), "", problem));
            }
        }
        if (owner.text("/apiVersion"), owner.text("/kind")) == ("v1", "Event") {
            let problem = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(at, dra_attrs::BadValue::literal(owner.to_string()), problem));
        }
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let named = format!("{}/{}", owner.text("/kind"), owner.text("/name"));
        match &controller {
            None => controller = Some(named),
            Some(first) => {
                let problem = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {named}"
                );
                let all = object.pointer("/metadata/ownerReferences").map(ToString::to_string).unwrap_or_default();
                errors.push(FieldError::invalid(at, dra_attrs::BadValue::literal(all), problem));
            }
        }
    }
}

fn finalizers(is_new: bool, object: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let names = texts(object, "finalizers");
    for name in names.iter().filter(|_| is_new) {
        check_format(NameFormat::LabelKey, name, at, errors);
    }
    if is_new && names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let all = serde_json::to_string(&names).unwrap_or_default();
        let problem = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(at, dra_attrs::BadValue::literal(all), problem));
    }
    for (index, name) in names.iter().enumerate() {
        if !name.contains('/') && !FINALIZERS.contains(name) {
            let problem = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&at.index(index), *name, problem));
        }
    }
}
