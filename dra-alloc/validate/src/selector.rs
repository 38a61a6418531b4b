//! Validation of CEL expressions: they must compile, the result of a selector must be a bool, and an evaluation must not
//! cost too much.

use dra_attrs::{BadValue, ErrorType, FieldError, FieldPath};
use dra_selector::internal::ListMemory;
use dra_selector::{CompileError, Options, Selector};
use k8s_openapi::api::resource::v1::DeviceSelector;

use super::context::ValidationContext;
use super::limits;
use super::list::List;

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
    let mut memory = ListMemory::default();
    let mut compile = |text: &str, options: &Options| {
        let selector = Selector::compile(text, options)?;
        memory.add(&selector).map(|()| selector)
    };
    List::new(selectors).at_most(limits::SELECTORS).each(at, context, |selector, at, context| {
        let at = at.child("cel");
        match &selector.cel {
            None => context.push(FieldError::required(&at, "")),
            Some(_) if stored == Stored::Yes => {}
            Some(cel) => check_expression(&cel.expression, &mut compile, &at.child("expression"), context),
        }
    });
}

/// Checks the length of an expression, compiles it with `compile`, and looks at what it could cost.
pub(super) fn check_expression(
    expression: &str,
    compile: impl FnOnce(&str, &Options) -> Result<Selector, CompileError>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if expression.len() > limits::CEL_EXPRESSION {
        return context.push(FieldError::too_long(at, limits::CEL_EXPRESSION));
    }
    match compile(expression, &Options::new_expression(context.gates()).with_profile(context.profile)) {
        Ok(selector) if selector.too_complex().is_some() => {
            context.push(FieldError::forbidden(at, "too complex, exceeds cost limit"));
        }
        Ok(_) => {}
        Err(error @ CompileError::Program { .. }) => {
            context.push(FieldError::new(ErrorType::Internal, at, BadValue::Omitted, error.to_string()));
        }
        Err(error) => context.push(FieldError::invalid(at, expression, error.to_string())),
    }
}
