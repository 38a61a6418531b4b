//! Nodes that others stand in for: n by m.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};

use super::consolidate::{KeptNodeError, in_waves, units_on};
use super::move_plan::{MovePlan, MoveProof, NewDaemon, NewNode};
use super::move_rules::MoveRules;
use super::new_nodes::{Made, NewNodes, NodeOffer, OfferError, devices_wanted};
use super::sequence::{Moved, Sequence};
use super::unit::units;
use crate::autoscaler::{
    ClusterSnapshot, Mover, PlacementError, Rehearsal, RemovalError, ScaleSimulator, check_stranded, delete_slices,
    distinct, ends_with_its_node, free_devices, name_of, takes_pods,
};
use crate::cluster::inventory::{InventoryEvent, InventoryLayer};
use crate::pods::{ClaimTracker, KnownRefusals, Member, PodIdentity};

/// Reason why nodes can't be replaced.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// A pod on one of the nodes must not move.
    #[error("node {node}: {reason}")]
    Kept {
        /// Name of the node.
        node: String,
        /// The reason.
        #[source]
        reason: KeptNodeError,
    },
    /// A pod finds a place neither on the nodes that stay nor on new ones.
    #[error("pod {}/{} finds no place", pod.namespace, pod.name)]
    NoPlace {
        /// The pod.
        pod: PodIdentity,
        /// Reason of the nodes that stay; `None` where the pod has a place, and the moves before it have none.
        reason: Option<Box<PlacementError>>,
    },
    /// The nodes have something that stays.
    #[error(transparent)]
    Removal(#[from] Box<RemovalError>),
    /// An offer can't be used.
    #[error(transparent)]
    Offer(#[from] OfferError),
}

impl ScaleSimulator<'_> {
    /// Replaces nodes by other ones: plans places for all their pods on the nodes that stay, and on as few new nodes as are cheap
    /// together. New nodes come before anything moves, and the pods of daemon sets on them get their devices first.
    ///
    /// Pods go to the node with the fewest free devices that serves them, the largest pods first; those that find none get new nodes as
    /// [`ScaleSimulator::nodes_needed`] chooses them. If no new node is needed the price is [`MoveProof::Least`].
    ///
    /// # Errors
    /// A pod must not move, or finds no place; an offer can't be used.
    ///
    /// # Complexity
    /// Two filter calls for each pod that moves, one for each kind of pods and each node, and those of the new nodes.
    pub fn replace_nodes<'i, 'n>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        remove: impl IntoIterator<Item = &'n str>,
        offers: &[NodeOffer<'_>],
        rules: &MoveRules<'_>,
    ) -> Result<MovePlan, ReplaceError> {
        let inventory = &mut inventory.into();
        let removed: BTreeSet<&str> = distinct(remove).into_iter().collect();
        for node in &removed {
            if let Some(reason) = self.obstacle(&units_on(node, tracker, snapshot, rules), rules) {
                return Err(ReplaceError::Kept { node: (*node).to_owned(), reason });
            }
        }
        let made = self.new_places(inventory, tracker, snapshot, &removed, offers)?;
        self.in_steps(inventory, tracker, snapshot, &removed, made, rules)
    }

    /// Finds places for the pods of nodes that go. Returns the new nodes, and the name of the node of each pod by its object.
    fn new_places(
        &self,
        inventory: &mut InventoryLayer<'_>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        removed: &BTreeSet<&str>,
        offers: &[NodeOffer<'_>],
    ) -> Result<(Vec<Made>, BTreeMap<*const Pod, String>), ReplaceError> {
        let mut going: Vec<&Pod> = Vec::new();
        for node in removed {
            let pods = snapshot.pods_on(node);
            let pods = pods.ok_or_else(|| Box::new(RemovalError::NodeNotFound { node: (*node).to_owned() }))?;
            going.extend(pods);
        }
        let mut rehearsal = Rehearsal::new(tracker.clone());
        rehearsal.leave(&going)?;
        let (left, remaining): (Vec<&Node>, Vec<&Node>) =
            snapshot.nodes().partition(|node| removed.contains(name_of(node)));
        check_stranded(&rehearsal.tracker, snapshot.waiting(), &remaining.iter().copied(), &left)?;
        let mut layer = inventory.layer();
        delete_slices(&mut layer, removed, rehearsal.tracker.state())?;
        going.retain(|pod| !ends_with_its_node(pod));
        going.sort_by_cached_key(|pod| std::cmp::Reverse(devices_wanted(&rehearsal.tracker, pod)));
        let mut open: Vec<(usize, usize)> = remaining
            .iter()
            .enumerate()
            .filter(|(_, node)| takes_pods(node))
            .map(|(index, node)| (free_devices(&layer, rehearsal.tracker.state(), name_of(node)), index))
            .collect();
        let (mut places, mut homeless) = (BTreeMap::new(), Vec::new());
        let mut here = Vec::new();
        self.search(&layer, &remaining, |search| {
            let mut known = KnownRefusals::new(remaining.len());
            for pod in &going {
                open.sort_unstable();
                let among: Vec<usize> = open.iter().map(|(_, index)| *index).collect();
                let group = self.group_of(pod);
                let member = Member { pod, group, placed: &here, gone: &[], among: Some(&among) };
                match rehearsal.come(search, &member, &mut known) {
                    Ok(arrival) => {
                        let node = arrival.placement.node.clone();
                        let taken = devices_of_results(&arrival.results);
                        let free = open
                            .iter_mut()
                            .find(|(_, index)| remaining.get(*index).is_some_and(|one| name_of(one) == node));
                        if let Some((free, _)) = free {
                            *free = free.saturating_sub(taken);
                        }
                        places.insert(std::ptr::from_ref(*pod), node);
                        if self.is_checked() {
                            here.push(arrival.placement);
                        }
                    }
                    Err(reason) => homeless.push((*pod, reason)),
                }
            }
        });
        let mut new = NewNodes::new(self, layer, rehearsal, offers);
        let pods: Vec<&Pod> = homeless.iter().map(|(pod, _)| *pod).collect();
        let left = new.add(pods, &(0..offers.len()).collect())?;
        if let Some(pod) = left.first() {
            let reason = homeless.into_iter().find(|(other, _)| std::ptr::eq(*other, *pod));
            let pod = PodIdentity::new(pod, self.options());
            return Err(ReplaceError::NoPlace { pod, reason: reason.map(|(_, reason)| Box::new(reason)) });
        }
        for (made, moved) in new.nodes.iter().flat_map(|made| made.placed.iter().map(move |moved| (made, moved))) {
            let pod = going.iter().find(|pod| pod.metadata.uid.as_deref().unwrap_or_default() == moved.pod.uid);
            places.extend(pod.map(|pod| (std::ptr::from_ref(*pod), made.new.name().to_owned())));
        }
        Ok((new.nodes, places))
    }

    /// Puts the moves in order: on the cluster with the new nodes beside the old ones.
    fn in_steps(
        &self,
        inventory: &mut InventoryLayer<'_>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        removed: &BTreeSet<&str>,
        (made, places): (Vec<Made>, BTreeMap<*const Pod, String>),
        rules: &MoveRules<'_>,
    ) -> Result<MovePlan, ReplaceError> {
        let mut nodes: Vec<&Node> = snapshot.nodes().collect();
        nodes.extend(made.iter().map(|made| &made.new.node));
        let mut layer = inventory.layer();
        for slice in made.iter().flat_map(|made| &made.new.slices) {
            layer.apply(InventoryEvent::Slice(slice.clone())).map_err(|error| OfferError::NotNew(error.into()))?;
        }
        let index_of: BTreeMap<&str, usize> =
            nodes.iter().zip(0..).map(|(node, index)| (name_of(node), index)).collect();
        let movers = removed.iter().flat_map(|node| {
            let pods = snapshot.pods_on(node).unwrap_or_default().iter();
            pods.map(|pod| Mover { from: node, pod })
        });
        let units = units(movers, tracker, rules);
        let place_of = |pod: &Pod| index_of.get(places.get(&std::ptr::from_ref(pod))?.as_str()).copied();
        let mut tracker = tracker.clone();
        for daemon in made.iter().flat_map(|made| &made.new.daemons) {
            NewDaemon::make_claims(&daemon.claims, &mut tracker);
        }
        let (moved, stuck, daemons) = self.search(&layer, &nodes, |search| {
            let (rehearsal, known) = (Rehearsal::new(tracker.clone()), KnownRefusals::new(nodes.len()));
            let mut sequence = Sequence { simulator: self, search, rehearsal, known, moved: Moved::default() };
            // The old nodes are still there: a daemon that needs their devices comes too late to be first.
            let daemons: Vec<Vec<NewDaemon>> = made
                .iter()
                .map(|made| {
                    let index = index_of.get(made.new.name()).copied();
                    let come = |daemon: &NewDaemon| {
                        let place = sequence.come(&daemon.pod, None, index).ok()?;
                        Some(NewDaemon { place, ..daemon.clone() })
                    };
                    made.new.daemons.iter().filter_map(come).collect()
                })
                .collect();
            let (moved, stuck) = sequence.run(units, &place_of);
            (moved, stuck, daemons)
        });
        if let Some(mover) = stuck.iter().flat_map(|unit| &unit.pods).next() {
            let pod = PodIdentity::new(mover.pod, self.options());
            return Err(ReplaceError::NoPlace { pod, reason: None });
        }
        let mut plan = MovePlan::new();
        (plan.waves, plan.cost) = in_waves(moved, rules);
        plan.new_nodes = made.into_iter().zip(daemons).map(|(made, daemons)| NewNode { daemons, ..made.new }).collect();
        plan.price = plan.new_nodes.iter().map(|new| new.price).fold(0, u64::saturating_add);
        plan.removed = removed.iter().map(|node| (*node).to_owned()).collect();
        if plan.new_nodes.is_empty() {
            plan.proof = MoveProof::Least;
        }
        Ok(plan.knowing(snapshot))
    }
}

fn devices_of_results(
    results: &[(dra_device::claims::ClaimKey, k8s_openapi::api::resource::v1::AllocationResult)],
) -> usize {
    results.iter().map(|(_, result)| dra_device::internal::of_allocation(result).len()).sum()
}
