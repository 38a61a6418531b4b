//! Things that nodes must not take along when they go: devices that somebody holds, and claims that can be used nowhere else.

use std::collections::BTreeSet;

use dra_attrs::node_selector_matches;
use dra_device::DeviceId;
use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::cluster_snapshot::ends_with_its_node;
use super::release::claims_of;
use super::removal_error::RemovalError;
use crate::cluster::inventory::InventoryLayer;
use crate::cluster::state::AllocatedState;
use crate::pods::{ClaimLookup, ClaimTracker};

/// Checks that no claim of a waiting pod and none in flight is allocated for nodes that go and for none that stays.
pub(crate) fn check_stranded<'n>(
    tracker: &ClaimTracker,
    waiting: &[&Pod],
    remaining: &(impl Iterator<Item = &'n Node> + Clone),
    gone: &[&Node],
) -> Result<(), Box<RemovalError>> {
    let waiting = waiting.iter().filter(|pod| !ends_with_its_node(pod)).flat_map(|pod| claims_of(pod));
    let waiting = waiting.filter_map(|named| tracker.claim(&named.claim.namespace, &named.claim.name));
    for claim in waiting.chain(tracker.in_flight()) {
        let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else { continue };
        let selector = allocation.node_selector.as_ref();
        let is_usable =
            |node: &Node| selector.is_none_or(|selector| node_selector_matches(selector, node).unwrap_or(false));
        if gone.iter().any(|node| is_usable(node)) && !remaining.clone().any(is_usable) {
            let claim = ClaimKey::from_metadata(&claim.metadata);
            return Err(Box::new(RemovalError::ClaimStranded { claim }));
        }
    }
    Ok(())
}

/// Deletes the slices of nodes. Of the devices of their pools, those that no slice has any longer must not be held.
pub(crate) fn delete_slices(
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
