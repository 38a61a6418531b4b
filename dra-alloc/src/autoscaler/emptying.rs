//! Nodes that are emptied one after the other: each on top of the places that the pods of those before it have found.
//!
//! A plan is kept and added to. When the next node goes, its pods leave, and with them those that the plan has put there; each finds
//! another place, or the node stays and everything is as before. Nodes that have refused a kind of pods are not asked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_device::DeviceId;
use dra_device::internal::of_allocation;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::AllocationResult;

use super::cluster_snapshot::{ClusterSnapshot, ends_with_its_node, name_of, takes_pods};
use super::copied_claims::only_node;
use super::leaving::{check_stranded, delete_slices};
use super::placing::PlacementError;
use super::rehearsal::Rehearsal;
use super::release::claims_of;
use super::removal_error::RemovalError;
use super::simulator::ScaleSimulator;
use crate::cluster::inventory::{Inventory, InventoryLayer};
use crate::cluster::state::AllocatedState;
use crate::pods::{
    ClaimLookup, ClaimTracker, GangHolding, GangPlacement, KnownRefusals, Member, MemberError, PodIdentity,
};

/// Order in which nodes are tried for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeOrder {
    /// That of the snapshot.
    Listed,
    /// The node with the fewest free devices first.
    Fullest,
}

/// A pod that has left its node.
#[derive(Clone, Copy)]
pub(crate) struct Mover<'e> {
    /// Name of the node that it has left first.
    pub(crate) from: &'e str,
    pub(crate) pod: &'e Pod,
}

/// A pod on its new node.
struct Moved<'e> {
    mover: Mover<'e>,
    /// Devices that it has there and had not before, for explanations.
    holding: Option<Arc<GangHolding>>,
}

/// Nodes that are emptied one after the other.
pub(crate) struct Emptying<'e, 'i> {
    simulator: &'e ScaleSimulator<'e>,
    snapshot: &'e ClusterSnapshot<'e>,
    layer: InventoryLayer<'i>,
    nodes: Vec<&'e Node>,
    index_of: BTreeMap<&'e str, usize>,
    order: NodeOrder,
    known: KnownRefusals,
    gone: BTreeSet<usize>,
    /// Claims before anybody left.
    before: ClaimTracker,
    plan: Plan<'e>,
}

/// Places that were found so far, which a trial changes and takes back.
struct Plan<'e> {
    rehearsal: Rehearsal,
    /// Pods that were put on each node.
    moved: BTreeMap<usize, Vec<Moved<'e>>>,
    /// Numbers of free devices, where their order counts.
    free: Vec<usize>,
    /// Nodes that may take a pod, in the order in which they are tried.
    open: BTreeSet<(usize, usize)>,
    /// True if a pod that came has devices that several nodes see.
    is_spread: bool,
    /// Changes of the trial, in their order.
    changes: Vec<Change<'e>>,
}

/// Change of a plan, as a trial takes it back.
enum Change<'e> {
    /// A node goes.
    Gone {
        node: usize,
        was_open: bool,
        /// Pods that were put on it.
        moved: Vec<Moved<'e>>,
    },
    /// A pod came to a node.
    Came { node: usize },
    /// A node has fewer free devices than before.
    Taken { node: usize, before: usize },
}

impl<'e, 'i> Emptying<'e, 'i> {
    pub(crate) fn new(
        simulator: &'e ScaleSimulator<'e>,
        layer: InventoryLayer<'i>,
        tracker: &ClaimTracker,
        snapshot: &'e ClusterSnapshot<'e>,
        order: NodeOrder,
    ) -> Self {
        let nodes: Vec<&Node> = snapshot.nodes().collect();
        let free = |node: &&Node| match order {
            NodeOrder::Listed => 0,
            NodeOrder::Fullest => free_devices(&layer, tracker.state(), name_of(node)),
        };
        let free: Vec<usize> = nodes.iter().map(free).collect();
        let open = nodes.iter().zip(&free).enumerate().filter(|(_, (node, _))| takes_pods(node));
        let open = open.map(|(index, (_, free))| (*free, index)).collect();
        let rehearsal = Rehearsal::new(tracker.clone());
        let plan = Plan { rehearsal, moved: BTreeMap::new(), free, open, is_spread: false, changes: Vec::new() };
        let (known, gone) = (KnownRefusals::new(nodes.len()), BTreeSet::new());
        let index_of = nodes.iter().enumerate().map(|(index, node)| (name_of(node), index)).collect();
        Self { simulator, snapshot, layer, nodes, index_of, order, known, gone, before: tracker.clone(), plan }
    }

