//! Nodes that can go, with all their pods and the pods' claims placed elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_attrs::node_selector_matches;
use dra_device::DeviceId;
use dra_device::claims::{ClaimKey, ClaimOrigin};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::cluster_snapshot::{ClusterSnapshot, ends_with_its_node, name_of};
use super::placing::{PlacementError, Placing};
use super::release::{ClaimRelease, Departure, claims_of, release};
use super::simulator::ScaleSimulator;
use crate::cluster::inventory::{Inventory, InventoryLayer};
use crate::cluster::state::{AllocatedState, ClaimId, StateError};
use crate::pods::{ClaimLookup, ClaimTracker, GangPlacement, PodIdentity};

/// Nodes that go together, as a plan.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NodeRemoval {
    /// Claims that change when the pods of the nodes go, as [`release`] returns them.
    pub released: Vec<(ResourceClaim, ClaimRelease)>,
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

/// Reason why nodes can't go.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RemovalError {
    /// There is no such node.
    #[error("node {node:?} not found")]
    NodeNotFound {
        /// Name of the node.
        node: String,
    },
    /// A pod of the nodes finds no place on the nodes that stay.
    #[error("pod {}/{} on node {node}: {reason}", pod.namespace, pod.name)]
    NoPlace {
        /// The pod.
        pod: PodIdentity,
        /// Node that it would leave.
        node: String,
        /// Reason why it has no place.
        #[source]
        reason: PlacementError,
    },
    /// A claim that stays holds a device of the nodes: another pod's, or one with an allocation in flight.
    #[error("claim {claim}, which stays, holds device {device}")]
    DeviceHeld {
        /// The claim.
        claim: ClaimId,
        /// The device.
        device: DeviceId,
    },
    /// A claim would stay allocated for nodes of which none is left.
    #[error("claim {claim}, which stays, is allocated for none of the nodes that stay")]
    ClaimStranded {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// A pod that stays uses a claim that goes with its owner.
    #[error("claim {claim} goes with the pod that owns it, but others use it")]
    OwnedClaimShared {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The allocation of a claim can't be read.
    #[error(transparent)]
    State(#[from] StateError),
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
    /// Pods of the nodes times nodes that stay calls of a filter, beside the devices in use in the nodes' pools, and the claims
    /// of waiting pods.
    pub fn remove_nodes<'n>(
        &self,
        inventory: &mut Inventory,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        nodes: impl IntoIterator<Item = &'n str>,
    ) -> Result<NodeRemoval, Box<RemovalError>> {
        let gone: BTreeSet<&str> = nodes.into_iter().collect();
        let mut going: Vec<(&str, &Pod)> = Vec::new();
        for node in &gone {
            let pods = snapshot.pods_on(node);
            let pods = pods.ok_or_else(|| RemovalError::NodeNotFound { node: (*node).to_owned() })?;
            going.extend(pods.iter().map(|pod| (*node, *pod)));
        }
        let mut tracker = tracker.clone();
        let released = release_claims(going.iter().map(|(_, pod)| *pod), &mut tracker)?;
        let (remaining, left): (Vec<&Node>, Vec<&Node>) =
            snapshot.nodes().partition(|node| !gone.contains(name_of(node)));
        check_stranded(&tracker, snapshot.waiting(), &remaining, &left)?;
        let mut layer = inventory.layer();
        delete_slices(&mut layer, &gone, tracker.state())?;
        let is_cordoned = |node: &&Node| node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
        let targets: Vec<&Node> = remaining.into_iter().filter(|node| !is_cordoned(node)).collect();
        let mut placing = Placing::new(tracker);
        self.search(&layer, &targets, |search| {
            for (node, pod) in going.iter().filter(|(_, pod)| !ends_with_its_node(pod)) {
                placing.place(search, pod, self.group_of(pod)).map_err(|reason| {
                    let pod = PodIdentity::new(pod, self.options());
                    RemovalError::NoPlace { pod, node: (*node).to_owned(), reason }
                })?;
            }
            Ok::<(), Box<RemovalError>>(())
        })?;
        Ok(NodeRemoval { released, moved: placing.placed })
    }

    /// Decides which candidates can go together. Each one is tried in its turn, together with those before it that can go.
    ///
    /// # Complexity
    /// That of [`ScaleSimulator::remove_nodes`] for each candidate: its pods, and those of the removable ones before it.
    pub fn scale_down<'n>(
        &self,
        inventory: &mut Inventory,
        tracker: &ClaimTracker,
        snapshot: &ClusterSnapshot<'_>,
        candidates: impl IntoIterator<Item = &'n str>,
    ) -> ScaleDown {
        let mut scale_down = ScaleDown::default();
        let mut tried = BTreeSet::new();
        for candidate in candidates {
            if !tried.insert(candidate) {
                continue;
            }
            let together = scale_down.removable.iter().map(String::as_str).chain([candidate]);
            match self.remove_nodes(inventory, tracker, snapshot, together) {
                Ok(removal) => {
                    scale_down.removable.push(candidate.to_owned());
                    scale_down.removal = removal;
                }
                Err(obstacle) => scale_down.kept.push((candidate.to_owned(), *obstacle)),
            }
        }
        scale_down
    }
}

