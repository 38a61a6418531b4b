//! Node selectors of allocations.

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement};

/// Whether a node is one that the allocation can be used on.
pub(super) fn matches(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| {
        let labels = term.match_expressions.iter().flatten();
        let mut fields = term.match_fields.iter().flatten();
        let is_empty = term.match_expressions.iter().flatten().next().is_none()
            && term.match_fields.iter().flatten().next().is_none();
        let label = |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
        let field = |key: &str| node.metadata.name.as_deref().filter(|_| key == "metadata.name");
        !is_empty && labels.clone().all(|it| holds(it, label(&it.key))) && fields.all(|it| holds(it, field(&it.key)))
    })
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = || Some((number(value?)?, number(values.first()?)?));
    match requirement.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}
