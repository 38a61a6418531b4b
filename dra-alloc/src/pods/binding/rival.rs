//! Devices that another scheduler has given away as well.

use dra_device::{DeviceId, allocated_devices};

use crate::cluster::state::{AllocatedState, ClaimId, DeviceUsage};
use crate::pods::cycle::{CycleClaim, PodCycle};

/// Returns a device that a cycle has chosen and another claim holds as well, with that claim.
pub(super) fn rival(cycle: &PodCycle, state: &AllocatedState) -> Option<(DeviceId, ClaimId)> {
    cycle.claims().iter().filter(|claim| claim.chosen().is_some()).find_map(|claim| rival_of(claim, state))
}

fn rival_of(claim: &CycleClaim, state: &AllocatedState) -> Option<(DeviceId, ClaimId)> {
    let own = ClaimId::from(claim.claim());
    let devices = allocated_devices(claim.claim()).iter();
    { devices }.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device)).find_map(|device| {
        let usage = state.device(&device).filter(|usage| DeviceUsage::is_held_twice(usage))?;
        let holder = usage.holders().find(|holder| **holder != own)?.clone();
        Some((device, holder))
    })
}
