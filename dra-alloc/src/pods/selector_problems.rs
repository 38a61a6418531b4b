//! Problems of a node selector, in the words of kube-scheduler's parser.
//!
//! Source: `component-helpers/scheduling/corev1/nodeaffinity`, `NewNodeSelector`; `apimachinery/pkg/labels`,
//! `NewRequirement`.

use dra_attrs::{BadValue, FieldError, FieldErrors, FieldPath, NameFormat};
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};

const LABEL_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const FIELD_OPERATORS: [&str; 2] = ["In", "NotIn"];

/// Returns the problems of a node selector, empty if it can be evaluated.
pub(super) fn problems(selector: &NodeSelector) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let terms = FieldPath::new("nodeSelectorTerms");
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        let term_path = terms.index(index);
        let (expressions, fields) = (term_path.child("matchExpressions"), term_path.child("matchFields"));
        for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
            check_label(requirement, &expressions.index(index), &mut errors);
        }
        for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
            check_field(requirement, &fields.index(index), &mut errors);
        }
    }
    errors
}

fn check_label(requirement: &NodeSelectorRequirement, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let NodeSelectorRequirement { key, operator, values } = requirement;
    let values = values.as_deref().unwrap_or_default();
    if !LABEL_OPERATORS.contains(&operator.as_str()) {
        return errors.push(FieldError::not_supported(&at.child("operator"), operator, &LABEL_OPERATORS));
    }
    let problems = NameFormat::LabelKey.problems(key);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(&at.child("key"), key, problems.join("; ")));
    }
    let at_values = at.child("values");
    let detail = match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Some("for 'in', 'notin' operators, values set can't be empty"),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        "Gt" | "Lt" if values.len() != 1 => Some("for 'Gt', 'Lt' operators, exactly one value is required"),
        _ => None,
    };
    errors.extend(detail.map(|detail| FieldError::invalid(&at_values, listed(values), detail)));
    for (index, value) in values.iter().enumerate() {
        if matches!(operator.as_str(), "Gt" | "Lt") && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid(&at_values.index(index), value, detail));
        }
        let problems = NameFormat::LabelValue.problems(value);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&at_values.index(index), value, problems.join("; ")));
        }
    }
}

fn check_field(requirement: &NodeSelectorRequirement, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let NodeSelectorRequirement { operator, values, .. } = requirement;
    let values = values.as_deref().unwrap_or_default();
    if !FIELD_OPERATORS.contains(&operator.as_str()) {
        errors.push(FieldError::not_supported(&at.child("operator"), operator, &FIELD_OPERATORS));
    } else if values.len() != 1 {
        errors.push(FieldError::invalid(&at.child("values"), listed(values), "must have one element"));
    }
}

/// Returns a list of texts as the message shows it.
fn listed(values: &[String]) -> BadValue {
    BadValue::literal(serde_json::to_string(values).unwrap_or_default())
}
