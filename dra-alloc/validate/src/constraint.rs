//! Validation of a constraint of a claim.

use dra_attrs::{FieldError, FieldPath, Gate};
use k8s_openapi::api::resource::v1::DeviceConstraint;

use super::context::ValidationContext;
use super::names;
use super::request_names::RequestNames;

/// Checks the requests and the attribute of a constraint. A constraint may have both `matchAttribute` and
/// `distinctAttribute`: the second is then neither validated nor read by the allocator.
pub(super) fn check(
    constraint: &DeviceConstraint,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    requests.check_list(constraint.requests.as_ref(), &at.child("requests"), context);
    let (at_match, at_distinct) = (at.child("matchAttribute"), at.child("distinctAttribute"));
    match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(name), _) => {
            names::declared_fully_qualified(name, &at_match, context);
            names::one_slash(name, &at_match, context);
        }
        (None, Some(name)) => names::fully_qualified(name, &at_distinct, context),
        (None, None) if context.has(Gate::ConsumableCapacity) => {
            // The message is Kubernetes', although no field is set.
            let detail =
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
            context.push(FieldError::required(at, detail));
        }
        (None, None) => context.push(FieldError::required(&at_match, "")),
    }
}
