//! What devices share, and keeps them from being used together although each one could be: counters, compatibility
//! groups, shares of a capacity.
//!
//! Found like the conflict itself, by leaving out one after the other. A bottleneck is left out by changing the slices:
//! the devices then consume nothing of a counter set, or there is plenty of a capacity. What is named has been seen to
//! matter; a question that is not answered names nothing.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{Device, DeviceCapacity, DeviceCounterConsumption, ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Bottleneck;
use super::conflict::Questions;
use crate::inventory::Inventory;
use crate::inventory::pool::{Pool, PoolState};
use crate::search::Table;

/// More than the requests of a call can use up.
const PLENTY: i64 = i64::MAX;

/// The bottlenecks of claims that are a conflict, if devices are not what is missing.
pub(super) fn bottlenecks(
    questions: &mut Questions<'_>,
    claims: &[ResourceClaim],
    table: &Table<'_>,
    usable: &BTreeSet<usize>,
) -> Vec<Bottleneck> {
    let all: BTreeSet<Bottleneck> = usable.iter().flat_map(|device| of_device(table, *device)).collect();
    let pools = table.candidates.pools();
    let mut is_possible_without = |left_out: &BTreeSet<Bottleneck>| {
        if !questions.may_ask() {
            return false;
        }
        let inventory = without(pools, left_out, table.allocator.inventory);
        let mut allocator = table.allocator.clone();
        allocator.inventory = &inventory;
        questions.is_possible(&allocator, claims) == Some(true)
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

/// What a device may have to share.
fn of_device(table: &Table<'_>, device: usize) -> Vec<Bottleneck> {
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

/// An index of pools where some bottlenecks are none.
fn without(pools: &[Pool], left_out: &BTreeSet<Bottleneck>, inventory: &Inventory) -> Inventory {
    let complete = pools.iter().filter(|pool| pool.state() == PoolState::Complete);
    let slices = complete.flat_map(|pool| pool.all_slices().chain(pool.counter_slices()));
    let slices: Vec<ResourceSlice> = slices.cloned().map(|slice| widened(slice, left_out)).collect();
    Inventory::new(slices, inventory.taint_rules().cloned().map(Into::into))
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

/// Without a default, a request that does not name the capacity would take all of it, however much that is.
fn widen(capacity: &mut DeviceCapacity) {
    capacity.value = Quantity(PLENTY.to_string());
    capacity.request_policy.get_or_insert_default().default = Some(Quantity("0".to_owned()));
}
