//! Derived attributes of a request (KEP-6080): computed, and used by a constraint on the request.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{DeviceConstraint, DeviceDerivedAttribute};

use super::findings::Findings;
use super::list::List;
use super::{limits, names, selector};
use crate::selector::Selector;

/// Checks the derived attributes of the request that constraints call `reference`.
pub(super) fn check(
    attributes: Option<&Vec<DeviceDerivedAttribute>>,
    reference: &str,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    List::new(attributes).at_most(limits::DERIVED_ATTRIBUTES).each_unique(
        at,
        findings,
        |attribute| attribute.name.as_str(),
        |attribute, at, findings| {
            check_name(&attribute.name, reference, constraints, &at.child("name"), findings);
            let at = at.child("expression");
            if attribute.expression.is_empty() {
                return findings.push(FieldError::required(&at, ""));
            }
            selector::check_expression(&attribute.expression, Selector::compile_derived, &at, findings);
        },
    );
}

fn check_name(
    name: &str,
    reference: &str,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    if name.is_empty() {
        return findings.push(FieldError::required(at, ""));
    }
    names::declared_fully_qualified(name, at, findings);
    if !constraints.iter().any(|constraint| concerns(constraint, name, reference)) {
        let detail =
            "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request";
        findings.push(FieldError::invalid(at, name, detail));
    }
}

/// Whether a constraint is about the attribute, on all requests, on this one, or on the one that it is part of.
fn concerns(constraint: &DeviceConstraint, name: &str, reference: &str) -> bool {
    let attribute = constraint.match_attribute.as_ref().or(constraint.distinct_attribute.as_ref());
    let request = reference.split_once('/').map_or(reference, |(request, _)| request);
    let requests = constraint.requests.as_deref().unwrap_or_default();
    attribute.is_some_and(|attribute| attribute == name)
        && (requests.is_empty() || requests.iter().any(|wanted| wanted == reference || wanted == request))
}
