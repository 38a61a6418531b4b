//! Nodes that a pod may use, apart from devices: by labels, names, taints and the mark of a cordoned node.

use dra_attrs::node_selector_matches;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec, Toleration};
use readiness::GatedNodeView;

/// Taint of a node that is cordoned.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Reason that a pod may not use a node apart from devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the rules that are looked at")]
pub enum NodeRefusal {
    /// The node is cordoned.
    Cordoned,
    /// The node selector or the required node affinity does not admit the node.
    NotSelected,
    /// The node has a taint that the pod does not tolerate.
    Tainted,
}

impl NodeRefusal {
    /// Returns the words of kube-scheduler.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cordoned => "node(s) were unschedulable",
            Self::NotSelected => "node(s) didn't match Pod's node affinity/selector",
            Self::Tainted => "node(s) had untolerated taint(s)",
        }
    }
}

/// Returns the reason that a pod may not use a node apart from devices; `None` if it may. A selector that can't be read admits
/// no node.
///
/// ```
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use workload_pods::{NodeRefusal, node_refusal};
/// let pod: Pod = serde_json::from_value(serde_json::json!({"spec": {"containers": [], "nodeSelector": {"gpu": "yes"}}}))?;
/// assert_eq!(node_refusal(&pod, &Node::default()), Some(NodeRefusal::NotSelected));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn node_refusal(pod: &Pod, node: &Node) -> Option<NodeRefusal> {
    let (pod, spec) = (pod.spec.as_ref()?, node.spec.as_ref());
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let is_cordoned = spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
    if is_cordoned && !tolerations.iter().any(tolerates_cordon) {
        return Some(NodeRefusal::Cordoned);
    }
    if !is_selected(pod, node) {
        return Some(NodeRefusal::NotSelected);
    }
    GatedNodeView::new(node, &[]).first_untolerated_taint(tolerations).map(|_| NodeRefusal::Tainted)
}

/// Returns true if the node selector and the required node affinity of a pod admit a node.
pub(crate) fn is_selected(pod: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let has_label = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    pod.node_selector.iter().flatten().all(has_label)
        && required.is_none_or(|required| node_selector_matches(required, node).unwrap_or_default())
}

fn tolerates_cordon(toleration: &Toleration) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let is_of_key = key == UNSCHEDULABLE && (exists || toleration.value.as_deref().unwrap_or_default().is_empty());
    (is_of_key || key.is_empty() && exists) && matches!(effect, "" | "NoSchedule")
}
