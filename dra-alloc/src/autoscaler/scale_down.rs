//! Nodes that can go, with all their pods and the pods' claims placed elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};

use super::cluster_snapshot::{ClusterSnapshot, ends_with_its_node, name_of, takes_pods};
use super::emptying::{Emptying, NodeOrder};
use super::leaving::{check_stranded, delete_slices};
use super::placing::Placing;
use super::rehearsal::release_claims;
use super::release::ClaimRelease;
use super::removal_error::RemovalError;
use super::simulator::ScaleSimulator;
use crate::cluster::inventory::InventoryLayer;
use crate::cluster::state::ClaimId;
use crate::pods::{ClaimTracker, GangPlacement, PodIdentity};

/// Nodes that go together, as a plan.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NodeRemoval {
    /// Claims that change when the pods of the nodes go, in the order in which [`release`](super::release()) returns them.
    pub released: Vec<(ClaimId, ClaimRelease)>,
    /// Pods with their new nodes, each with the devices that it gets there.
    pub moved: Vec<GangPlacement>,
}

/// Answer to the question which nodes can go.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScaleDown {
    /// Names of the nodes that can go together, in the order of the candidates.
    pub removable: Vec<String>,
    /// Plan for their pods and claims.
    pub removal: NodeRemoval,
    /// Names of the candidates that have to stay, each with the reason, given that the removable candidates before it go.
    pub kept: Vec<(String, RemovalError)>,
}

