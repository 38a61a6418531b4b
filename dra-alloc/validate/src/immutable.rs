//! Validation of immutable fields. A claim's allocation, which may be cleared, is in `claim_status`.

use dra_attrs::{FieldError, FieldPath};
use dra_device::internal::{Same, TaintTimes};
use serde::Serialize;

use super::context::{ValidationContext, json};

const DETAIL: &str = "field is immutable";

/// Checks that an immutable field has its stored value.
pub(super) fn check<T: Same + Serialize>(new: &T, old: &T, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if !new.same(old, TaintTimes::Exact) {
        context.push(FieldError::invalid(at, json(new), DETAIL));
    }
}
