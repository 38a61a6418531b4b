//! Which node a slice or a device belongs to.
//!
//! A scope is given by one of three fields: `nodeName`, `allNodes`, `nodeSelector`, looked at in this order. Node
//! selectors have Kubernetes' meaning: terms are alternatives, the requirements of a term hold together, a term without
//! requirements matches nothing, and the only field is `metadata.name`.
//!
//! Source: `NodeMatches` of kube-scheduler 1.37 and `component-helpers/scheduling/corev1/nodeaffinity`.

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{Device, ResourceSliceSpec};

/// Why a node selector can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodeSelector.nodeSelectorTerms[{term}].{field}[{index}]: {reason}")]
#[non_exhaustive]
pub struct NodeSelectorError {
    /// Position of the term.
    pub term: usize,
    /// `matchExpressions` or `matchFields`.
    pub field: &'static str,
    /// Position of the requirement.
    pub index: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Where devices are available.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    Node(&'a str),
    AllNodes,
    Selector(&'a NodeSelector),
    /// Nothing is said that this version knows.
    Unknown,
}

impl<'a> Scope<'a> {
    pub(crate) fn of_slice(spec: &'a ResourceSliceSpec) -> Self {
        Self::new(spec.node_name.as_deref(), spec.all_nodes, spec.node_selector.as_ref())
    }

    pub(crate) fn of_device(device: &'a Device) -> Self {
        Self::new(device.node_name.as_deref(), device.all_nodes, device.node_selector.as_ref())
    }

    fn new(name: Option<&'a str>, all: Option<bool>, selector: Option<&'a NodeSelector>) -> Self {
        match (name, all, selector) {
            (Some(name), ..) if !name.is_empty() => Self::Node(name),
            (_, Some(true), _) => Self::AllNodes,
            (.., Some(selector)) => Self::Selector(selector),
            _ => Self::Unknown,
        }
    }

    pub(crate) fn matches(self, node: &Node) -> Result<bool, NodeSelectorError> {
        match self {
            Self::Node(name) => Ok(node.metadata.name.as_deref().unwrap_or_default() == name),
            Self::AllNodes => Ok(true),
            Self::Selector(selector) => selector_matches(selector, node),
            Self::Unknown => Ok(false),
        }
    }
}

/// Whether a node selector matches a node.
///
/// # Errors
/// A requirement that can't be used, in any of the terms.
///
/// # Complexity
/// Linear in the number of requirements and their values.
///
/// ```
/// use dra_alloc::node::selector_matches;
/// use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
///
/// let mut node = Node::default();
/// node.metadata.labels = Some([("zone".to_owned(), "b".to_owned())].into());
/// let zone = NodeSelectorRequirement {
///     key: "zone".into(), operator: "In".into(), values: Some(vec!["a".into(), "b".into()]),
/// };
/// let term = NodeSelectorTerm { match_expressions: Some(vec![zone]), ..Default::default() };
/// assert!(selector_matches(&NodeSelector { node_selector_terms: vec![term] }, &node)?);
/// assert!(!selector_matches(&NodeSelector { node_selector_terms: vec![Default::default()] }, &node)?);
/// # Ok::<(), dra_alloc::node::NodeSelectorError>(())
/// ```
pub fn selector_matches(selector: &NodeSelector, node: &Node) -> Result<bool, NodeSelectorError> {
    let mut any = false;
    // Every term is read, since an unusable requirement anywhere makes the selector unusable.
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        any |= term_matches(term, node, index)?;
    }
    Ok(any)
}

fn term_matches(term: &NodeSelectorTerm, node: &Node, index: usize) -> Result<bool, NodeSelectorError> {
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
        all &= holds.map_err(|reason| NodeSelectorError { term: index, field, index: position, reason })?;
    }
    Ok(all && !empty)
}

/// Whether a requirement holds for the value that a node has, or why it can't be used.
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
