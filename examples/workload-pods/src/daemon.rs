//! Pods of daemon sets: which nodes they are for, and what the controller adds to them.

use dra_alloc::fit::{Misfit, PodRules};
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration,
};

/// Taints that the pods of daemon sets tolerate, with their effects.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Taint that the pods of daemon sets in the host's network tolerate as well.
const NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Adds the tolerations of the controller to the pod of a daemon set.
pub(crate) fn tolerate(pod: &mut Pod) {
    let Some(spec) = &mut pod.spec else { return };
    let network = (spec.host_network == Some(true)).then_some(NETWORK);
    let added = TOLERATED.into_iter().chain(network).map(|(key, effect)| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    });
    spec.tolerations.get_or_insert_default().extend(added);
}

/// Returns true if a daemon set has a pod on a node, whose pods look like this one. Room does not count: the pod is made,
/// and waits.
pub(crate) fn is_for(pod: &Pod, node: &Node) -> bool {
    matches!(PodRules::new(pod).misfit(node), None | Some(Misfit::Unschedulable))
}

/// Binds the pod of a daemon set to a node, as the controller does: in place of its own node affinity, the name alone.
pub(crate) fn bind(pod: &mut Pod, node: &str) {
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![requirement]), ..NodeSelectorTerm::default() };
    let Some(spec) = &mut pod.spec else { return };
    let affinity = spec.affinity.get_or_insert_with(Affinity::default);
    let of_node = affinity.node_affinity.get_or_insert_with(NodeAffinity::default);
    of_node.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
}

/// Returns the node that a pod is on, or that a pod of a daemon set is for.
#[must_use]
pub fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|node| !node.is_empty()) {
        return Some(node);
    }
    let required =
        spec.affinity.as_ref()?.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref();
    let fields = required?.node_selector_terms.first()?.match_fields.as_ref()?;
    let field = fields.iter().find(|field| field.key == "metadata.name")?;
    field.values.as_ref()?.first().map(String::as_str)
}
