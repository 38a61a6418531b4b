//! A constraint of a claim.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::DeviceConstraint;

use super::findings::Findings;
use super::names;
use super::request_names::RequestNames;
use crate::features::Feature;

/// Checks the requests and the attribute. Two attributes are accepted if their names are, though the allocator looks at
/// `matchAttribute` alone.
pub(super) fn check(
    constraint: &DeviceConstraint,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    requests.check_list(constraint.requests.as_ref(), &at.child("requests"), findings);
    let (at_match, at_distinct) = (at.child("matchAttribute"), at.child("distinctAttribute"));
    match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(name), other) => {
            names::fully_qualified(name, &at_match, findings);
            if let Some(name) = other {
                names::declared_fully_qualified(name, &at_distinct, findings);
            }
        }
        (None, Some(name)) => names::fully_qualified(name, &at_distinct, findings),
        (None, None) if findings.has(Feature::ConsumableCapacity) => {
            // These are the words of Kubernetes, though no field is set.
            let detail =
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
            findings.push(FieldError::required(at, detail));
        }
        (None, None) => findings.push(FieldError::required(&at_match, "")),
    }
}
