//! Validation of the metadata of an object.
//!
//! An absent name is not checked: the API server takes it from the path of the HTTP request or from `generateName`.

use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::context::ValidationContext;
use super::{immutable, names};

/// Checks that the name of the object is valid.
pub(super) fn check_name(metadata: &ObjectMeta, context: &mut ValidationContext) {
    let root = FieldPath::new("metadata");
    match metadata.name.as_deref() {
        None => {}
        Some("") if metadata.generate_name.as_ref().is_some_and(|prefix| !prefix.is_empty()) => {}
        Some("") => {
            context.push(FieldError::required(&root.child("name"), "name or generateName is required"));
        }
        Some(name) => names::subdomain(name, &root.child("name"), context),
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
