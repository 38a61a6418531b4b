//! Gates of the nodes of a cluster: no release of Kubernetes has the field, so that they come from elsewhere.

use std::collections::BTreeMap;

use examples::manifest::ReadinessManifests;
use k8s_openapi::api::core::v1::Node;
use readiness::NodeReadinessGate;
use readiness::validate::{ValidationOptions, validate_gates};

/// Annotation of a node with its gates, as a JSON list.
pub(super) const ANNOTATION: &str = "dra-sdk.example.com/readiness-gates";

/// Sources of gates, the first of which counts: the annotation of the node, the node in manifests, kubelet configurations
/// in manifests.
#[derive(Debug)]
pub(super) struct Gates {
    of_nodes: BTreeMap<String, Vec<NodeReadinessGate>>,
    of_all: Vec<NodeReadinessGate>,
}

impl Gates {
    pub(super) fn new(manifests: ReadinessManifests) -> Self {
        let named = |node: readiness::GatedNode| (node.node.metadata.name.unwrap_or_default(), node.gates);
        // Of several gates of one type the first counts.
        let of_all = manifests.kubelets.into_iter().flat_map(|kubelet| kubelet.node_readiness_gates).collect();
        Self { of_nodes: manifests.nodes.into_iter().map(named).collect(), of_all }
    }

    /// Returns the gates of a node.
    ///
    /// # Errors
    /// A sentence: the annotation has no gates that an API server would take.
    pub(super) fn of(&self, node: &Node) -> Result<Vec<NodeReadinessGate>, String> {
        let annotation = node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
        let Some(text) = annotation else {
            let named = node.metadata.name.as_ref().and_then(|name| self.of_nodes.get(name));
            return Ok(named.unwrap_or(&self.of_all).clone());
        };
        let gates: Vec<NodeReadinessGate> =
            serde_json::from_str(text).map_err(|error| format!("annotation {ANNOTATION}: {error}"))?;
        match validate_gates(&gates, &ValidationOptions::default()).errors.iter().next() {
            Some(error) => Err(format!("annotation {ANNOTATION}: {error}")),
            None => Ok(gates),
        }
    }
}