/// Releases the claims of pods that go, and makes those from templates anew.
fn release_claims<'p>(
    going: impl Iterator<Item = &'p Pod> + Clone,
    tracker: &mut ClaimTracker,
) -> Result<Vec<(ResourceClaim, ClaimRelease)>, Box<RemovalError>> {
    let named = going.clone().flat_map(|pod| claims_of(pod).map(move |named| (ends_with_its_node(pod), named)));
    let mut used: BTreeMap<ClaimKey, (Arc<ResourceClaim>, bool)> = BTreeMap::new();
    for (ends, named) in named {
        let Some(claim) = tracker.claim(&named.claim.namespace, &named.claim.name) else { continue };
        let (_, is_made_anew) = used.entry(named.claim).or_insert_with(|| (Arc::clone(claim), false));
        *is_made_anew |= !ends && named.origin == ClaimOrigin::Template;
    }
    let released = release(going.clone(), used.values().map(|(claim, _)| &**claim), Departure::Removed);
    let leaving: BTreeSet<&str> = going.filter_map(|pod| pod.metadata.uid.as_deref()).collect();
    for (claim, release) in &released {
        let key = ClaimKey::from_metadata(&claim.metadata);
        let before = used.get(&key);
        if *release != ClaimRelease::Deleted {
            tracker.observe(claim.clone()).map_err(RemovalError::from)?;
            continue;
        }
        let consumers = before.iter().filter_map(|(claim, _)| claim.status.as_ref()?.reserved_for.as_ref()).flatten();
        if { consumers }.any(|consumer| !leaving.contains(consumer.uid.as_str())) {
            return Err(Box::new(RemovalError::OwnedClaimShared { claim: key }));
        }
        if before.is_some_and(|(_, is_made_anew)| *is_made_anew) {
            let mut anew = claim.clone();
            (anew.status, anew.metadata.deletion_timestamp) = (None, None);
            tracker.observe(anew).map_err(RemovalError::from)?;
        } else {
            tracker.observe_deleted(&ClaimId::from(claim));
        }
    }
    Ok(released)
}

/// Checks that no claim of a waiting pod and none in flight is allocated for nodes that go and for none that stays.
fn check_stranded(
    tracker: &ClaimTracker,
    waiting: &[&Pod],
    remaining: &[&Node],
    gone: &[&Node],
) -> Result<(), Box<RemovalError>> {
    let waiting = waiting.iter().filter(|pod| !ends_with_its_node(pod)).flat_map(|pod| claims_of(pod));
    let waiting = waiting.filter_map(|named| tracker.claim(&named.claim.namespace, &named.claim.name));
    for claim in waiting.chain(tracker.in_flight()) {
        let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else { continue };
        let selector = allocation.node_selector.as_ref();
        let is_usable =
            |node: &Node| selector.is_none_or(|selector| node_selector_matches(selector, node).unwrap_or(false));
        let is_among = |nodes: &[&Node]| nodes.iter().any(|node| is_usable(node));
        if is_among(gone) && !is_among(remaining) {
            let claim = ClaimKey::from_metadata(&claim.metadata);
            return Err(Box::new(RemovalError::ClaimStranded { claim }));
        }
    }
    Ok(())
}

/// Deletes the slices of nodes. Of the devices of their pools, those that no slice has any longer must not be held.
fn delete_slices(
    layer: &mut InventoryLayer<'_>,
    nodes: &BTreeSet<&str>,
    state: &AllocatedState,
) -> Result<(), Box<RemovalError>> {
    let slices = nodes.iter().flat_map(|node| layer.slices_of_node(node));
    let pools: BTreeSet<(String, String)> =
        slices.map(|slice| (slice.spec.driver.clone(), slice.spec.pool.name.clone())).collect();
    for node in nodes {
        layer.delete_slices_of_node(node);
    }
    for (driver, pool) in &pools {
        for used in state.devices_of_pool(driver, pool) {
            let device = DeviceId::new(driver, pool, used.name());
            if let Some(claim) = used.holders().next().filter(|_| layer.device(&device).is_none()) {
                return Err(Box::new(RemovalError::DeviceHeld { claim: claim.clone(), device }));
            }
        }
    }
    Ok(())
}
