//! Validation of immutable fields.

use dra_attrs::{FieldError, FieldPath};
use serde::Serialize;

use super::context::{ValidationContext, json};
use super::equality::same;

const DETAIL: &str = "field is immutable";

/// Checks that an immutable field has its stored value.
pub(super) fn check<T: PartialEq + Serialize>(new: &T, old: &T, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if !same(new, old) {
        context.push(FieldError::invalid(at, json(new), DETAIL));
    }
}
