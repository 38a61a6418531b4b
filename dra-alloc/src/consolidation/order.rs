//! Order of moves in which each finds its devices free.

use std::collections::BTreeSet;

use dra_device::DeviceId;
use dra_device::internal::of_allocation;

use super::move_plan::PodMove;
use super::unit::Unit;
use crate::cluster::inventory::Inventory;
use crate::cluster::state::AllocatedState;

/// A unit that goes, with the moves of its pods.
pub(super) struct Going<'u> {
    pub(super) unit: Unit<'u>,
    pub(super) moves: Vec<PodMove>,
}

impl Going<'_> {
    /// Returns the devices that the pods get, with true for a share of one.
    fn devices(&self) -> impl Iterator<Item = (DeviceId, bool)> {
        let results = self.moves.iter().flat_map(|moved| &moved.results).flat_map(|(_, result)| of_allocation(result));
        let held = results.filter(|result| result.admin_access != Some(true));
        held.map(|result| (DeviceId::new(&result.driver, &result.pool, &result.device), result.share_id.is_some()))
    }
}

/// Puts units in an order in which each finds its devices free. Those that wait for each other leave together.
pub(super) fn in_order<'u>(
    inventory: &Inventory,
    state: &AllocatedState,
    mut left: Vec<Going<'u>>,
) -> Vec<Vec<Going<'u>>> {
    let (mut freed, mut taken): (BTreeSet<DeviceId>, BTreeSet<DeviceId>) = Default::default();
    let mut ordered = Vec::new();
    let is_simple = left.iter().all(|going| {
        going.devices().all(|(device, is_share)| {
            !is_share && inventory.device(&device).is_some_and(|(_, device)| device.consumes_counters.is_none())
        })
    });
    while let Some(next) = left.iter().position(|going| {
        is_simple
            && going.devices().all(|(device, _)| {
                let is_held = state.is_allocated(&device) && !freed.contains(&device) || taken.contains(&device);
                !is_held || going.unit.devices.contains(&device) && !taken.contains(&device)
            })
    }) {
        let going = left.remove(next);
        freed.extend(going.unit.devices.iter().cloned());
        taken.extend(going.devices().map(|(device, _)| device));
        ordered.push(vec![going]);
    }
    if !left.is_empty() {
        ordered.push(left);
    }
    ordered
}
