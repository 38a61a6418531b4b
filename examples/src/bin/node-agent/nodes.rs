//! Manifests of nodes with their gates, and of what belongs to them.

use std::collections::BTreeMap;

use readiness::rule::{NodeReadinessRule, ReadinessTaintRule};
use readiness::{GatedNode, GatedPod, KubeletConfiguration};
use serde::Deserialize;
use serde_json::Value;

use super::timeline::ConditionReport;

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

/// Objects of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    /// Nodes with their gates.
    pub(crate) nodes: Vec<GatedNode>,
    /// Configurations of kubelets, whose gates are registered.
    pub(crate) kubelets: Vec<KubeletConfiguration>,
    /// Documents with nothing but `status`, as the KEP's walkthrough has them: what is reported, one after the other.
    pub(crate) statuses: Vec<Vec<ConditionReport>>,
    /// Pods with their requirements.
    pub(crate) pods: Vec<GatedPod>,
    /// Rules of a controller for start-up taints.
    pub(crate) taint_rules: Vec<ReadinessTaintRule>,
    /// Rules of node-readiness-controller.
    pub(crate) rules: Vec<NodeReadinessRule>,
    /// Number of objects of other kinds, by kind.
    pub(crate) ignored: BTreeMap<String, usize>,
}

impl Objects {
    /// Adds the objects of another text.
    pub(crate) fn extend(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.kubelets.extend(other.kubelets);
        self.statuses.extend(other.statuses);
        self.pods.extend(other.pods);
        self.taint_rules.extend(other.taint_rules);
        self.rules.extend(other.rules);
        for (kind, count) in other.ignored {
            let known = self.ignored.entry(kind).or_default();
            *known = known.saturating_add(count);
        }
    }

    fn read(&mut self, object: &Value) -> Result<(), NodesError> {
        let kind = object.get("kind").and_then(Value::as_str);
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let refusal = |message: String| NodesError::Node { node: name.to_owned(), message };
        if let Some(message) = unquoted(object) {
            return Err(refusal(message));
        }
        let error = |error: serde_json::Error| refusal(error.to_string());
        match kind {
            None if object.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("status")) => {
                self.statuses.push(conditions(object).map_err(error)?);
            }
            None | Some("Node") => self.nodes.push(GatedNode::deserialize(object).map_err(error)?),
            Some("KubeletConfiguration") => {
                self.kubelets.push(KubeletConfiguration::deserialize(object).map_err(error)?);
            }
            Some("Pod") => self.pods.push(GatedPod::deserialize(object).map_err(error)?),
            Some("ReadinessTaintRule") => {
                self.taint_rules.push(ReadinessTaintRule::deserialize(object).map_err(error)?);
            }
            Some("NodeReadinessRule") => self.rules.push(NodeReadinessRule::deserialize(object).map_err(error)?),
            Some(other) => {
                let count = self.ignored.entry(other.to_owned()).or_default();
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// Reads the objects of a YAML or JSON text with one or several documents, also lists of objects.
///
/// # Errors
/// Text that is not YAML or JSON, and objects that can't be read.
pub(crate) fn read_objects(text: &str) -> Result<Objects, NodesError> {
    // A node may be called `n`, which older YAML takes for false.
    let budget = serde_saphyr::budget! {
        max_events: 100_000_000, max_nodes: 100_000_000, max_total_scalar_bytes: usize::MAX,
    };
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false, budget: budget };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| NodesError::Text { message: error.to_string() })?;
    let mut objects = Objects::default();
    for document in documents {
        match document.get("items").and_then(Value::as_array) {
            Some(items) => items.iter().try_for_each(|item| objects.read(item))?,
            None => objects.read(&document)?,
        }
    }
    Ok(objects)
}

fn conditions(object: &Value) -> Result<Vec<ConditionReport>, serde_json::Error> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().map(ConditionReport::deserialize).collect()
}

/// Fields that hold strings, in which YAML reads `true` without quotes as a boolean. `*` stands for every entry.
const STRINGS: [&[&str]; 6] = [
    &["metadata", "labels", "*"],
    &["metadata", "annotations", "*"],
    &["spec", "taints", "*", "value"],
    &["spec", "readinessGates", "*", "readinessTaint", "value"],
    &["nodeReadinessGates", "*", "readinessTaint", "value"],
    &["status", "conditions", "*", "status"],
];

/// Returns what to write where an object has a boolean in place of a string.
fn unquoted(object: &Value) -> Option<String> {
    STRINGS.iter().find_map(|path| {
        let (field, value) = boolean(object, path)?;
        let text = match (path.last(), value) {
            (Some(&"status"), true) => "True",
            (Some(&"status"), false) => "False",
            (_, true) => "true",
            (_, false) => "false",
        };
        Some(format!("{field}: a boolean, where the API wants a string: write \"{text}\", with the quotes"))
    })
}

/// Returns the first boolean at a path.
fn boolean(value: &Value, path: &[&str]) -> Option<(String, bool)> {
    let Some((step, rest)) = path.split_first() else { return value.as_bool().map(|value| (String::new(), value)) };
    let below = |name: String, value: &Value| {
        let (field, value) = boolean(value, rest)?;
        let dot = if field.is_empty() || field.starts_with('[') { "" } else { "." };
        Some((format!("{name}{dot}{field}"), value))
    };
    match (step, value) {
        (&"*", Value::Array(entries)) => {
            entries.iter().enumerate().find_map(|(index, entry)| below(format!("[{index}]"), entry))
        }
        (&"*", Value::Object(entries)) => entries.iter().find_map(|(key, entry)| below(key.clone(), entry)),
        (key, _) => below((*key).to_owned(), value.get(*key)?),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::read_objects;

    #[test]
    fn a_node_with_a_gate() {
        let objects =
            read_objects("kind: Node\nspec:\n  readinessGates:\n  - conditionType: a.example/Ready\n").unwrap();
        assert_eq!(objects.nodes[0].gates[0].condition_type, "a.example/Ready");
    }
}
