//! CEL selectors: they are compiled, and their result must be a bool.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::DeviceSelector;

use super::findings::Findings;
use super::limits;
use super::list::List;
use crate::selector::{CompileError, Selector};

/// Whether expressions stand like this in storage; then they were valid once and are not compiled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Yes,
    No,
}

/// Checks the selectors of a request or a class.
pub(super) fn check_list(
    selectors: Option<&Vec<DeviceSelector>>,
    stored: Stored,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    List::new(selectors).at_most(limits::SELECTORS).each(at, findings, |selector, at, findings| {
        let at = at.child("cel");
        match &selector.cel {
            None => findings.push(FieldError::required(&at, "")),
            Some(_) if stored == Stored::Yes => {}
            Some(cel) => check_expression(&cel.expression, Selector::compile, &at.child("expression"), findings),
        }
    });
}

/// Checks an expression with the compiler of its kind.
pub(super) fn check_expression(
    expression: &str,
    compile: impl Fn(&str) -> Result<Selector, CompileError>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    if expression.len() > limits::CEL_EXPRESSION {
        return findings.push(FieldError::too_long(at, limits::CEL_EXPRESSION));
    }
    if let Err(error) = compile(expression) {
        findings.push(FieldError::invalid(at, expression, error.detail()));
    }
}
