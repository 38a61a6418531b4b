//! A constraint of a claim.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::DeviceConstraint;

use super::findings::Findings;
use super::names;
use super::request_names::RequestNames;
use crate::features::Feature;

/// Checks the requests and the attribute. Of two attributes only `matchAttribute` is looked at.
pub(super) fn check(
    constraint: &DeviceConstraint,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    requests.check_list(constraint.requests.as_ref(), &at.child("requests"), findings);
    let at_match = at.child("matchAttribute");
    match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(name), _) => names::fully_qualified(name, &at_match, findings),
        (None, Some(name)) => names::fully_qualified(name, &at.child("distinctAttribute"), findings),
        (None, None) if findings.has(Feature::ConsumableCapacity) => {
            // These are the words of Kubernetes, though no field is set.
            let detail =
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
            findings.push(FieldError::required(at, detail));
        }
        (None, None) => findings.push(FieldError::required(&at_match, "")),
    }
}
