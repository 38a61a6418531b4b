//! Bottlenecks: counters, compatibility groups and capacities that prevent devices from being used together, although
//! each could be used alone.
//!
//! Found by deletion, like the minimal unsatisfiable subset. A bottleneck is relaxed by changing the slices: the
//! devices then consume nothing of a counter set, or a capacity is practically unlimited. A bottleneck is reported only
//! if relaxing it was seen to matter; an unanswered what-if question reports nothing.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{Device, DeviceCapacity, DeviceCounterConsumption, ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Bottleneck;
use super::what_if::WhatIf;
use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::pool::{Pool, PoolState};
use crate::search::Table;
use crate::search::context::Context;
use crate::search::ix::DeviceIx;

/// Work of copying and indexing a device, and each of its attributes, capacities and counters.
const WORK_OF_DEVICE: usize = 8;
const WORK_OF_ENTRY: usize = 3;

/// Value of a capacity that is made practically unlimited: more than the requests of a call can consume.
const PLENTY: i64 = i64::MAX;

/// Returns the bottlenecks of an unsatisfiable core; empty if devices themselves are missing.
pub(super) fn bottlenecks(
    what_if: &mut WhatIf<'_>,
    claims: &[ResourceClaim],
    table: &Table<'_>,
    usable: &BTreeSet<DeviceIx>,
) -> Vec<Bottleneck> {
    let all: BTreeSet<Bottleneck> = usable.iter().flat_map(|device| of_device(table, *device)).collect();
    let copy: usize = table.candidates.pools().flat_map(Pool::all_slices).map(work_of_copy).sum();
    let mut is_possible_without = |left_out: &BTreeSet<Bottleneck>| {
        if !what_if.may_ask() || table.meter.work(copy).is_err() {
            return false;
        }
        let inventory = without(table.candidates.pools(), left_out, table.context.inventory);
        what_if.is_possible(&Context { inventory: &inventory, ..*table.context }, claims) == Some(true)
    };
    if all.is_empty() || !is_possible_without(&all) {
        return Vec::new();
    }
    let (mut left_out, mut found) = (BTreeSet::new(), Vec::new());
    for bottleneck in all {
        left_out.insert(bottleneck.clone());
        if is_possible_without(&left_out) {
            left_out.remove(&bottleneck);
            found.push(bottleneck);
        }
    }
    found
}

/// Returns the work of copying a slice.
fn work_of_copy(slice: &ResourceSlice) -> usize {
    let entries = |device: &Device| {
        let (attributes, capacity) = (device.attributes.as_ref(), device.capacity.as_ref());
        let counters = device.consumes_counters.iter().flatten().map(|consumed| consumed.counters.len()).sum::<usize>();
        attributes.map_or(0, BTreeMap::len) + capacity.map_or(0, BTreeMap::len) + counters
    };
    let work = |device| WORK_OF_DEVICE + WORK_OF_ENTRY * entries(device);
    slice.spec.devices.iter().flatten().map(work).sum()
}

/// Returns the counters, groups and capacities that limit the use of a device together with others.
fn of_device(table: &Table<'_>, device: DeviceIx) -> Vec<Bottleneck> {
    let candidate = table.candidate(device);
    let (pool, mut found) = (pool_name(candidate.slice), Vec::new());
    for consumption in candidate.device.consumes_counters.iter().flatten() {
        let (pool, set) = (pool.clone(), consumption.counter_set.clone());
        if has_groups(consumption) {
            found.push(Bottleneck::Groups { pool: pool.clone(), set: set.clone() });
        }
        found.push(Bottleneck::Counters { pool, set });
    }
    if table.is_shareable(device) {
        let capacities = candidate.device.capacity.iter().flat_map(BTreeMap::keys);
        found.extend(capacities.map(|capacity| Bottleneck::Capacity { capacity: capacity.clone() }));
    }
    found
}

fn has_groups(consumption: &DeviceCounterConsumption) -> bool {
    consumption.compatibility_groups.as_ref().is_some_and(|groups| !groups.is_empty())
}

fn pool_name(slice: &ResourceSlice) -> String {
    format!("{}/{}", slice.spec.driver, slice.spec.pool.name)
}

/// Builds an inventory of the pools, in which the bottlenecks `left_out` no longer limit the devices.
fn without<'p>(
    pools: impl Iterator<Item = &'p Pool>,
    left_out: &BTreeSet<Bottleneck>,
    inventory: &Inventory,
) -> Inventory {
    let complete = pools.filter(|pool| pool.state() == PoolState::Complete);
    let slices = complete.flat_map(|pool| pool.all_slices().chain(pool.counter_slices()));
    let slices: Vec<ResourceSlice> = slices.cloned().map(|slice| widened(slice, left_out)).collect();
    Inventory::new(slices).with_taint_rules(inventory.taint_rules().cloned())
}

fn widened(mut slice: ResourceSlice, left_out: &BTreeSet<Bottleneck>) -> ResourceSlice {
    let pool = pool_name(&slice);
    for device in slice.spec.devices.iter_mut().flatten() {
        for bottleneck in left_out {
            match bottleneck {
                Bottleneck::Counters { pool: of, set } if *of == pool => {
                    consumption(device, set).for_each(|consumption| consumption.counters.clear());
                }
                Bottleneck::Groups { pool: of, set } if *of == pool => {
                    consumption(device, set).for_each(|consumption| consumption.compatibility_groups = None);
                }
                Bottleneck::Capacity { capacity } if device.allow_multiple_allocations == Some(true) => {
                    device.capacity.iter_mut().filter_map(|all| all.get_mut(capacity)).for_each(widen);
                }
                Bottleneck::Counters { .. } | Bottleneck::Groups { .. } | Bottleneck::Capacity { .. } => {}
            }
        }
    }
    slice
}

fn consumption<'d>(device: &'d mut Device, set: &'d str) -> impl Iterator<Item = &'d mut DeviceCounterConsumption> {
    device.consumes_counters.iter_mut().flatten().filter(move |consumption| consumption.counter_set == set)
}

/// Makes a capacity practically unlimited, and gives it a default: a request that does not name the capacity would
/// consume all of it otherwise.
fn widen(capacity: &mut DeviceCapacity) {
    capacity.value = Quantity(PLENTY.to_string());
    capacity.request_policy.get_or_insert_default().default = Some(Quantity("0".to_owned()));
}
