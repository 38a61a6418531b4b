//! Check of a plan against the cluster as it is now: which parts of it do not hold any longer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_device::DeviceId;
use dra_device::internal::{PodFields, controller, of_allocation};
use k8s_openapi::api::core::v1::{Node, Pod};

use super::move_plan::{MovePlan, NewDaemon, PodMove};
use super::move_rules::MoveRules;
use super::replaced_pods::ReplacedPods;
use super::sequence::{Moved, Sequence};
use super::unit::{node_of, units};
use crate::autoscaler::{
    ClusterSnapshot, Mover, PlacementError, Rehearsal, ScaleSimulator, ends_with_its_node, name_of, takes_pods,
};
use crate::cluster::inventory::{Inventory, InventoryEvent, InventoryLayer};
use crate::cluster::state::ClaimId;
use crate::pods::{ClaimTracker, KnownRefusals, PodIdentity};

/// Part of a plan that does not hold any longer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFaultError {
    /// A node to which pods move is not there.
    #[error("node {node} is not there")]
    NodeGone {
        /// Name of the node.
        node: String,
    },
    /// A node to which pods move is cordoned.
    #[error("node {node} is cordoned")]
    NodeCordoned {
        /// Name of the node.
        node: String,
    },
    /// A pod of the plan is not there, or on its way out, and its controller has made no other one.
    #[error("pod {}/{} is not there", pod.namespace, pod.name)]
    PodGone {
        /// The pod.
        pod: PodIdentity,
    },
    /// A pod is neither where it was nor where it moves.
    #[error("pod {}/{} is elsewhere: {node}", pod.namespace, pod.name)]
    PodElsewhere {
        /// The pod.
        pod: PodIdentity,
        /// Name of its node; empty if it has none.
        node: String,
    },
    /// A pod has come to a node that is to be empty.
    #[error("pod {}/{} has come to node {node}", pod.namespace, pod.name)]
    PodAdded {
        /// The pod.
        pod: PodIdentity,
        /// Name of the node.
        node: String,
    },
    /// A pod must not move, by the rules as they are now.
    #[error("pod {}/{} must not move", pod.namespace, pod.name)]
    PodPinned {
        /// The pod.
        pod: PodIdentity,
    },
    /// A disruption budget does not allow a wave.
    #[error("disruption budget {namespace}/{name} does not allow wave {wave}")]
    Budget {
        /// Namespace of the budget.
        namespace: String,
        /// Name of the budget.
        name: String,
        /// Number of the wave, from 1 on.
        wave: u32,
    },
    /// A pod finds no devices on its new node.
    #[error("pod {}/{} has no place on node {node}", pod.namespace, pod.name)]
    NoPlace {
        /// The pod.
        pod: PodIdentity,
        /// Name of the node.
        node: String,
        /// Devices of the plan that others hold, with the claim.
        taken: Vec<(DeviceId, ClaimId)>,
        /// Devices of the plan that are not there.
        lost: Vec<DeviceId>,
        /// Reason of the refusal; `None` if the claims of the pod can't be released.
        reason: Option<Box<PlacementError>>,
    },
}

