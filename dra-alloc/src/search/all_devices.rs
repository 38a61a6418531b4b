//! Devices of `allocationMode: All` requests, collected before the search, and the check that claims with them are not
//! too large.
//!
//! Source: the order of checks in kube-scheduler's allocator, 1.37.

use dra_attrs::Gate;
use dra_attrs::internal::release::FullDevices;
use dra_device::MAX_DEVICES_PER_CLAIM;

use super::allocate_error::AllocateError;
use super::budget::{Halt, Meter};
use super::capacity_check::CapacityCheck;
use super::ix::{AlternativeIx, DeviceIx, PoolIx};
use super::outcome::NodeError;
use super::request::{Claim, Mode};
use super::table::{DevicesOfAll, Table};
use crate::cluster::inventory::pool::PoolState;

/// Largest number of devices of one allocation.
pub(super) const LIMIT: u64 = MAX_DEVICES_PER_CLAIM as u64;

/// Returns the devices of each `allocationMode: All` alternative, and checks the claims in kube-scheduler's order.
pub(crate) fn devices_of_all(table: &Table<'_>, meter: &Meter<'_>) -> Result<DevicesOfAll, Halt> {
    let mut all = DevicesOfAll::default();
    if table.plan.alternatives.iter().any(|asked| asked.mode == Mode::All) {
        all.extend(table.plan.alternatives.iter().map(|_| Vec::new()));
    }
    for claim in &table.plan.claims {
        for request in &claim.requests {
            for alternative in request.alternatives {
                if let (Mode::All, Some(devices)) = (table.alternative(alternative).mode, all.at_mut(alternative)) {
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
fn all_devices(table: &Table<'_>, alternative: AlternativeIx, meter: &Meter<'_>) -> Result<Vec<DeviceIx>, Halt> {
    let mut all = Vec::new();
    for (pool, devices) in table.candidates.order() {
        if let Some(failure) = unknown_pool(table, alternative, pool) {
            return Err(Halt::OnNode(failure));
        }
        for device in devices {
            meter.step()?;
            if table.is_selectable(alternative, device)? && belongs(table, alternative, device)? {
                all.push(device);
            }
        }
    }
    Ok(all)
}

/// Returns true if a device has the capacities that an alternative requests: an unused device or, as releases have it, the
/// device with what is left of it.
fn belongs(table: &Table<'_>, alternative: AlternativeIx, device: DeviceIx) -> Result<bool, AllocateError> {
    if !table.has(Gate::ConsumableCapacity) {
        return Ok(true);
    }
    let CapacityCheck::Takes(amounts) = table.fit(alternative, device)? else { return Ok(false) };
    match table.rules.allocator.full_devices {
        FullDevices::Counted => Ok(true),
        FullDevices::LeftOut => {
            let mut capacities = table.capacities(device)?.iter().zip(amounts);
            Ok(capacities.all(|(capacity, amount)| {
                let left = capacity.value().checked_sub(table.consumed(device, capacity.name));
                left.is_some_and(|left| amount.quantity <= left)
            }))
        }
    }
}

fn unknown_pool(table: &Table<'_>, alternative: AlternativeIx, pool: PoolIx) -> Option<NodeError> {
    let (asked, pool) = (table.alternative(alternative), table.candidates.pool(pool));
    let (claim, request) = (|| table.claim_name(asked), || asked.name.to_string());
    match pool.state() {
        PoolState::Complete => None,
        PoolState::Incomplete => {
            Some(NodeError::PoolIncomplete { claim: claim(), request: request(), pool: pool.full_name() })
        }
        PoolState::Invalid => {
            let problem = Box::new(pool.problem()?);
            Some(NodeError::PoolInvalid { claim: claim(), request: request(), pool: pool.full_name(), problem })
        }
    }
}

/// Returns the smallest number of devices that a claim asks for, over all choices of alternatives.
pub(super) fn fewest(claim: &Claim<'_>, number: impl Fn(AlternativeIx) -> u64) -> u64 {
    let fewest = claim.requests.iter().map(|request| request.alternatives.into_iter().map(&number).min().unwrap_or(0));
    fewest.fold(0, u64::saturating_add)
}

/// Returns an error if a claim needs more devices than one allocation may have, even with its smallest alternatives.
fn check_size(table: &Table<'_>, claim: &Claim<'_>, all: &DevicesOfAll) -> Result<(), AllocateError> {
    let number = |alternative: AlternativeIx| match table.alternative(alternative).mode {
        Mode::Exactly(count) => count,
        Mode::All => all.at(alternative).map_or(0, |devices| u64::try_from(devices.len()).unwrap_or(u64::MAX)),
    };
    let devices = fewest(claim, number);
    if devices <= LIMIT {
        return Ok(());
    }
    Err(AllocateError::TooManyDevices { claim: claim.name(), devices, limit: MAX_DEVICES_PER_CLAIM })
}
