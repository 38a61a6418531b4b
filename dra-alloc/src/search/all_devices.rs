//! Devices of `allocationMode: All` requests, collected before the search, and the check that claims with them are not
//! too large.
//!
//! Source: the order of checks in kube-scheduler's allocator, 1.37.

use super::allocate_error::AllocateError;
use super::budget::{Halt, Meter};
use super::outcome::NodeFailure;
use super::request::{Claim, Mode};
use super::table::{CapacityCheck, Table};
use crate::cluster::inventory::pool::PoolState;
use crate::config::gates::DraGate;
use crate::config::limits::MAX_DEVICES_PER_CLAIM;

/// Returns the devices of each `allocationMode: All` alternative, and checks the claims in kube-scheduler's order.
pub(super) fn devices_of_all(table: &Table<'_>, meter: &mut Meter<'_>) -> Result<Vec<Vec<usize>>, Halt> {
    let mut all = Vec::new();
    if table.plan.alternatives.iter().any(|asked| asked.mode == Mode::All) {
        all.resize(table.plan.alternatives.len(), Vec::new());
    }
    for claim in &table.plan.claims {
        for request in &claim.requests {
            for alternative in request.alternatives.clone() {
                if let (Mode::All, Some(devices)) = (table.alternative(alternative).mode, all.get_mut(alternative)) {
                    *devices = all_devices(table, alternative, meter)?;
                }
            }
        }
        if let Some(error) = &claim.request_error {
            return Err(Halt::Failed((**error).clone()));
        }
        check_size(table, claim, &all)?;
        if let Some(error) = &claim.constraint_error {
            return Err(Halt::Failed((**error).clone()));
        }
    }
    Ok(all)
}

/// Returns the devices that an `allocationMode: All` request must get. Includes devices in use, which make the request
/// fail later.
///
/// The set of all devices is known only if all pools are complete. Pools before the first incomplete one are read.
fn all_devices(table: &Table<'_>, alternative: usize, meter: &mut Meter<'_>) -> Result<Vec<usize>, Halt> {
    let mut all = Vec::new();
    for (pool, devices) in table.candidates.order() {
        if let Some(failure) = unknown_pool(table, alternative, pool) {
            return Err(Halt::OnNode(failure));
        }
        for device in devices {
            meter.step()?;
            if table.is_selectable(alternative, device)? && could_serve(table, alternative, device)? {
                all.push(device);
            }
        }
    }
    Ok(all)
}

/// Returns true if an unused device has the capacities that an alternative requests.
fn could_serve(table: &Table<'_>, alternative: usize, device: usize) -> Result<bool, AllocateError> {
    Ok(!table.has(DraGate::ConsumableCapacity) || matches!(table.fit(alternative, device)?, CapacityCheck::Takes(_)))
}

fn unknown_pool(table: &Table<'_>, alternative: usize, pool: usize) -> Option<NodeFailure> {
    let (asked, pool) = (table.alternative(alternative), table.candidates.pools().get(pool)?);
    let (claim, request) = (|| table.claim_name(asked), || asked.name.to_string());
    match pool.state() {
        PoolState::Complete => None,
        PoolState::Incomplete => {
            Some(NodeFailure::PoolIncomplete { claim: claim(), request: request(), pool: pool.full_name() })
        }
        PoolState::Invalid => {
            let problem = Box::new(pool.problem()?);
            Some(NodeFailure::PoolInvalid { claim: claim(), request: request(), pool: pool.full_name(), problem })
        }
    }
}

/// Returns an error if a claim needs more devices than one allocation may have, even with its smallest alternatives.
fn check_size(table: &Table<'_>, claim: &Claim<'_>, all: &[Vec<usize>]) -> Result<(), AllocateError> {
    let number = |alternative: usize| match table.alternative(alternative).mode {
        Mode::Exactly(count) => count,
        Mode::All => all.get(alternative).map_or(0, |devices| u64::try_from(devices.len()).unwrap_or(u64::MAX)),
    };
    let fewest = claim.requests.iter().map(|request| request.alternatives.clone().map(number).min().unwrap_or(0));
    let devices = fewest.fold(0, u64::saturating_add);
    if devices <= u64::try_from(MAX_DEVICES_PER_CLAIM).unwrap_or(u64::MAX) {
        return Ok(());
    }
    Err(AllocateError::TooManyDevices { claim: claim.name(), devices, limit: MAX_DEVICES_PER_CLAIM })
}
