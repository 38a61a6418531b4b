//! Validation of the derived attributes of a request (KEP-6080). A constraint on the request must use each of them.

use dra_attrs::{FieldError, FieldPath};
use dra_selector::Selector;
use k8s_openapi::api::resource::v1::{DeviceConstraint, DeviceDerivedAttribute};

use super::context::ValidationContext;
use super::list::List;
use super::{limits, names, selector};

/// Checks the derived attributes of a request. `reference` is the name of the request in constraints: `request` or
/// `request/subrequest`.
pub(super) fn check(
    attributes: Option<&Vec<DeviceDerivedAttribute>>,
    reference: &str,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    List::new(attributes).at_most(limits::DERIVED_ATTRIBUTES).each_unique(
        at,
        context,
        |attribute| attribute.name.as_str(),
        |attribute, at, context| {
            check_name(&attribute.name, reference, constraints, &at.child("name"), context);
            let at = at.child("expression");
            if attribute.expression.is_empty() {
                return context.push(FieldError::required(&at, ""));
            }
            selector::check_expression(&attribute.expression, Selector::compile_derived, &at, context);
        },
    );
}

fn check_name(
    name: &str,
    reference: &str,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if name.is_empty() {
        return context.push(FieldError::required(at, ""));
    }
    names::declared_fully_qualified(name, at, context);
    if !constraints.iter().any(|constraint| concerns(constraint, name, reference)) {
        let detail =
            "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request";
        context.push(FieldError::invalid(at, name, detail));
    }
}

/// Returns true if a constraint uses the attribute `name` and applies to `reference`: to all requests, to the request
/// itself, or to the request of a subrequest.
fn concerns(constraint: &DeviceConstraint, name: &str, reference: &str) -> bool {
    let attribute = constraint.match_attribute.as_ref().or(constraint.distinct_attribute.as_ref());
    let request = reference.split_once('/').map_or(reference, |(request, _)| request);
    let requests = constraint.requests.as_deref().unwrap_or_default();
    attribute.is_some_and(|attribute| attribute == name)
        && (requests.is_empty() || requests.iter().any(|wanted| wanted == reference || wanted == request))
}