    /// Returns the pods that have left their nodes, each with the name of its new node.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (Mover<'e>, &'e str)> {
        let on = self.plan.moved.iter().filter_map(|(index, pods)| Some((pods, name_of(self.nodes.get(*index)?))));
        on.flat_map(|(pods, node)| pods.iter().map(move |moved| (moved.mover, node)))
    }

    /// Empties one more node. If it has to stay, everything is as before.
    pub(crate) fn empty(&mut self, node: &str) -> Result<(), Box<RemovalError>> {
        let found = self.index_of.get(node).copied().filter(|index| !self.gone.contains(index));
        let Some(index) = found else {
            return Err(Box::new(RemovalError::NodeNotFound { node: node.to_owned() }));
        };
        let (rehearsal, mark) = (self.plan.rehearsal.clone(), self.layer.mark());
        self.plan.changes.clear();
        self.known.mark();
        self.gone.insert(index);
        let emptied = self.leave(index).and_then(|movers| self.find_places(movers));
        if emptied.is_err() {
            self.gone.remove(&index);
            self.layer.undo_to(mark);
            self.plan.rehearsal = rehearsal;
            let (touched, is_spread) = (self.plan.undo(), self.plan.is_spread);
            self.known.forget_latest(|node| is_spread || touched.contains(&node));
        }
        emptied
    }

    /// Lets all pods of a node leave, and takes its slices away. Returns the pods that need another place, those with the most
    /// devices first where the fullest node is tried first.
    fn leave(&mut self, index: usize) -> Result<Vec<Mover<'e>>, Box<RemovalError>> {
        let Some(node) = self.nodes.get(index).copied() else { return Ok(Vec::new()) };
        let own = self.snapshot.pods_on(name_of(node)).unwrap_or_default().iter();
        let mut movers: Vec<Mover<'_>> = own.map(|pod| Mover { from: name_of(node), pod }).collect();
        movers.extend(self.plan.let_go(index));
        let pods: Vec<&Pod> = movers.iter().map(|mover| mover.pod).collect();
        if self.order == NodeOrder::Fullest {
            let tracker = &self.plan.rehearsal.tracker;
            movers.sort_by_cached_key(|mover| std::cmp::Reverse(devices_of(tracker, mover.pod).len()));
        }
        let held: Vec<DeviceId> = pods.iter().flat_map(|pod| devices_of(&self.plan.rehearsal.tracker, pod)).collect();
        self.plan.rehearsal.leave(&pods)?;
        let tracker = &self.plan.rehearsal.tracker;
        let remaining = self.nodes.iter().enumerate().filter(|(index, _)| !self.gone.contains(index));
        check_stranded(tracker, self.snapshot.waiting(), &remaining.map(|(_, node)| *node), &[node])?;
        delete_slices(&mut self.layer, &BTreeSet::from([name_of(node)]), tracker.state())?;
        if held.iter().any(|device| self.layer.device(device).is_some()) {
            self.known.clear();
        }
        movers.retain(|mover| !ends_with_its_node(mover.pod));
        Ok(movers)
    }

    fn find_places(&mut self, movers: Vec<Mover<'e>>) -> Result<(), Box<RemovalError>> {
        let Self { simulator, layer, nodes, index_of, plan, known, order, before, .. } = self;
        plan.is_spread = false;
        let mut placed: Vec<GangPlacement> = if simulator.is_checked() {
            let on = plan.moved.iter().filter_map(|(index, pods)| Some((pods, name_of(nodes.get(*index)?))));
            on.flat_map(|(pods, node)| pods.iter().map(move |moved| (moved.mover, node)))
                .map(|(mover, node)| {
                    let pod = PodIdentity::new(mover.pod, simulator.options());
                    GangPlacement { pod, node: node.to_owned(), cycle: None }
                })
                .collect()
        } else {
            Vec::new()
        };
        simulator.search(layer, nodes, |search| {
            let mut among = plan.open_nodes();
            for mover in movers {
                let group = simulator.group_of(mover.pod);
                let member = Member { pod: mover.pod, group, placed: &placed, gone: &[], among: Some(&among) };
                let arrival = plan.rehearsal.come(search, &member, known).map_err(|reason| {
                    let pod = PodIdentity::new(mover.pod, simulator.options());
                    let reason = plan.with_holdings(reason);
                    Box::new(RemovalError::NoPlace { pod, node: mover.from.to_owned(), reason })
                })?;
                let Some(index) = index_of.get(arrival.placement.node.as_str()).copied() else { continue };
                let results = arrival.results.iter().map(|(_, result)| result);
                plan.is_spread |= results.clone().any(|result| !is_of(result, &arrival.placement.node));
                if *order == NodeOrder::Fullest {
                    plan.take(index, results.map(|result| of_allocation(result).len()).sum());
                    among = plan.open_nodes();
                }
                let holding = new_holding(before, &plan.rehearsal.tracker, mover.pod, &arrival.placement.node);
                plan.put(index, Moved { mover, holding });
                if simulator.is_checked() {
                    placed.push(arrival.placement);
                }
            }
            Ok(())
        })
    }
}

