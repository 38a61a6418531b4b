//! Units: pods that move together, since they share a claim.

use std::collections::BTreeMap;

use dra_device::DeviceId;
use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::Pod;

use super::move_rules::MoveRules;
use crate::autoscaler::{Mover, claims_of, devices_of, ends_with_its_node};
use crate::pods::{ClaimLookup, ClaimTracker};

/// Pods that move together.
#[derive(Clone)]
pub(super) struct Unit<'u> {
    pub(super) pods: Vec<Mover<'u>>,
    /// Devices that their claims hold.
    pub(super) devices: Vec<DeviceId>,
    pub(super) cost: u64,
    /// Cost of evicting the pods without another place; `None` if that is not allowed.
    pub(super) eviction_cost: Option<u64>,
    pub(super) highest_priority: i32,
    pub(super) is_movable: bool,
}

impl Unit<'_> {
    pub(super) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().map(|mover| mover.pod)
    }
}

/// Joins pods that share an allocated claim. Pods of daemon sets, and those that end, are left out.
pub(super) fn units<'u>(
    movers: impl IntoIterator<Item = Mover<'u>>,
    tracker: &ClaimTracker,
    rules: &MoveRules<'_>,
) -> Vec<Unit<'u>> {
    all_units(movers.into_iter().filter(|mover| !ends_with_its_node(mover.pod)), tracker, rules)
}

/// Joins pods that share an allocated claim. A unit with a pod of a daemon set, or with one that ends, is not movable.
pub(super) fn all_units<'u>(
    movers: impl IntoIterator<Item = Mover<'u>>,
    tracker: &ClaimTracker,
    rules: &MoveRules<'_>,
) -> Vec<Unit<'u>> {
    let mut unit_of: BTreeMap<ClaimKey, usize> = BTreeMap::new();
    let mut joined: Vec<Vec<Mover<'_>>> = Vec::new();
    for mover in movers {
        let keys: Vec<ClaimKey> = claims_of(mover.pod)
            .map(|named| named.claim)
            .filter(|key| tracker.claim(&key.namespace, &key.name).is_some())
            .collect();
        let known: Vec<usize> = keys.iter().filter_map(|key| unit_of.get(key).copied()).collect();
        let unit = known.first().copied().unwrap_or(joined.len());
        if unit == joined.len() {
            joined.push(Vec::new());
        }
        for other in known.into_iter().filter(|other| *other != unit) {
            let moved = joined.get_mut(other).map(std::mem::take).unwrap_or_default();
            unit_of.values_mut().filter(|position| **position == other).for_each(|position| *position = unit);
            joined.get_mut(unit).into_iter().for_each(|pods| pods.extend(&moved));
        }
        unit_of.extend(keys.into_iter().map(|key| (key, unit)));
        joined.get_mut(unit).into_iter().for_each(|pods| pods.push(mover));
    }
    let filled = joined.into_iter().filter(|pods| !pods.is_empty());
    filled.map(|pods| unit(pods, tracker, rules)).collect()
}

fn unit<'u>(pods: Vec<Mover<'u>>, tracker: &ClaimTracker, rules: &MoveRules<'_>) -> Unit<'u> {
    let mut devices: Vec<DeviceId> = pods.iter().flat_map(|mover| devices_of(tracker, mover.pod)).collect();
    devices.sort_unstable();
    devices.dedup();
    let objects = || pods.iter().map(|mover| mover.pod);
    let cost = match pods.as_slice() {
        [mover] => rules.cost(mover.pod, devices.len()),
        _ => objects().map(|pod| rules.cost(pod, devices_of(tracker, pod).len())).fold(0, u64::saturating_add),
    };
    let is_pinned = objects().any(|pod| rules.is_pinned(pod) || ends_with_its_node(pod));
    let is_movable = !is_pinned && rules.exceeded(objects()).is_empty();
    let evictions: Option<Vec<u64>> = objects().map(|pod| rules.eviction_cost(pod)).collect();
    Unit {
        cost,
        eviction_cost: evictions.filter(|_| is_movable).map(|costs| costs.into_iter().fold(0, u64::saturating_add)),
        highest_priority: objects().map(priority_of).max().unwrap_or_default(),
        is_movable,
        devices,
        pods,
    }
}

/// Returns the priority of a pod.
pub(super) fn priority_of(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}

/// Returns the name of the node of a pod; empty if it waits for one.
pub(super) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}