impl MovePlan {
    /// Checks a plan against a cluster that may have changed. Returns the parts that do not hold any longer, in the order of the
    /// plan; none if it can be carried out. What is done already counts as done: a pod that is on its new node, or another one there
    /// that its controller has made since, and a removed node that is gone. A pod that its controller has made in place of an
    /// evicted one, and that waits, is to be placed as the plan says. A new node may have another name than the plan gave it:
    /// see [`MovePlan::name_node`].
    ///
    /// Pods go to the nodes of the plan. If a device of the plan is gone or taken and another one on the node serves, the plan
    /// holds. The pods of daemon sets that a new node does not run yet come first: the moves do not count on their devices.
    ///
    /// # Complexity
    /// A filter call for each move, and an explanation for each one that is not possible.
    pub fn check<'i>(
        &self,
        simulator: &ScaleSimulator<'_>,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        rules: &MoveRules<'_>,
    ) -> Vec<PlanFaultError> {
        let mut nodes: Vec<&Node> = snapshot.nodes().collect();
        let mut layer: InventoryLayer<'_> = inventory.into();
        for new in &self.new_nodes {
            if !nodes.iter().any(|node| name_of(node) == new.name()) {
                nodes.push(&new.node);
                for slice in &new.slices {
                    // A slice without a name can't come from a plan.
                    let _ = layer.apply(InventoryEvent::Slice(Arc::clone(slice)));
                }
            }
        }
        let mut check = Check {
            index_of: nodes.iter().zip(0..).map(|(node, index)| (name_of(node), index)).collect(),
            pods: snapshot.pods().map(|pod| (pod.uid(), pod)).collect(),
            replaced: ReplacedPods::find(self, snapshot),
            nodes: &nodes,
            inventory: &layer,
            rules,
            faults: Vec::new(),
        };
        check.nodes_are_there(self);
        let (awaited, mut tracker) = (check.awaited(self, snapshot), tracker.clone());
        for (daemon, _) in &awaited {
            NewDaemon::make_claims(&daemon.claims, &mut tracker);
        }
        simulator.search(&layer, &nodes, |search| {
            let (rehearsal, known) = (Rehearsal::new(tracker), KnownRefusals::new(nodes.len()));
            let mut sequence = Sequence { simulator, search, rehearsal, known, moved: Moved::default() };
            for (daemon, index) in awaited {
                if let Err(reason) = sequence.come(&daemon.pod, None, Some(index)) {
                    check.add_no_place(&sequence, &daemon.place, Some(reason));
                }
            }
            for (wave, number) in self.waves.iter().zip(1..) {
                check.budgets_allow(wave, number);
                check.wave(&mut sequence, wave);
            }
            check.wave(&mut sequence, &self.placed);
        });
        check.no_pod_was_added(self, snapshot, simulator);
        check.faults
    }
}

/// Check of one plan.
struct Check<'c> {
    index_of: BTreeMap<&'c str, usize>,
    pods: BTreeMap<&'c str, &'c Pod>,
    replaced: ReplacedPods<'c>,
    nodes: &'c [&'c Node],
    inventory: &'c Inventory,
    rules: &'c MoveRules<'c>,
    faults: Vec<PlanFaultError>,
}

impl<'c> Check<'c> {
    fn nodes_are_there(&mut self, plan: &MovePlan) {
        let targets: BTreeSet<&str> = plan.moves().filter_map(|moved| moved.to.as_deref()).collect();
        for name in targets {
            let node = name.to_owned();
            match self.index_of.get(name).and_then(|index| self.nodes.get(*index)) {
                None => self.faults.push(PlanFaultError::NodeGone { node }),
                Some(found) if !takes_pods(found) => self.faults.push(PlanFaultError::NodeCordoned { node }),
                Some(_) => {}
            }
        }
    }

