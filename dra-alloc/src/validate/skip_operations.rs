//! `skipNodeOperations` of a slice or of an allocated device (KEP-5945).

use dra_attrs::field::{FieldError, FieldPath};
use std::collections::BTreeSet;

use super::findings::{Findings, json};
use crate::profile::SkipForm;
use crate::skip::{ALL, PREPARE, UNPREPARE};

pub(super) const FIELD: &str = "skipNodeOperations";

const KNOWN: [&str; 3] = [ALL, PREPARE, UNPREPARE];

/// Checks the operations, with those in storage if the field is stored. What storage holds already is tolerated, but
/// skipping prepare alone never is.
pub(super) fn check(new: &[String], old: Option<&[String]>, at: &FieldPath<'_>, findings: &mut Findings) {
    if findings.decisions.skip_form == SkipForm::Bool {
        // Any bool is valid.
        return;
    }
    let old_list = old.unwrap_or_default();
    if old.is_none() || new != old_list {
        check_names(new, old_list, at, findings);
    }
    let has = |operation: &str| new.iter().any(|name| name == operation);
    if has(PREPARE) && !has(UNPREPARE) && !has(ALL) {
        let detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped";
        findings.push(FieldError::invalid(at, json(&new), detail));
    }
}

fn check_names(new: &[String], old: &[String], at: &FieldPath<'_>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, name) in new.iter().enumerate() {
        let at = at.index(index);
        if !KNOWN.contains(&name.as_str()) && !old.contains(name) {
            findings.push(FieldError::not_supported(&at, name, &KNOWN));
        }
        if !seen.insert(name) {
            findings.push(FieldError::duplicate(&at, name));
        }
    }
}
