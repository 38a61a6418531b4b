//! Nodes on which a slice or a device is available.
//!
//! The nodes are selected by the first of three fields that is set: `nodeName`, `allNodes`, `nodeSelector`.
//!
//! Source: `NodeMatches` of kube-scheduler 1.37.

use dra_attrs::{NodeSelectorError, node_selector_matches};
use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{Device, ResourceSliceSpec};

/// Nodes on which a slice or device is available.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    Node(&'a str),
    AllNodes,
    Selector(&'a NodeSelector),
    /// None of the fields `nodeName`, `allNodes` and `nodeSelector` is set: no node.
    Unknown,
}

impl<'a> Scope<'a> {
    pub(crate) fn from_slice(spec: &'a ResourceSliceSpec) -> Self {
        Self::new(spec.node_name.as_deref(), spec.all_nodes, spec.node_selector.as_ref())
    }

    pub(crate) fn from_device(device: &'a Device) -> Self {
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

    /// Returns the number of requirements and values that a check compares, at least 1.
    pub(crate) fn weight(self) -> usize {
        let Self::Selector(selector) = self else { return 1 };
        let fields = |term: &'a NodeSelectorTerm| term.match_fields.iter().chain(&term.match_expressions).flatten();
        let values = |requirement: &NodeSelectorRequirement| requirement.values.as_ref().map_or(0, Vec::len);
        let requirements = selector.node_selector_terms.iter().flat_map(fields);
        1 + requirements.map(|requirement| 1 + values(requirement) / 16).sum::<usize>()
    }

    pub(crate) fn matches(self, node: &Node) -> Result<bool, NodeSelectorError> {
        match self {
            Self::Node(name) => Ok(node.metadata.name.as_deref().unwrap_or_default() == name),
            Self::AllNodes => Ok(true),
            Self::Selector(selector) => node_selector_matches(selector, node),
            Self::Unknown => Ok(false),
        }
    }
}

/// Returns the selector of one node by its name.
pub(crate) fn selector_of_node(name: &str) -> NodeSelector {
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![name.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![requirement]), match_expressions: None };
    NodeSelector { node_selector_terms: vec![term] }
}
