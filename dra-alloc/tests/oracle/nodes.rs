//! Node selection of slices and devices.

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

/// Only field that a node selector can match.
pub const NAME_FIELD: &str = "metadata.name";

/// Returns the node's name.
pub fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Returns true if the node is selected: by name if there is one, then by "all nodes", then by the selector.
pub fn matches(
    node: &Node,
    node_name: Option<&str>,
    all_nodes: Option<bool>,
    selector: Option<&NodeSelector>,
) -> Result<bool, String> {
    match (node_name, all_nodes, selector) {
        (Some(wanted), ..) if !wanted.is_empty() => Ok(wanted == name(node)),
        (_, Some(true), _) => Ok(true),
        (.., Some(selector)) => selected(selector, node),
        _ => Ok(false),
    }
}

/// Evaluates every term, including those after a match: an error in any term is an error.
fn selected(selector: &NodeSelector, node: &Node) -> Result<bool, String> {
    let mut any = false;
    for term in &selector.node_selector_terms {
        any |= term_matches(term, node)?;
    }
    Ok(any)
}

fn term_matches(term: &NodeSelectorTerm, node: &Node) -> Result<bool, String> {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return Ok(false);
    }
    let mut all = true;
    for requirement in expressions {
        let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(&requirement.key));
        all &= label_matches(requirement, label.map(String::as_str))?;
    }
    for requirement in fields {
        let value = if requirement.key == NAME_FIELD { name(node) } else { "" };
        all &= field_matches(requirement, value)?;
    }
    Ok(all)
}

fn label_matches(requirement: &NodeSelectorRequirement, label: Option<&str>) -> Result<bool, String> {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = label.is_some_and(|label| values.iter().any(|value| value == label));
    match (requirement.operator.as_str(), values) {
        ("In", [_, ..]) => Ok(listed),
        ("NotIn", [_, ..]) => Ok(!listed),
        ("Exists", []) => Ok(label.is_some()),
        ("DoesNotExist", []) => Ok(label.is_none()),
        ("Gt" | "Lt", [bound]) => {
            let bound: i64 = bound.parse().map_err(|_| unusable(requirement))?;
            let number = label.and_then(|label| label.parse::<i64>().ok());
            let greater = requirement.operator == "Gt";
            Ok(number.is_some_and(|number| if greater { number > bound } else { number < bound }))
        }
        _ => Err(unusable(requirement)),
    }
}

fn field_matches(requirement: &NodeSelectorRequirement, actual: &str) -> Result<bool, String> {
    match (requirement.operator.as_str(), requirement.values.as_deref().unwrap_or_default()) {
        ("In", [value]) => Ok(value == actual),
        ("NotIn", [value]) => Ok(value != actual),
        _ => Err(unusable(requirement)),
    }
}

fn unusable(requirement: &NodeSelectorRequirement) -> String {
    format!("failed to parse node selector: {} {}", requirement.key, requirement.operator)
}