impl<'e> Plan<'e> {
    /// Returns the nodes that may take a pod, in the order in which they are tried.
    fn open_nodes(&self) -> Vec<usize> {
        self.open.iter().map(|(_, index)| *index).collect()
    }

    /// Lets a node go. Returns the pods that were put on it.
    fn let_go(&mut self, node: usize) -> Vec<Mover<'e>> {
        let was_open = self.free.get(node).is_some_and(|free| self.open.remove(&(*free, node)));
        let moved = self.moved.remove(&node).unwrap_or_default();
        let movers = moved.iter().map(|moved| moved.mover).collect();
        self.changes.push(Change::Gone { node, was_open, moved });
        movers
    }

    /// Puts a pod on a node.
    fn put(&mut self, node: usize, moved: Moved<'e>) {
        self.moved.entry(node).or_default().push(moved);
        self.changes.push(Change::Came { node });
    }

    /// Takes the changes of the trial back. Returns the nodes that pods came to or left.
    fn undo(&mut self) -> BTreeSet<usize> {
        let mut touched = BTreeSet::new();
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Gone { node, was_open, moved } => {
                    if let Some(free) = self.free.get(node).filter(|_| was_open) {
                        self.open.insert((*free, node));
                    }
                    if !moved.is_empty() {
                        self.moved.insert(node, moved);
                    }
                    touched.insert(node);
                }
                Change::Came { node } => {
                    let pods = self.moved.get_mut(&node);
                    if pods.is_some_and(|pods| pods.pop().is_some() && pods.is_empty()) {
                        self.moved.remove(&node);
                    }
                    touched.insert(node);
                }
                Change::Taken { node, before } => self.set_free(node, before),
            }
        }
        touched
    }

    /// Adds the devices of the pods that were placed before to the explanation of a refusal.
    fn with_holdings(&self, reason: PlacementError) -> PlacementError {
        let PlacementError::Unschedulable(MemberError::NoNode(mut explanation)) = reason else { return reason };
        let holdings = self.moved.values().flatten().filter_map(|moved| moved.holding.as_ref());
        explanation.set_holdings(holdings.map(Arc::clone).collect());
        PlacementError::Unschedulable(MemberError::NoNode(explanation))
    }

    /// Takes devices of a node.
    fn take(&mut self, node: usize, devices: usize) {
        let Some(before) = self.free.get(node).copied() else { return };
        self.set_free(node, before.saturating_sub(devices));
        self.changes.push(Change::Taken { node, before });
    }

    /// Sets the number of free devices of a node that may take pods.
    fn set_free(&mut self, node: usize, number: usize) {
        let Some(free) = self.free.get_mut(node) else { return };
        self.open.remove(&(*free, node));
        *free = number;
        self.open.insert((number, node));
    }
}

/// Returns the devices that the claims of a pod hold on its new node and did not hold before.
fn new_holding(before: &ClaimTracker, now: &ClaimTracker, pod: &Pod, node: &str) -> Option<Arc<GangHolding>> {
    let (kept, mut devices) = (devices_of(before, pod), devices_of(now, pod));
    devices.retain(|device| !kept.contains(device));
    let pod = pod.metadata.name.clone().unwrap_or_default();
    (!devices.is_empty()).then(|| Arc::new(GangHolding { pod, node: node.to_owned(), devices }))
}

/// Returns the number of free devices in the slices of a node.
pub(crate) fn free_devices(inventory: &Inventory, state: &AllocatedState, node: &str) -> usize {
    let devices = inventory.slices_of_node(node).flat_map(|slice| {
        let ids = slice.spec.devices.iter().flatten();
        ids.map(|device| DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name))
    });
    devices.filter(|device| !state.is_allocated(device)).count()
}

/// Returns the devices that the claims of a pod hold.
pub(crate) fn devices_of(claims: &impl ClaimLookup, pod: &Pod) -> Vec<DeviceId> {
    let claims = claims_of(pod).filter_map(|named| claims.claim(&named.claim.namespace, &named.claim.name));
    let results = claims.flat_map(|claim| dra_device::allocated_devices(claim));
    results.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device)).collect()
}

/// Returns true if an allocation can be used on a node alone.
fn is_of(allocation: &AllocationResult, node: &str) -> bool {
    allocation.node_selector.as_ref().and_then(only_node) == Some(node)
}
