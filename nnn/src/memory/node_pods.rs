//! Pods by node: those that are there, and those that are promised one.

use std::collections::{BTreeMap, BTreeSet};

use super::node_usage::NodeUsage;
use super::pod_usage::PodUsage;
use crate::pod::PodKey;

/// Amounts that a pod takes of a node, or is promised of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) node: String,
    pub(super) is_promised: bool,
    pub(super) usage: PodUsage,
}

/// Pods of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NodePods {
    usage: NodeUsage,
    placed: BTreeSet<PodKey>,
    promised: BTreeSet<PodKey>,
}

/// Pods of all nodes that have any.
#[derive(Clone, Debug, Default)]
pub(super) struct PodsByNode {
    nodes: BTreeMap<String, NodePods>,
    /// Pods that are promised a node, with its name.
    promised: BTreeMap<PodKey, String>,
    /// Nodes whose pods have changed since somebody asked.
    changed: BTreeSet<String>,
    /// Usage of a node without pods.
    none: NodeUsage,
}

impl PodsByNode {
    pub(super) fn add(&mut self, pod: &PodKey, used: &Use) {
        let node = self.nodes.entry(used.node.clone()).or_default();
        if used.is_promised {
            node.promised.insert(pod.clone());
            self.promised.insert(pod.clone(), used.node.clone());
        } else {
            node.placed.insert(pod.clone());
            node.usage.add(&used.usage);
        }
        self.changed.insert(used.node.clone());
    }

    pub(super) fn remove(&mut self, pod: &PodKey, used: &Use) {
        let Some(node) = self.nodes.get_mut(&used.node) else { return };
        if used.is_promised {
            node.promised.remove(pod);
            self.promised.remove(pod);
        } else {
            node.placed.remove(pod);
            node.usage.remove(&used.usage);
        }
        if node.placed.is_empty() && node.promised.is_empty() {
            self.nodes.remove(&used.node);
        }
        self.changed.insert(used.node.clone());
    }

    pub(super) fn usage(&self, node: &str) -> &NodeUsage {
        self.nodes.get(node).map_or(&self.none, |node| &node.usage)
    }

    pub(super) fn placed(&self, node: &str) -> impl Iterator<Item = &PodKey> {
        self.nodes.get(node).into_iter().flat_map(|node| &node.placed)
    }

    pub(super) fn promised(&self, node: &str) -> impl Iterator<Item = &PodKey> {
        self.nodes.get(node).into_iter().flat_map(|node| &node.promised)
    }

    pub(super) fn all_promised(&self) -> impl Iterator<Item = (&PodKey, &str)> {
        self.promised.iter().map(|(pod, node)| (pod, node.as_str()))
    }

    pub(super) fn take_changed(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.changed)
    }
}
