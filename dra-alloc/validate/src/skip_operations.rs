//! Validation of `skipNodeOperations` of a slice or allocation result (KEP-5945).

use std::collections::BTreeSet;

use dra_attrs::{FieldError, FieldPath};
use dra_device::skip::{SkipSet, WireForm};

use super::context::{ValidationContext, json};

pub(super) const FIELD: &str = "skipNodeOperations";

const KNOWN: [&str; 3] = [SkipSet::ALL_OPERATIONS, SkipSet::NODE_PREPARE_RESOURCES, SkipSet::NODE_UNPREPARE_RESOURCES];

/// Checks `skipNodeOperations`; `old` is the stored list, if there is a stored object. Unknown names are accepted if
/// they are stored. Skipping prepare without unprepare is never accepted.
pub(super) fn check(new: &[String], old: Option<&[String]>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if WireForm::from_profile(context.profile) == WireForm::Bool {
        // Every bool is valid.
        return;
    }
    let old_list = old.unwrap_or_default();
    if old.is_none() || new != old_list {
        check_names(new, old_list, at, context);
    }
    let has = |operation: &str| new.iter().any(|name| name == operation);
    if has(SkipSet::NODE_PREPARE_RESOURCES) && !has(SkipSet::NODE_UNPREPARE_RESOURCES) && !has(SkipSet::ALL_OPERATIONS)
    {
        let detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped";
        context.push(FieldError::invalid(at, json(&new), detail));
    }
}

fn check_names(new: &[String], old: &[String], at: &FieldPath<'_>, context: &mut ValidationContext) {
    let mut seen = BTreeSet::new();
    for (index, name) in new.iter().enumerate() {
        let at = at.index(index);
        if !KNOWN.contains(&name.as_str()) && !old.contains(name) {
            context.push(FieldError::not_supported(&at, name, &KNOWN));
        }
        if !seen.insert(name) {
            context.push(FieldError::duplicate(&at, name));
        }
    }
}
