//! Fields that stay as they are.

use dra_attrs::field::{FieldError, FieldPath};
use serde::Serialize;

use super::equality::same;
use super::findings::{Findings, json};

const DETAIL: &str = "field is immutable";

/// Checks that a field has its old value.
pub(super) fn check<T: PartialEq + Serialize>(new: &T, old: &T, at: &FieldPath<'_>, findings: &mut Findings) {
    if !same(new, old) {
        findings.push(FieldError::invalid(at, json(new), DETAIL));
    }
}
