//! The name of an object.
//!
//! A name that is not given is not checked: it comes from the request's path or from `generateName`.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::findings::Findings;
use super::{immutable, names};

/// Checks the form of the name.
pub(super) fn check_name(metadata: &ObjectMeta, findings: &mut Findings) {
    let root = FieldPath::new("metadata");
    match metadata.name.as_deref() {
        None => {}
        Some("") if metadata.generate_name.as_ref().is_some_and(|prefix| !prefix.is_empty()) => {}
        Some("") => {
            findings.push(FieldError::required(&root.child("name"), "name or generateName is required"));
        }
        Some(name) => names::subdomain(name, &root.child("name"), findings),
    }
}

/// Checks that the object is the same one.
pub(super) fn check_update(new: &ObjectMeta, old: &ObjectMeta, findings: &mut Findings) {
    let root = FieldPath::new("metadata");
    let fields =
        [("name", &new.name, &old.name), ("namespace", &new.namespace, &old.namespace), ("uid", &new.uid, &old.uid)];
    for (name, new, old) in fields {
        if new.is_some() && old.is_some() {
            immutable::check(new, old, &root.child(name), findings);
        }
    }
}
