//! Nodes that can be emptied, with the moves in their order.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};

use super::move_plan::{MovePlan, PodMove};
use super::move_rules::MoveRules;
use super::sequence::{Moved, MovedUnit, Sequence};
use super::unit::{Unit, units};
use crate::autoscaler::{
    ClusterSnapshot, Emptying, Mover, NodeOrder, Rehearsal, RemovalError, ScaleSimulator, distinct, name_of,
};
use crate::cluster::inventory::InventoryLayer;
use crate::pods::{ClaimTracker, KnownRefusals, PodIdentity};

/// Nodes that can be emptied together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Consolidation {
    /// Plan that empties them.
    pub plan: MovePlan,
    /// Names of the candidates that have to stay, each with the reason.
    pub kept: Vec<(String, KeptNodeError)>,
}

/// Reason why a node is not emptied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeptNodeError {
    /// A pod on it must not move.
    #[error("pod {}/{} must not move", pod.namespace, pod.name)]
    Pinned {
        /// The pod.
        pod: PodIdentity,
    },
    /// A disruption budget does not allow the eviction of a pod on it.
    #[error("disruption budget {namespace}/{name} allows no eviction")]
    Budget {
        /// Namespace of the budget.
        namespace: String,
        /// Name of the budget.
        name: String,
    },
    /// Something else is in the way.
    #[error(transparent)]
    Obstacle(Box<RemovalError>),
    /// The moves that empty it have no order in which devices become free.
    #[error("the moves of its pods have no order")]
    NoOrder,
}

impl ScaleSimulator<'_> {
    /// Empties as many of the candidates as it can: those whose pods cost the least to move first, by default those with the fewest
    /// devices in use; their largest pods first, each pod to the node with the fewest free devices that serves it.
    ///
    /// The order is a rule of thumb, as packing is hard. For units of 1, 2, 4 and 8 devices on nodes of eight it needs at most a tenth
    /// more nodes than the devices in use fill (`cargo run --release -p benches --example consolidate`).
    ///
    /// # Complexity
    /// That of [`ScaleSimulator::scale_down`], and a filter call more for each pod that moves.
    pub fn consolidate<'i, 'n>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        candidates: impl IntoIterator<Item = &'n str>,
        rules: &MoveRules<'_>,
    ) -> Consolidation {
        let (mut layer, mut plan, mut kept) = (inventory.into(), MovePlan::new(), Vec::new());
        let mut emptying = Emptying::new(self, layer.layer(), tracker, snapshot, NodeOrder::Fullest);
        let mut priced: Vec<(u64, &str, Option<KeptNodeError>)> = Vec::new();
        for node in distinct(candidates) {
            let units = units_on(node, tracker, snapshot, rules);
            let cost = units.iter().map(|unit| unit.cost).fold(0, u64::saturating_add);
            priced.push((cost, node, self.obstacle(&units, rules)));
        }
        priced.sort_by_key(|(cost, node, _)| (*cost, *node));
        for (_, node, obstacle) in priced {
            let emptied =
                obstacle.map_or(Ok(()), Err).and_then(|()| emptying.empty(node).map_err(KeptNodeError::Obstacle));
            match emptied {
                Ok(()) => plan.removed.push(node.to_owned()),
                Err(reason) => kept.push((node.to_owned(), reason)),
            }
        }
        let moved: Vec<(Mover<'_>, &str)> = emptying.moved().collect();
        drop(emptying);
        let nodes: Vec<&Node> = snapshot.nodes().collect();
        let index_of: BTreeMap<&str, usize> =
            nodes.iter().zip(0..).map(|(node, index)| (name_of(node), index)).collect();
        let places: BTreeMap<*const Pod, usize> = moved
            .iter()
            .filter_map(|(mover, node)| Some((std::ptr::from_ref(mover.pod), *index_of.get(node)?)))
            .collect();
        let units = units(moved.into_iter().map(|(mover, _)| mover), tracker, rules);
        let (sequence, stuck) = self.search(&layer, &nodes, |search| {
            let (rehearsal, known) = (Rehearsal::new(tracker.clone()), KnownRefusals::new(nodes.len()));
            let mut sequence = Sequence { simulator: self, search, rehearsal, known, moved: Moved::default() };
            sequence.run(units, &|pod| places.get(&std::ptr::from_ref(pod)).copied())
        });
        for from in stuck.iter().flat_map(|unit| &unit.pods).map(|mover| mover.from) {
            if let Some(position) = plan.removed.iter().position(|node| node == from) {
                kept.push((plan.removed.remove(position), KeptNodeError::NoOrder));
            }
        }
        (plan.waves, plan.cost) = in_waves(sequence, rules);
        Consolidation { plan: plan.knowing(snapshot), kept }
    }

    /// Returns the reason why units of a node must not move.
    pub(super) fn obstacle(&self, units: &[Unit<'_>], rules: &MoveRules<'_>) -> Option<KeptNodeError> {
        let fixed = units.iter().find(|unit| !unit.is_movable)?;
        let pinned = fixed.pods().find(|pod| rules.is_pinned(pod));
        pinned.map(|pod| KeptNodeError::Pinned { pod: PodIdentity::new(pod, self.options()) }).or_else(|| {
            let [namespace, name] = rules.exceeded(fixed.pods()).into_iter().next()?;
            Some(KeptNodeError::Budget { namespace, name })
        })
    }
}

/// Returns the units on a node.
pub(super) fn units_on<'u>(
    node: &'u str,
    tracker: &ClaimTracker,
    snapshot: &ClusterSnapshot<'u>,
    rules: &MoveRules<'_>,
) -> Vec<Unit<'u>> {
    let pods = snapshot.pods_on(node).unwrap_or_default().iter();
    units(pods.map(|pod| Mover { from: node, pod }), tracker, rules)
}

/// Puts units that move one after the other into waves that the budgets allow. Returns the sum of their costs, too.
pub(super) fn in_waves(moved: Vec<MovedUnit<'_>>, rules: &MoveRules<'_>) -> (Vec<Vec<PodMove>>, u64) {
    let cost = moved.iter().map(|moved| moved.unit.cost).fold(0, u64::saturating_add);
    let waves = rules.waves(moved, |moved| moved.unit.pods.iter().map(|mover| mover.pod).collect()).unwrap_or_default();
    let of_wave = |wave: Vec<MovedUnit<'_>>| wave.into_iter().flat_map(|moved| moved.moves).collect();
    (waves.into_iter().map(of_wave).collect(), cost)
}
