//! List of nodes in use, reserved and removable, as text.

use examples::table::{Column, Table};
use nnn::PodKey;
use nnn::view::{AutoscalerNode, AutoscalerNodePresence, ClusterView, PodClass, ReservedBy, UnremovableReason};
use serde_json::{Value, json};

use super::Caution;

/// Nodes and pods to list.
#[derive(Debug, Default)]
pub(crate) struct List<'a> {
    pub(crate) nodes: Vec<&'a AutoscalerNode>,
    pub(crate) pods: Vec<(&'a PodKey, PodClass)>,
}

impl<'a> From<&'a ClusterView> for List<'a> {
    fn from(view: &'a ClusterView) -> Self {
        Self { nodes: view.nodes().collect(), pods: view.pod_classes().collect() }
    }
}

impl List<'_> {
    /// Returns a table of the nodes, and then a line for each pod that needs one.
    pub(crate) fn table(&self, caution: Caution) -> Vec<String> {
        let mut table = Table::new([
            Column::always("NODE"),
            Column::always("IS"),
            Column::always("WHY"),
            Column::number("USED", 1),
            Column::ranked("CPU", 4),
            Column::ranked("BOUND", 2),
            Column::ranked("EXPECTED", 3),
        ]);
        for node in &self.nodes {
            let reasons = reasons(node, caution);
            let why = reasons.iter().map(ToString::to_string);
            let noticed = node.warnings.iter().map(ToString::to_string);
            let mut lines: Vec<String> = why.chain(noticed).collect();
            lines.dedup();
            let (cpu, percent) = match node.presence {
                AutoscalerNodePresence::Present => (
                    format!("{} of {}", node.committed().quantity("cpu"), node.allocatable.quantity("cpu")),
                    format!("{}%", node.utilisation_permille() / 10),
                ),
                _ => (node.committed().quantity("cpu").to_string(), "-".to_owned()),
            };
            table.add([
                node.name.clone(),
                verdict(node, caution).to_owned(),
                lines.join("\n"),
                percent,
                cpu,
                names(node, ReservedBy::Bound).join("\n"),
                names(node, ReservedBy::Nominated).join("\n"),
            ]);
        }
        let needed = self.pods_needing_nodes().map(|pod| format!("needs a node: {pod}"));
        std::iter::once(table.text().trim_end().to_owned()).chain(needed).collect()
    }

    /// Returns nodes and pods as an object.
    pub(crate) fn object(&self, caution: Caution) -> Value {
        let nodes = self.nodes.iter().map(|node| {
            let reasons = reasons(node, caution);
            json!({
                "name": node.name,
                "is": verdict(node, caution),
                "removable": reasons.is_empty(),
                "reasons": reasons,
                "utilisationPermille": node.utilisation_permille(),
                "allocatable": node.allocatable,
                "committed": node.committed(),
                "expected": node.expected(),
                "bound": names(node, ReservedBy::Bound),
                "nominated": names(node, ReservedBy::Nominated),
                "devices": node.devices,
                "findings": node.warnings,
            })
        });
        let pods = self.pods.iter().map(|(pod, class)| json!({"pod": pod.to_string(), "uid": pod.uid, "class": class}));
        json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "pods": pods.collect::<Vec<_>>(),
            "needNodes": self.pods_needing_nodes().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    fn pods_needing_nodes(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.iter().filter(|(_, class)| class.needs_node()).map(|(pod, _)| *pod)
    }
}

fn reasons(node: &AutoscalerNode, caution: Caution) -> Vec<UnremovableReason> {
    match caution {
        Caution::Strict => node.unremovable_reasons(),
        Caution::Lenient => node.unremovable_reasons_without_nominations(),
    }
}

/// Returns the verdict on a node in one or two words.
fn verdict(node: &AutoscalerNode, caution: Caution) -> &'static str {
    let is_promised = node.pods_reserved_by(ReservedBy::Nominated).next().is_some();
    match node.presence {
        AutoscalerNodePresence::Upcoming => "being created",
        AutoscalerNodePresence::Present if reasons(node, caution).is_empty() => "removable",
        AutoscalerNodePresence::Present if is_promised => "reserved",
        AutoscalerNodePresence::Present => "in use",
        _ => "not there",
    }
}

fn names(node: &AutoscalerNode, reserved_by: ReservedBy) -> Vec<String> {
    node.pods_reserved_by(reserved_by).map(|pod| pod.pod.to_string()).collect()
}
