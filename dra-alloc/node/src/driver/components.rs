//! Components of a pool: counter sets that devices connect, with the devices. Before Kubernetes 1.35 a device had to be
//! in the slice of its counter sets.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{CounterSet, Device};

use crate::driver::layout::Item;
use crate::driver::limits::SliceLimits;
use crate::driver::plan_error::PlanError;

/// Sets of counter sets, joined by the devices that consume from both.
struct Joined(Vec<usize>);

impl Joined {
    /// Returns the representative of a counter set.
    fn find(&mut self, set: usize) -> usize {
        let mut root = set;
        while let Some(&parent) = self.0.get(root).filter(|parent| **parent != root) {
            root = parent;
        }
        let mut at = set;
        while at != root {
            let Some(parent) = self.0.get_mut(at) else { break };
            at = std::mem::replace(parent, root);
        }
        root
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        if let Some(parent) = self.0.get_mut(one.max(other)) {
            *parent = one.min(other);
        }
    }
}

/// Returns the components in the order of their first devices, then the counter sets that no device consumes from.
pub(super) fn components<'a>(
    devices: &'a [Device],
    sets: &'a [CounterSet],
    limits: &SliceLimits,
) -> Result<Vec<Item<'a>>, PlanError> {
    let numbers: BTreeMap<&str, usize> =
        sets.iter().enumerate().rev().map(|(number, set)| (set.name.as_str(), number)).collect();
    let mut joined = Joined((0..sets.len()).collect());
    let mut first_sets = Vec::with_capacity(devices.len());
    for device in devices {
        let mut first = None;
        for consumption in device.consumes_counters.iter().flatten() {
            let name = &consumption.counter_set;
            let number = numbers.get(name.as_str()).copied().ok_or_else(|| PlanError::CounterSetMissing {
                device: device.name.clone(),
                counter_set: name.clone(),
            })?;
            joined.join(*first.get_or_insert(number), number);
        }
        first_sets.push(first);
    }
    let mut items: Vec<Item<'a>> = Vec::new();
    let mut places = BTreeMap::new();
    for (device, first) in devices.iter().zip(first_sets) {
        match first {
            None => items.push(Item::single(device, limits)),
            Some(set) => place_of(joined.find(set), &mut places, &mut items).push(device, limits),
        }
    }
    for (number, set) in sets.iter().enumerate() {
        place_of(joined.find(number), &mut places, &mut items).push_set(set);
    }
    Ok(items)
}

/// Returns the item of a component, which is added if it is new.
fn place_of<'i, 'a>(
    root: usize,
    places: &mut BTreeMap<usize, usize>,
    items: &'i mut Vec<Item<'a>>,
) -> &'i mut Item<'a> {
    let place = *places.entry(root).or_insert(items.len());
    if place == items.len() {
        items.push(Item::default());
    }
    #[expect(clippy::indexing_slicing, reason = "an item was added if there was none")]
    &mut items[place]
}