    /// Returns the pods of daemon sets that new nodes do not run yet, with the positions of these nodes.
    fn awaited<'p>(&self, plan: &'p MovePlan, snapshot: &ClusterSnapshot<'_>) -> Vec<(&'p NewDaemon, usize)> {
        let of_node = plan.new_nodes.iter().flat_map(|new| {
            let (index, running) = (self.index_of.get(new.name()), snapshot.pods_on(new.name()).unwrap_or_default());
            let is_awaited = move |daemon: &&NewDaemon| !running.iter().any(|pod| is_of_same_set(&daemon.pod, pod));
            new.daemons.iter().filter(is_awaited).filter_map(move |daemon| Some((daemon, *index?)))
        });
        of_node.collect()
    }

    fn budgets_allow(&mut self, wave: &[PodMove], number: u32) {
        let evicted = wave.iter().filter(|moved| self.is_to_move(moved));
        let pods: Vec<&Pod> = evicted.filter_map(|moved| self.pods.get(moved.pod.uid.as_str()).copied()).collect();
        for [namespace, name] in self.rules.exceeded(pods) {
            self.faults.push(PlanFaultError::Budget { namespace, name, wave: number });
        }
    }

    /// Returns true for a move that is not made yet.
    fn is_to_move(&self, moved: &PodMove) -> bool {
        let pod = self.pods.get(moved.pod.uid.as_str());
        moved.from.is_some() && pod.is_some_and(|pod| Some(node_of(pod)) == moved.from.as_deref())
    }

    /// Makes the moves of a wave. Pods that share a claim leave together.
    fn wave(&mut self, sequence: &mut Sequence<'_, 'c>, wave: &'c [PodMove]) {
        let mut leaving: BTreeMap<&str, (&PodMove, Option<usize>)> = BTreeMap::new();
        let mut movers = Vec::new();
        for moved in wave {
            let Some((pod, place)) = self.pending(moved) else { continue };
            if node_of(pod).is_empty() {
                if let Err(reason) = sequence.come(pod, None, place) {
                    self.add_no_place(sequence, moved, Some(reason));
                }
                continue;
            }
            leaving.insert(pod.uid(), (moved, place));
            movers.push(Mover { from: node_of(pod), pod });
        }
        for unit in units(movers, &sequence.rehearsal.tracker.clone(), self.rules) {
            let place_of = |pod: &Pod| leaving.get(pod.uid()).and_then(|(_, place)| *place);
            if let Err(reason) = sequence.go(&unit.pods, &place_of)
                && let Some((moved, _)) = unit.pods.first().and_then(|mover| leaving.get(mover.pod.uid()))
            {
                self.add_no_place(sequence, moved, reason);
            }
        }
    }

    /// Returns the pod of a move that is to be made, and its node; `None` if the move is made, or can't be.
    fn pending(&mut self, moved: &PodMove) -> Option<(&'c Pod, Option<usize>)> {
        let identity = moved.pod.clone();
        let found = self.pods.get(moved.pod.uid.as_str()).copied().filter(|pod| !ends_with_its_node(pod));
        let Some(pod) = found.or_else(|| self.replaced.of(&moved.pod.uid)) else {
            self.faults.push(PlanFaultError::PodGone { pod: identity });
            return None;
        };
        let (from, wanted) = (moved.from.as_deref().unwrap_or_default(), moved.to.as_deref());
        let (node, is_new) = (node_of(pod), found.is_none());
        if node != from && (wanted == Some(node) || (is_new && wanted.is_none())) {
            return None;
        }
        let expected = if is_new { "" } else { from };
        if node != expected {
            self.faults.push(PlanFaultError::PodElsewhere { pod: identity, node: node.to_owned() });
            return None;
        }
        if self.rules.is_pinned(pod) && !node.is_empty() {
            self.faults.push(PlanFaultError::PodPinned { pod: identity });
            return None;
        }
        let Some(to) = wanted else { return Some((pod, None)) };
        // A node that is not there, or cordoned, is a fault already.
        let index = *self.index_of.get(to)?;
        self.nodes.get(index).filter(|node| takes_pods(node))?;
        Some((pod, Some(index)))
    }

    fn add_no_place(&mut self, sequence: &Sequence<'_, 'c>, moved: &PodMove, reason: Option<PlacementError>) {
        let (taken, lost) = self.conflicts(sequence, moved);
        let (pod, node) = (moved.pod.clone(), moved.to.clone().unwrap_or_default());
        self.faults.push(PlanFaultError::NoPlace { pod, node, taken, lost, reason: reason.map(Box::new) });
    }

    /// Returns the devices of a move that others hold, and those that are not there.
    fn conflicts(&self, sequence: &Sequence<'_, 'c>, moved: &PodMove) -> (Vec<(DeviceId, ClaimId)>, Vec<DeviceId>) {
        let state = sequence.rehearsal.tracker.state();
        let (mut taken, mut lost) = (Vec::new(), Vec::new());
        for (key, result) in &moved.results {
            for result in of_allocation(result) {
                let device = DeviceId::new(&result.driver, &result.pool, &result.device);
                let is_other = |claim: &&ClaimId| claim.namespace != key.namespace || claim.name != key.name;
                let holder = state.device(&device).and_then(|used| used.holders().find(is_other).cloned());
                if self.inventory.device(&device).is_none() {
                    lost.push(device);
                } else if let Some(holder) = holder {
                    taken.push((device, holder));
                }
            }
        }
        (taken, lost)
    }

    fn no_pod_was_added(&mut self, plan: &MovePlan, snapshot: &ClusterSnapshot<'_>, simulator: &ScaleSimulator<'_>) {
        let moved = plan.moves().map(|moved| moved.pod.uid.as_str());
        let planned: BTreeSet<&str> = moved.chain(self.replaced.uids()).collect();
        for node in &plan.removed {
            let pods = snapshot.pods_on(node).unwrap_or_default().iter();
            for pod in pods.filter(|pod| !planned.contains(pod.uid()) && !ends_with_its_node(pod)) {
                let pod = PodIdentity::new(pod, simulator.options());
                self.faults.push(PlanFaultError::PodAdded { pod, node: node.clone() });
            }
        }
    }
}

/// Returns true for two pods of one daemon set, and for a pod and itself.
fn is_of_same_set(expected: &Pod, pod: &Pod) -> bool {
    let set = |pod: &Pod| controller(&pod.metadata).map(|owner| owner.uid.clone());
    set(expected).map_or_else(|| expected.uid() == pod.uid(), |uid| set(pod) == Some(uid))
}
