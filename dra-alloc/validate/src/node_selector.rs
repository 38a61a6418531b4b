//! Validation of a node selector.

use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};

use super::context::ValidationContext;
use super::names;

const UNKNOWN_OPERATOR: &str = "not a valid selector operator";

/// Checks every requirement of every term of a node selector.
pub(super) fn check(selector: &NodeSelector, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let at = at.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        context.push(FieldError::required(&at, "must have at least one node selector term"));
    }
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        let at = at.index(index);
        for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
            check_expression(requirement, &at.child("matchExpressions").index(index), context);
        }
        for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
            check_field(requirement, &at.child("matchFields").index(index), context);
        }
    }
}

fn check_expression(requirement: &NodeSelectorRequirement, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let at_values = at.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            context.push(FieldError::required(&at_values, detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            context.push(FieldError::forbidden(&at_values, detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            context.push(FieldError::required(&at_values, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => context.push(FieldError::invalid(&at.child("operator"), other, UNKNOWN_OPERATOR)),
    }
    names::label_key(&requirement.key, &at.child("key"), context);
    for (index, value) in values.iter().enumerate() {
        names::label_value(value, &at_values.index(index), context);
    }
}

fn check_field(requirement: &NodeSelectorRequirement, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let at_values = at.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            context.push(FieldError::required(&at_values, detail));
        }
        "In" | "NotIn" => {}
        other => context.push(FieldError::invalid(&at.child("operator"), other, UNKNOWN_OPERATOR)),
    }
    if requirement.key != "metadata.name" {
        let detail = "not a valid field selector key";
        return context.push(FieldError::invalid(&at.child("key"), &requirement.key, detail));
    }
    for (index, value) in values.iter().enumerate() {
        names::subdomain(value, &at_values.index(index), context);
    }
}
