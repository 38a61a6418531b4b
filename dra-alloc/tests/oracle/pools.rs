//! Pools that a node sees, with their devices.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::Gate;
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};

use super::{Case, Failure, nodes};

/// State of a pool: whether its devices can be allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ready,
    Incomplete,
    Invalid(String),
}

/// Pool as one node sees it.
#[derive(Clone, Debug)]
pub struct Pool<'a> {
    pub driver: &'a str,
    pub name: &'a str,
    pub status: Status,
    /// Slices with devices for this node, by name; none unless the pool is ready.
    pub slices: Vec<&'a ResourceSlice>,
    /// Slices with devices for other nodes, which may consume the same counters.
    pub elsewhere: Vec<&'a ResourceSlice>,
    pub counter_sets: Vec<&'a CounterSet>,
}

pub fn devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

fn counter_sets(slice: &ResourceSlice) -> &[CounterSet] {
    slice.spec.shared_counters.as_deref().unwrap_or_default()
}

fn slice_name(slice: &ResourceSlice) -> &str {
    slice.metadata.name.as_deref().unwrap_or_default()
}

fn target(slice: &ResourceSlice) -> &str {
    slice.spec.node_name.as_deref().unwrap_or_default()
}

fn uses_binding_conditions(pool: &Pool<'_>) -> bool {
    pool.slices.iter().flat_map(|slice| devices(slice)).any(|device| device.binding_conditions.is_some())
}

/// Returns the pools of the case's node: those without binding conditions first, then by driver and name.
pub fn gather(case: &Case) -> Result<Vec<Pool<'_>>, Failure> {
    let here = nodes::name(&case.node);
    let local = case.slices.iter().filter(|slice| !target(slice).is_empty() && target(slice) == here);
    let shared = case.slices.iter().filter(|slice| target(slice).is_empty());
    let mut by_pool: BTreeMap<(&str, &str), Vec<&ResourceSlice>> = BTreeMap::new();
    for slice in local.chain(shared) {
        if is_relevant(case, slice)? {
            by_pool.entry((&slice.spec.driver, &slice.spec.pool.name)).or_default().push(slice);
        }
    }
    let mut pools: Vec<Pool<'_>> =
        by_pool.into_iter().filter_map(|((driver, name), slices)| pool(case, driver, name, slices)).collect();
    pools.sort_by_key(|pool| (uses_binding_conditions(pool), pool.driver, pool.name));
    Ok(pools)
}

fn is_relevant(case: &Case, slice: &ResourceSlice) -> Result<bool, Failure> {
    let spec = &slice.spec;
    let partitions = spec.per_device_node_selection.is_some() || !counter_sets(slice).is_empty();
    if partitions && !case.has(Gate::PartitionableDevices) {
        return Ok(false);
    }
    let failed = |reason| Failure::Fatal(format!("node selection for slice {}: {reason}", slice_name(slice)));
    if !target(slice).is_empty() || spec.all_nodes == Some(true) || spec.node_selector.is_some() {
        let (name, all, selector) = (spec.node_name.as_deref(), spec.all_nodes, spec.node_selector.as_ref());
        return nodes::matches(&case.node, name, all, selector).map_err(failed);
    }
    if spec.per_device_node_selection == Some(true) {
        for device in devices(slice) {
            if device_matches_node(case, device).map_err(failed)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns true if a device of a slice with per-device node selection is for the node.
pub fn device_matches_node(case: &Case, device: &Device) -> Result<bool, String> {
    nodes::matches(&case.node, device.node_name.as_deref(), device.all_nodes, device.node_selector.as_ref())
}

/// Returns the pool made of these slices and, if they are incomplete, of those for other nodes; `None` if it is
/// obsolete.
fn pool<'a>(case: &'a Case, driver: &'a str, name: &'a str, seen: Vec<&'a ResourceSlice>) -> Option<Pool<'a>> {
    let newest = seen.iter().map(|slice| slice.spec.pool.generation).max()?;
    let kept: Vec<_> = seen.into_iter().filter(|slice| slice.spec.pool.generation == newest).collect();
    let expected = kept.first()?.spec.pool.resource_slice_count;
    let is_complete = |count: usize| i64::try_from(count) == Ok(expected);

    let mut others = Vec::new();
    if !is_complete(kept.len()) {
        let whole: Vec<_> =
            case.slices.iter().filter(|slice| slice.spec.driver == driver && slice.spec.pool.name == name).collect();
        if whole.iter().any(|slice| slice.spec.pool.generation > newest) {
            return None;
        }
        let same: Vec<_> = whole.into_iter().filter(|slice| slice.spec.pool.generation == newest).collect();
        if !is_complete(same.len()) {
            return Some(without_devices(driver, name, Status::Incomplete));
        }
        others.extend(same.into_iter().filter(|slice| !kept.iter().any(|seen| std::ptr::eq(*seen, *slice))));
    }
    Some(complete(case, driver, name, kept, others))
}

fn without_devices<'a>(driver: &'a str, name: &'a str, status: Status) -> Pool<'a> {
    Pool { driver, name, status, slices: Vec::new(), elsewhere: Vec::new(), counter_sets: Vec::new() }
}

fn complete<'a>(
    case: &Case,
    driver: &'a str,
    name: &'a str,
    mut kept: Vec<&'a ResourceSlice>,
    others: Vec<&'a ResourceSlice>,
) -> Pool<'a> {
    kept.sort_by_key(|slice| slice_name(slice));
    let partitions = case.has(Gate::PartitionableDevices);
    let has_devices = |slice: &&ResourceSlice| !partitions || counter_sets(slice).is_empty();
    let slices: Vec<_> = kept.iter().copied().filter(has_devices).collect();
    let elsewhere: Vec<_> = others.iter().copied().filter(has_devices).collect();
    let sets: Vec<_> = kept.into_iter().chain(others).flat_map(counter_sets).collect();
    let pool = Pool { driver, name, status: Status::Ready, slices, elsewhere, counter_sets: sets };
    match first_defect(&pool, partitions) {
        Some(reason) => without_devices(driver, name, Status::Invalid(reason)),
        None => pool,
    }
}

fn first_defect(pool: &Pool<'_>, partitions: bool) -> Option<String> {
    let names = pool.slices.iter().flat_map(|slice| devices(slice)).map(|device| device.name.as_str());
    if let Some(name) = first_repeated(names) {
        return Some(format!("duplicate device name {name}"));
    }
    if !partitions {
        return None;
    }
    if let Some(name) = first_repeated(pool.counter_sets.iter().map(|set| set.name.as_str())) {
        return Some(format!("duplicate counter set name {name}"));
    }
    let all = pool.slices.iter().chain(&pool.elsewhere).flat_map(|slice| devices(slice));
    for consumption in all.flat_map(|device| device.consumes_counters.as_deref().unwrap_or_default()) {
        let Some(set) = pool.counter_sets.iter().find(|set| set.name == consumption.counter_set) else {
            return Some(format!("counter set {} not found", consumption.counter_set));
        };
        if let Some(name) = consumption.counters.keys().find(|name| !set.counters.contains_key(*name)) {
            return Some(format!("counter {name} not found in counter set {}", set.name));
        }
    }
    None
}

fn first_repeated<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}
