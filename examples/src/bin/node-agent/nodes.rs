//! Manifests of nodes with their gates.

use readiness::GatedNode;
use serde::Deserialize;
use serde_json::Value;

/// Manifest that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NodesError {
    /// The text is not YAML or JSON.
    #[error("{message}")]
    Text {
        /// Problem, with its place in the text.
        message: String,
    },
    /// The object is not a node.
    #[error("node {node:?}: {message}")]
    Node {
        /// Name of the node, if it has one.
        node: String,
        /// Problem of the object.
        message: String,
    },
}

/// Reads the nodes of a YAML or JSON text with one or several documents, also lists of objects. Other kinds are skipped.
///
/// # Errors
/// Text that is not YAML or JSON, and nodes that can't be read.
pub(crate) fn read_nodes(text: &str) -> Result<Vec<GatedNode>, NodesError> {
    // A node may be called `n`, which older YAML takes for false.
    let budget = serde_saphyr::budget! {
        max_events: 100_000_000, max_nodes: 100_000_000, max_total_scalar_bytes: usize::MAX,
    };
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false, budget: budget };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| NodesError::Text { message: error.to_string() })?;
    let mut nodes = Vec::new();
    for document in documents {
        match document.get("items").and_then(Value::as_array) {
            Some(items) => items.iter().try_for_each(|item| read(item, &mut nodes))?,
            None => read(&document, &mut nodes)?,
        }
    }
    Ok(nodes)
}

fn read(object: &Value, nodes: &mut Vec<GatedNode>) -> Result<(), NodesError> {
    if object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind != "Node") {
        return Ok(());
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let error = |error: serde_json::Error| NodesError::Node { node: name.to_owned(), message: error.to_string() };
    nodes.push(GatedNode::deserialize(object).map_err(error)?);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::read_nodes;

    #[test]
    fn a_node_with_a_gate() {
        let nodes = read_nodes("kind: Node\nspec:\n  readinessGates:\n  - conditionType: a.example/Ready\n").unwrap();
        assert_eq!(nodes[0].gates[0].condition_type, "a.example/Ready");
    }
}
