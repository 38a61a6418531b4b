//! Node selectors, matched against a node's labels and name as kube-scheduler does.
//!
//! A node matches if it satisfies every requirement of at least one term. A term without requirements matches nothing.
//! The only field is `metadata.name`.
//!
//! Source: `component-helpers/scheduling/corev1/nodeaffinity`, Kubernetes 1.37.

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

use crate::index::Index;

/// Error of a node selector with a requirement that can't be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodeSelector.nodeSelectorTerms[{term}].{field}[{index}]: {reason}")]
#[non_exhaustive]
pub struct NodeSelectorError {
    /// Position of the term in `nodeSelectorTerms`.
    pub term: Index<NodeSelectorTerm>,
    /// List of the term that has the requirement: `matchExpressions` or `matchFields`.
    pub field: &'static str,
    /// Position of the requirement in its list.
    pub index: Index<NodeSelectorRequirement>,
    /// The rule that the requirement breaks.
    pub reason: &'static str,
}

/// Returns true if `selector` matches `node`, by its labels and its name.
///
/// # Errors
/// The first requirement that can't be evaluated, in any of the terms: it makes the whole selector unusable.
///
/// # Complexity
/// Linear in the number of requirements and their values.
///
/// ```
/// use dra_attrs::node_selector_matches;
/// use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
///
/// let mut node = Node::default();
/// node.metadata.labels = Some([("zone".to_owned(), "b".to_owned())].into());
/// let zone = NodeSelectorRequirement {
///     key: "zone".into(), operator: "In".into(), values: Some(vec!["a".into(), "b".into()]),
/// };
/// let term = NodeSelectorTerm { match_expressions: Some(vec![zone]), ..Default::default() };
/// assert!(node_selector_matches(&NodeSelector { node_selector_terms: vec![term] }, &node)?);
/// assert!(!node_selector_matches(&NodeSelector { node_selector_terms: vec![Default::default()] }, &node)?);
/// # Ok::<(), dra_attrs::NodeSelectorError>(())
/// ```
pub fn node_selector_matches(selector: &NodeSelector, node: &Node) -> Result<bool, NodeSelectorError> {
    let mut any = false;
    // Every term is read, since an unusable requirement anywhere makes the selector unusable.
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        any |= term_matches(term, node, Index::from(index))?;
    }
    Ok(any)
}

/// Returns true if the required node affinity of a pod admits `node`: one of its terms matches. A term with a requirement that
/// can't be evaluated matches nothing; other terms still count, unlike in [`node_selector_matches`].
///
/// # Complexity
/// Linear in the number of requirements and their values.
///
/// ```
/// use dra_attrs::{node_affinity_matches, node_selector_matches};
/// use k8s_openapi::api::core::v1::{Node, NodeSelector};
/// let affinity: NodeSelector = serde_json::from_str(r#"{"nodeSelectorTerms": [
///     {"matchExpressions": [{"key": "zone", "operator": "Near"}]},
///     {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}]}"#)?;
/// assert!(node_affinity_matches(&affinity, &Node::default()));
/// assert!(node_selector_matches(&affinity, &Node::default()).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn node_affinity_matches(affinity: &NodeSelector, node: &Node) -> bool {
    let mut terms = affinity.node_selector_terms.iter().enumerate();
    terms.any(|(index, term)| term_matches(term, node, Index::from(index)).unwrap_or(false))
}

fn term_matches(
    term: &NodeSelectorTerm,
    node: &Node,
    index: Index<NodeSelectorTerm>,
) -> Result<bool, NodeSelectorError> {
    let labels = node.metadata.labels.as_ref();
    let expressions = term.match_expressions.iter().flatten().enumerate().map(|(position, requirement)| {
        let value = labels.and_then(|labels| labels.get(&requirement.key));
        ("matchExpressions", position, label_holds(requirement, value.map(String::as_str)))
    });
    let fields = term.match_fields.iter().flatten().enumerate().map(|(position, requirement)| {
        let value = node.metadata.name.as_deref().filter(|_| requirement.key == "metadata.name");
        ("matchFields", position, field_holds(requirement, value))
    });
    let (mut empty, mut all) = (true, true);
    for (field, position, holds) in expressions.chain(fields) {
        empty = false;
        all &=
            holds.map_err(|reason| NodeSelectorError { term: index, field, index: Index::from(position), reason })?;
    }
    Ok(all && !empty)
}

/// Returns true if a label's value, `None` if the node lacks the label, satisfies a requirement. The error is the rule
/// that the requirement breaks.
fn label_holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> Result<bool, &'static str> {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || value.is_some_and(|value| values.iter().any(|other| other == value));
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Err("In and NotIn need values"),
        "In" => Ok(listed()),
        "NotIn" => Ok(!listed()),
        "Exists" | "DoesNotExist" if !values.is_empty() => Err("Exists and DoesNotExist take no values"),
        "Exists" => Ok(value.is_some()),
        "DoesNotExist" => Ok(value.is_none()),
        "Gt" | "Lt" => {
            let [bound] = values else { return Err("Gt and Lt need one value") };
            let bound: i64 = bound.parse().map_err(|_| "the value of Gt and Lt must be an integer")?;
            let value: Option<i64> = value.and_then(|value| value.parse().ok());
            Ok(value.is_some_and(|value| if requirement.operator == "Gt" { value > bound } else { value < bound }))
        }
        _ => Err("unknown operator"),
    }
}

fn field_holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> Result<bool, &'static str> {
    let [wanted] = requirement.values.as_deref().unwrap_or_default() else {
        return Err("a field requirement needs one value");
    };
    let equal = value.unwrap_or_default() == wanted;
    match requirement.operator.as_str() {
        "In" => Ok(equal),
        "NotIn" => Ok(!equal),
        _ => Err("a field requirement needs the operator In or NotIn"),
    }
}
