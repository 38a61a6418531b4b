//! Validation of immutable fields. A claim's allocation, which may be cleared, is in `claim_status`.

use dra_attrs::{FieldError, FieldPath};
use dra_device::internal::{Same, TaintTimes, same_or_empty};
use serde::Serialize;

use super::context::{ValidationContext, json};

const DETAIL: &str = "field is immutable";

/// Checks that an immutable field has its stored value.
pub(super) fn check<T: Same + Serialize>(new: &T, old: &T, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if !new.same(old, TaintTimes::Exact) {
        context.push(FieldError::invalid(at, json(new), DETAIL));
    }
}

/// Checks that an immutable spec is the stored one. An absent spec is an empty one.
pub(super) fn check_spec<T: Same + Default + Serialize>(
    new: Option<&T>,
    old: Option<&T>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if !same_or_empty(new, old, TaintTimes::Exact) {
        context.push(FieldError::invalid(at, json(&new), DETAIL));
    }
}
