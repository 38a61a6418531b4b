//! Removal of nodes: those that can go together, and the plan that empties them.

use std::collections::BTreeMap;
use std::sync::Once;

use dra_alloc::autoscaler::{ClusterSnapshot, RemovalError, ScaleSimulator};
use dra_alloc::consolidation::MoveRules;
use examples::movable::must_stay;
use examples::output::say;
use nnn::view::{ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions, UnremovableReason};

use super::answer::{Nodes, Placed};
use super::cluster_parts::ClusterParts;
use super::moves::Moves;
use super::refused::Refused;

/// Largest number of nodes that are candidates for removal.
const MAX_CANDIDATES: usize = 1_000;

/// Returns the names of the nodes that are candidates: the first of those that are there.
fn candidates<'c>(cluster: &ClusterParts<'c>) -> impl Iterator<Item = &'c str> + use<'c> {
    // Once for a program that keeps its answer.
    static TOO_MANY: Once = Once::new();
    if cluster.nodes.len() > MAX_CANDIDATES {
        TOO_MANY.call_once(|| say(&format_args!("autoscaler: only the first {MAX_CANDIDATES} nodes are candidates")));
    }
    let names: Vec<&str> = cluster.nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    names.into_iter().take(MAX_CANDIDATES)
}

/// Plans which nodes can be emptied.
pub(crate) fn consolidate(
    simulator: &ScaleSimulator<'_>,
    cluster: ClusterParts<'_>,
) -> Result<Moves, ClusterViewError> {
    let blocked = blocked_nodes(&cluster)?;
    let names: Vec<&str> = candidates(&cluster).filter(|name| !blocked.contains_key(*name)).collect();
    let pinned = cluster.pods.iter().filter(|pod| must_stay(pod)).filter_map(|pod| pod.metadata.uid.as_deref());
    let pinned: Vec<&str> = pinned.collect();
    let snapshot = ClusterSnapshot::new(cluster.nodes.iter().copied(), cluster.pods);
    let rules = MoveRules::default().with_budgets(cluster.budgets).with_pinned(pinned);
    let answer = simulator.consolidate(cluster.inventory, cluster.claims, &snapshot, names, &rules);
    let kept = answer.kept.iter().map(|(node, reason)| Refused { name: node.clone(), reason: reason.to_string() });
    let blocked = blocked.iter().map(|(node, reason)| Refused { name: node.clone(), reason: reason.clone() });
    Ok(Moves::new(&answer.plan, kept.chain(blocked).collect()))
}

/// Returns the nodes that can go together.
pub(crate) fn scale_down(simulator: &ScaleSimulator<'_>, cluster: ClusterParts<'_>) -> Result<Nodes, ClusterViewError> {
    let blocked = blocked_nodes(&cluster)?;
    let names: Vec<&str> = candidates(&cluster).filter(|name| !blocked.contains_key(*name)).collect();
    let snapshot = ClusterSnapshot::new(cluster.nodes.iter().copied(), cluster.pods);
    let answer = simulator.scale_down(cluster.inventory, cluster.claims, &snapshot, names);
    let kept = |(node, obstacle): &(String, RemovalError)| Refused { name: node.clone(), reason: obstacle.to_string() };
    let kept = answer.kept.iter().map(kept);
    let blocked = blocked.iter().map(|(node, reason)| Refused { name: node.clone(), reason: reason.clone() });
    Ok(Nodes {
        removable: answer.removable,
        moved: answer.removal.moved.iter().map(Placed::new).collect(),
        kept: kept.chain(blocked).collect(),
    })
}

/// Returns the nodes with pods that can't be moved, as the list has them: pods without a controller, say.
fn blocked_nodes(cluster: &ClusterParts<'_>) -> Result<BTreeMap<String, String>, ClusterViewError> {
    let objects = ClusterObjects::new(cluster.nodes.iter().copied(), cluster.pods.iter().copied());
    let view = ClusterView::new(objects, &ClusterViewOptions::default())?;
    let blocked = view.nodes().filter_map(|node| {
        let mut reasons = node.unremovable_reasons_without_nominations().into_iter();
        let reason = reasons.find(|reason| matches!(reason, UnremovableReason::NotMovable { .. }))?;
        Some((node.name.clone(), reason.to_string()))
    });
    Ok(blocked.collect())
}
