//! Validation of the binding conditions of a device (KEP-5007).

use std::collections::BTreeSet;

use dra_attrs::{FieldError, FieldPath};

use super::context::{ValidationContext, json};
use super::list::List;
use super::{limits, names};

/// Binding conditions and binding failure conditions of a device.
#[derive(Clone, Copy)]
pub(super) struct Conditions<'a> {
    pub(super) success: Option<&'a Vec<String>>,
    pub(super) failure: Option<&'a Vec<String>>,
}

/// Checks the binding conditions and binding failure conditions: valid condition types, no duplicates within or across
/// the two lists, and no list without the other.
pub(super) fn check(conditions: Conditions<'_>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let at_success = at.child("bindingConditions");
    let at_failure = at.child("bindingFailureConditions");
    let is_type = |condition: &String, at: &FieldPath<'_>, context: &mut ValidationContext| {
        names::label_key(condition, at, context);
    };
    for (list, at) in [(conditions.success, &at_success), (conditions.failure, &at_failure)] {
        List::new(list).at_most(limits::BINDING_CONDITIONS).each(at, context, is_type);
    }
    let success = conditions.success.map_or(&[][..], Vec::as_slice);
    let failure = conditions.failure.map_or(&[][..], Vec::as_slice);
    check_unique(success, &at_success, context);
    let mut seen = BTreeSet::new();
    for (index, condition) in failure.iter().enumerate() {
        let at = at_failure.index(index);
        if !seen.insert(condition) {
            context.push(FieldError::duplicate(&at, condition));
        }
        if success.contains(condition) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            context.push(FieldError::invalid(&at, condition, detail));
        }
    }
    if success.is_empty() && !failure.is_empty() {
        let detail = "bindingConditions are required to use bindingFailureConditions";
        context.push(FieldError::invalid(&at_success, json(&conditions.success), detail));
    }
    if failure.is_empty() && !success.is_empty() {
        let detail = "bindingFailureConditions are required to use bindingConditions";
        context.push(FieldError::invalid(&at_failure, json(&conditions.failure), detail));
    }
}

fn check_unique(conditions: &[String], at: &FieldPath<'_>, context: &mut ValidationContext) {
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate().filter(|(_, condition)| !seen.insert(*condition)) {
        context.push(FieldError::duplicate(&at.index(index), condition));
    }
}