impl ScaleSimulator<'_> {
    /// Decides if nodes can go together: all their pods find a place on the nodes that stay, with all devices of their claims,
    /// and nothing that stays needs a device of the nodes.
    ///
    /// The plan holds for the nodes gone and the pods placed in its order. So cordon the nodes first, then evict their pods.
    /// Pods of daemon sets, mirror pods, and pods that are done or on their way out need no place. Nodes that are cordoned
    /// take no pod. Claims made from templates are made anew for the pods that come after those that go.
    ///
    /// # Errors
    /// The first obstacle. Pods are tried by the names of their nodes, then in the order of the snapshot.
    ///
    /// # Complexity
    /// A call of a filter for each pod of the nodes, and one for each kind of these pods and each node that stays, if the claims
    /// are the pods' own; else pods times nodes. Beside them the devices in use in the nodes' pools, and the claims of waiting pods.
    pub fn remove_nodes<'i, 'n>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        nodes: impl IntoIterator<Item = &'n str>,
    ) -> Result<NodeRemoval, Box<RemovalError>> {
        self.remove(&mut inventory.into(), tracker, snapshot, &nodes.into_iter().collect(), None)
    }

    /// Decides which candidates can go together. Each one is tried in its turn, on top of the places that the pods of those
    /// before it have found: pods that were put on it move on. That other places for them all would let it go, too, is possible.
    ///
    /// The reason that keeps a node has the explanations of [`ScaleSimulator::with_explanation`]; nothing else is explained.
    ///
    /// # Complexity
    /// For each candidate a call of a filter for each of its pods and those that were put on it, if the claims are the pods' own,
    /// and one for each kind of pods and each node; for each one that stays an explanation on all nodes.
    pub fn scale_down<'i, 'n>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        candidates: impl IntoIterator<Item = &'n str>,
    ) -> ScaleDown {
        let inventory = &mut inventory.into();
        let candidates: Vec<&str> = distinct(candidates);
        let mut scale_down = ScaleDown::default();
        let mut emptying = Emptying::new(self, inventory.layer(), tracker, snapshot, NodeOrder::Listed);
        for candidate in &candidates {
            match emptying.empty(candidate) {
                Ok(()) => scale_down.removable.push((*candidate).to_owned()),
                Err(obstacle) => scale_down.kept.push(((*candidate).to_owned(), *obstacle)),
            }
        }
        let moved = emptying.moved().map(|(mover, node)| (std::ptr::from_ref(mover.pod), node));
        let places: Places<'_> = moved.collect();
        drop(emptying);
        if scale_down.removable.is_empty() {
            return scale_down;
        }
        let gone: BTreeSet<&str> = scale_down.removable.iter().map(String::as_str).collect();
        let removal = self.remove(inventory, tracker, snapshot, &gone, None);
        match removal.or_else(|_| self.remove(inventory, tracker, snapshot, &gone, Some(&places))) {
            Ok(removal) => ScaleDown { removal, ..scale_down },
            Err(_) => self.scale_down_anew(inventory, tracker, snapshot, &candidates),
        }
    }

    /// Decides which candidates can go together, and finds all places anew for each: where pods share devices in a way that a plan
    /// can't be added to.
    fn scale_down_anew(
        &self,
        inventory: &mut InventoryLayer<'_>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        candidates: &[&str],
    ) -> ScaleDown {
        let mut scale_down = ScaleDown::default();
        for candidate in candidates {
            let together = scale_down.removable.iter().map(String::as_str).chain([*candidate]).collect();
            match self.remove(inventory, tracker, snapshot, &together, None) {
                Ok(removal) => {
                    scale_down.removable.push((*candidate).to_owned());
                    scale_down.removal = removal;
                }
                Err(obstacle) => scale_down.kept.push(((*candidate).to_owned(), *obstacle)),
            }
        }
        scale_down
    }

    /// Removes nodes. Their pods go to the first node that serves them, or to the given places.
    fn remove(
        &self,
        inventory: &mut InventoryLayer<'_>,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        gone: &BTreeSet<&str>,
        places: Option<&Places<'_>>,
    ) -> Result<NodeRemoval, Box<RemovalError>> {
        let mut going: Vec<(&str, &Pod)> = Vec::new();
        for node in gone {
            let pods = snapshot.pods_on(node);
            let pods = pods.ok_or_else(|| RemovalError::NodeNotFound { node: (*node).to_owned() })?;
            going.extend(pods.iter().map(|pod| (*node, *pod)));
        }
        let mut tracker = tracker.clone();
        let pods: Vec<&Pod> = going.iter().map(|(_, pod)| *pod).collect();
        let released = release_claims(&pods, &mut tracker)?;
        let (remaining, left): (Vec<&Node>, Vec<&Node>) =
            snapshot.nodes().partition(|node| !gone.contains(name_of(node)));
        check_stranded(&tracker, snapshot.waiting(), &remaining.iter().copied(), &left)?;
        let mut layer = inventory.layer();
        delete_slices(&mut layer, gone, tracker.state())?;
        let targets: Vec<&Node> = remaining.into_iter().filter(|node| takes_pods(node)).collect();
        let mut placing = Placing::new(tracker, targets.len());
        self.search(&layer, &targets, |search| {
            for (node, pod) in going.iter().filter(|(_, pod)| !ends_with_its_node(pod)) {
                let place = places.map(|places| places.get(&std::ptr::from_ref(*pod)).copied().unwrap_or_default());
                let among: Option<Vec<usize>> = place.map(|place| {
                    targets
                        .iter()
                        .enumerate()
                        .filter(|(_, node)| name_of(node) == place)
                        .map(|(index, _)| index)
                        .collect()
                });
                placing.place_among(search, pod, self.group_of(pod), among.as_deref()).map_err(|reason| {
                    let pod = PodIdentity::new(pod, self.options());
                    RemovalError::NoPlace { pod, node: (*node).to_owned(), reason }
                })?;
            }
            Ok::<(), Box<RemovalError>>(())
        })?;
        Ok(NodeRemoval { released, moved: placing.placed })
    }
}

/// Names of the nodes that pods get, by the place of the pod's object.
type Places<'p> = BTreeMap<*const Pod, &'p str>;

/// Returns names without repetitions, in their order.
pub(crate) fn distinct<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let mut known = BTreeSet::new();
    names.into_iter().filter(|name| known.insert(*name)).collect()
}
