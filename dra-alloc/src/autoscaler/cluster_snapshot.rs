//! Nodes of a cluster, with the pods on them.

use std::collections::BTreeMap;

use dra_device::internal::controller;
use k8s_openapi::api::core::v1::{Node, Pod};
use nnn::memory::PodMemory;

/// Nodes of a cluster with the pods on them, indexed once for any number of questions.
#[derive(Clone, Debug, Default)]
pub struct ClusterSnapshot<'c> {
    /// Nodes in the order of the input.
    nodes: Vec<&'c Node>,
    /// Nodes by name, with the pods on them.
    by_name: BTreeMap<&'c str, Vec<&'c Pod>>,
    /// Pods without a node, or on a node that is not there.
    waiting: Vec<&'c Pod>,
}

impl<'c> ClusterSnapshot<'c> {
    /// Indexes nodes, in the order in which they are tried, and all pods, also those that wait for a node. Pods that are done
    /// count for their claims only.
    pub fn new(nodes: impl IntoIterator<Item = &'c Node>, pods: impl IntoIterator<Item = &'c Pod>) -> Self {
        let nodes: Vec<&Node> = nodes.into_iter().collect();
        let by_name = nodes.iter().map(|node| (name_of(node), Vec::new())).collect();
        let mut snapshot = Self { nodes, by_name, waiting: Vec::new() };
        for pod in pods {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
            snapshot.by_name.get_mut(node).unwrap_or(&mut snapshot.waiting).push(pod);
        }
        snapshot
    }

    /// Indexes nodes and the pods that a memory knows: each on the node where it is, or where the memory has assumed it.
    ///
    /// ```
    /// use dra_alloc::autoscaler::ClusterSnapshot;
    /// use k8s_openapi::api::core::v1::Node;
    /// use nnn::memory::PodMemory;
    /// let (nodes, memory) = ([Node::default()], PodMemory::default());
    /// let snapshot = ClusterSnapshot::of_memory(&nodes, &memory);
    /// # let _ = snapshot;
    /// ```
    pub fn of_memory(nodes: impl IntoIterator<Item = &'c Node>, memory: &'c PodMemory) -> Self {
        let mut snapshot = Self::new(nodes, []);
        for (pod, stage) in memory.pods() {
            let node = stage.placed_on().or_else(|| pod.spec.as_ref()?.node_name.as_deref()).unwrap_or_default();
            snapshot.by_name.get_mut(node).unwrap_or(&mut snapshot.waiting).push(pod);
        }
        snapshot
    }

    /// Returns the pods on a node; `None` if there is no such node.
    pub(crate) fn pods_on(&self, node: &str) -> Option<&[&'c Pod]> {
        self.by_name.get(node).map(Vec::as_slice)
    }

    /// Returns all pods: those on nodes by the names of the nodes, then those that wait.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &'c Pod> {
        self.by_name.values().flatten().chain(&self.waiting).copied()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &'c Node> {
        self.nodes.iter().copied()
    }

    pub(crate) fn waiting(&self) -> &[&'c Pod] {
        &self.waiting
    }
}

pub(crate) fn name_of(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Returns true if a node is not cordoned.
pub(crate) fn takes_pods(node: &Node) -> bool {
    node.spec.as_ref().is_none_or(|spec| spec.unschedulable != Some(true))
}

/// Returns true if a pod on a node that goes needs no other node: it is done or on its way out, or belongs to the node.
pub(crate) fn ends_with_its_node(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_mirror =
        pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"));
    matches!(phase, Some("Succeeded" | "Failed"))
        || pod.metadata.deletion_timestamp.is_some()
        || is_mirror
        || controller(&pod.metadata).is_some_and(|owner| owner.kind == "DaemonSet")
}
