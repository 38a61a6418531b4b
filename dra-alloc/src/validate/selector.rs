//! Validation of CEL expressions: they must compile, and the result of a selector must be a bool.

use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::DeviceSelector;

use super::context::ValidationContext;
use super::limits;
use super::list::List;
use crate::selector::{CompileError, Selector};

/// Origin of an expression: a new one is compiled, a stored one is not, because it was valid before.
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
    context: &mut ValidationContext,
) {
    List::new(selectors).at_most(limits::SELECTORS).each(at, context, |selector, at, context| {
        let at = at.child("cel");
        match &selector.cel {
            None => context.push(FieldError::required(&at, "")),
            Some(_) if stored == Stored::Yes => {}
            Some(cel) => check_expression(&cel.expression, Selector::compile, &at.child("expression"), context),
        }
    });
}

/// Checks the length of an expression, then compiles it with `compile`.
pub(super) fn check_expression(
    expression: &str,
    compile: impl Fn(&str) -> Result<Selector, CompileError>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if expression.len() > limits::CEL_EXPRESSION {
        return context.push(FieldError::too_long(at, limits::CEL_EXPRESSION));
    }
    if let Err(error) = compile(expression) {
        context.push(FieldError::invalid(at, expression, error.detail()));
    }
}
