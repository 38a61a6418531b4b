//! Exchanges under which every solution stays a solution and keeps its value: of equal devices, and of whole parts of the node
//! that are equal, such as cards with their partitions.
//!
//! A branch is left out if each of its solutions has such an image that comes earlier in the order of the search. So the first
//! of the best solutions is never left out.

use std::collections::BTreeMap;

use dra_attrs::Scalar;

use super::ground::Ground;
use super::measure::{Facts, Measure, wide};
use crate::search::device_set::DeviceSet;
use crate::search::ix::{ByDevice, ColumnIx, DeviceIx};
use crate::search::partial_assignment::Chosen;

/// A label joins the devices that have it to one part if they are at most this part of all devices: a switch does, a NUMA node
/// of half the machine does not.
const JOINING: usize = 3;
/// Largest number of equal parts that are compared with what was chosen.
const MOST_COMPARED: usize = 64;

/// Exchanges of devices and of parts.
pub(super) struct Alike {
    /// Sets of devices that can be exchanged with each other.
    sets: Vec<DeviceSet>,
    set_of: ByDevice<usize>,
    /// Parts of the node, each with its devices in their order.
    parts: Vec<Vec<DeviceIx>>,
    /// Part of each device, and its place there.
    part_of: ByDevice<(usize, usize)>,
    /// Parts that can be exchanged with each other, in their order.
    equal: Vec<Vec<usize>>,
    /// Number of the equal parts that each part belongs to.
    equal_of: Vec<usize>,
}

impl Alike {
    /// Compares all that a solution, its value and its results may depend on. Devices that are in use or can be shared are like
    /// no other; so are those of a request whose devices come in an order that counts, and all if a request has admin access, which
    /// may get what others have.
    pub(super) fn new(ground: &Ground<'_, '_>, measures: &[&dyn Measure]) -> Self {
        let mut reader = Reader::new(ground);
        let facts: ByDevice<Facts> =
            ground.table.candidates.all().into_iter().map(|device| reader.facts(device, measures)).collect();
        let (mut numbers, mut set_of) = (BTreeMap::new(), ByDevice::default());
        for facts in &facts {
            let next = numbers.len();
            set_of.push(*numbers.entry(facts).or_insert(next));
        }
        let mut sets = vec![DeviceSet::new(facts.end()); numbers.len()];
        for (device, set) in set_of.enumerate() {
            if let Some(set) = sets.get_mut(*set) {
                set.insert(device);
            }
        }
        let parts = parts(&facts);
        let mut part_of: ByDevice<(usize, usize)> = facts.iter().map(|_| (0, 0)).collect();
        for (number, part) in parts.iter().enumerate() {
            part.iter().enumerate().for_each(|(place, device)| part_of[*device] = (number, place));
        }
        let (equal, equal_of) = equal(&facts, &parts, &part_of);
        Self { sets, set_of, parts, part_of, equal, equal_of }
    }

    /// Removes a device, and those that can be exchanged with it.
    pub(super) fn remove(&self, device: DeviceIx, from: &mut DeviceSet) {
        from.remove(device);
        if let Some(alike) = self.sets.get(self.set_of[device]) {
            from.subtract(alike);
        }
    }

    /// Returns true if the solutions with one more device have images with an earlier one: nothing is chosen of its part, nor of
    /// an equal part before.
    pub(super) fn is_repeated(&self, device: DeviceIx, chosen: &[Chosen]) -> bool {
        let (own, place) = self.part_of[device];
        let is_untouched = |part: usize| chosen.iter().all(|chosen| self.part_of[chosen.device].0 != part);
        let equal =
            self.equal_of.get(own).and_then(|equal| self.equal.get(*equal)).map(Vec::as_slice).unwrap_or_default();
        let earlier = equal.iter().take_while(|part| **part < own).take(MOST_COMPARED);
        let is_before = |part: &usize| {
            self.parts.get(*part).and_then(|devices| devices.get(place)).is_some_and(|image| *image < device)
        };
        let mut images = earlier.filter(|part| is_before(part) && is_untouched(**part));
        images.next().is_some() && is_untouched(own)
    }
}

/// Joins the devices that have labels in common which few others have.
fn parts(facts: &ByDevice<Facts>) -> Vec<Vec<DeviceIx>> {
    let mut holders: BTreeMap<(usize, u64), Vec<DeviceIx>> = BTreeMap::new();
    for (device, facts) in facts.enumerate() {
        for label in facts.iter().filter(|(space, _)| *space > 0) {
            holders.entry(label).or_default().push(device);
        }
    }
    let mut roots: ByDevice<DeviceIx> = facts.range().into_iter().collect();
    for devices in holders.values().filter(|devices| devices.len().saturating_mul(JOINING) <= facts.len()) {
        for pair in devices.windows(2) {
            if let [left, right] = *pair {
                let (left, right) = (root(&mut roots, left), root(&mut roots, right));
                roots[left.max(right)] = left.min(right);
            }
        }
    }
    let mut parts: BTreeMap<DeviceIx, Vec<DeviceIx>> = BTreeMap::new();
    for device in facts.range() {
        parts.entry(root(&mut roots, device)).or_default().push(device);
    }
    parts.into_values().collect()
}

fn root(roots: &mut ByDevice<DeviceIx>, device: DeviceIx) -> DeviceIx {
    let mut at = device;
    while roots[at] != at {
        roots[at] = roots[roots[at]];
        at = roots[at];
    }
    at
}

/// Returns the parts that are equal but for the labels that no other part has, and for each part the number of its equals.
fn equal(
    facts: &ByDevice<Facts>,
    parts: &[Vec<DeviceIx>],
    part_of: &ByDevice<(usize, usize)>,
) -> (Vec<Vec<usize>>, Vec<usize>) {
    // The part that a label belongs to alone.
    let mut owners: BTreeMap<(usize, u64), Option<usize>> = BTreeMap::new();
    for (device, facts) in facts.enumerate() {
        let (part, _) = part_of[device];
        for label in facts.iter().filter(|(space, _)| *space > 0) {
            let owner = owners.entry(label).or_insert(Some(part));
            *owner = owner.filter(|owner| *owner == part);
        }
    }
    let mut known: BTreeMap<Vec<(usize, u64)>, usize> = BTreeMap::new();
    let mut equal: Vec<Vec<usize>> = Vec::new();
    let equal_of = parts.iter().enumerate().map(|(number, part)| {
        let mut own = BTreeMap::new();
        let mut form = Vec::new();
        for facts in part.iter().map(|device| &facts[*device]) {
            form.push((usize::MAX, 0));
            form.extend(facts.iter().map(|(space, fact)| {
                if space == 0 || owners.get(&(space, fact)) != Some(&Some(number)) {
                    return (space, fact);
                }
                let next = wide(own.len());
                // Labels that no other part has are named by the order in which they come.
                (usize::MAX - space, *own.entry((space, fact)).or_insert(next))
            }));
        }
        let place = *known.entry(form).or_insert(equal.len());
        match equal.get_mut(place) {
            Some(others) => others.push(number),
            None => equal.push(vec![number]),
        }
        place
    });
    let equal_of = equal_of.collect();
    (equal, equal_of)
}

pub(super) struct Reader<'g, 't, 's> {
    ground: &'g Ground<'t, 's>,
    values: BTreeMap<(ColumnIx, Scalar<'s>), u64>,
    /// Numbers of slices, by driver, pool and name.
    slices: BTreeMap<[&'s str; 3], u64>,
}

impl<'g, 't, 's> Reader<'g, 't, 's> {
    pub(super) const fn new(ground: &'g Ground<'t, 's>) -> Self {
        Self { ground, values: BTreeMap::new(), slices: BTreeMap::new() }
    }

    pub(super) fn facts(&mut self, device: DeviceIx, measures: &[&dyn Measure]) -> Facts {
        let mut facts = Facts::default();
        let table = self.ground.table;
        let has_groups =
            || table.consumption(device).unwrap_or_default().iter().any(|consumed| !consumed.groups.is_empty());
        let counts_in_order = self.ground.ordered.contains(device);
        let is_used = || table.is_shareable(device) || table.in_use(device).is_some();
        if self.ground.has_admin || counts_in_order || is_used() || has_groups() {
            facts.number(wide(usize::from(device)));
        }
        self.ground.usable.iter().for_each(|usable| facts.number(u64::from(usable.contains(device))));
        facts.number(self.slice(device));
        self.tell_values(device, &mut facts);
        self.tell_counters(device, &mut facts);
        for measure in measures {
            facts.begin_space();
            measure.tell(device, &mut facts);
        }
        facts
    }

    /// Returns true if the slice of a device decides about more than its devices: nodes, or node operations.
    pub(super) fn is_of_special_slice(&self, device: DeviceIx) -> bool {
        let spec = &self.ground.table.candidate(device).slice.spec;
        spec.node_name.is_none() || spec.skip_node_operations.is_some()
    }

    /// Returns the number of a slice if it is a special one.
    fn slice(&mut self, device: DeviceIx) -> u64 {
        if !self.is_of_special_slice(device) {
            return 0;
        }
        let slice = self.ground.table.candidate(device).slice;
        let spec = &slice.spec;
        let next = wide(self.slices.len()) + 1;
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        *self.slices.entry([&spec.driver, &spec.pool.name, name]).or_insert(next)
    }

    /// Adds the values that constraints compare.
    fn tell_values(&mut self, device: DeviceIx, facts: &mut Facts) {
        let table = self.ground.table;
        facts.begin_space();
        for column in table.plan.columns.range() {
            // A device without a usable value is like no other: it may be one that a constraint takes unseen.
            let Some(own) = table.values(column, device).ok().filter(|own| !own.values().is_empty()) else {
                facts.number(u64::MAX);
                facts.number(wide(usize::from(device)));
                continue;
            };
            facts.number(wide(own.values().len()));
            for value in own.values() {
                let next = wide(self.values.len());
                facts.label(*self.values.entry((column, *value)).or_insert(next));
            }
        }
    }

    /// Adds counters, each with the amounts that are left and consumed.
    fn tell_counters(&self, device: DeviceIx, facts: &mut Facts) {
        let table = self.ground.table;
        let pool = table.candidate(device).pool;
        let consumption = table.consumption(device).unwrap_or_default();
        facts.number(wide(consumption.len()));
        let Ok(counters) = table.counters(pool) else { return };
        let name = |number: usize| (wide(usize::from(pool)) << 32) | wide(number);
        // Sets and counters of all pools.
        facts.begin_space();
        let (sets, amounts) = (name, |number: usize| name(number) | (1 << 31));
        for consumed in consumption {
            facts.label(sets(consumed.set.into()));
            facts.number(wide(consumed.amounts.len()));
            for (counter, amount) in &consumed.amounts {
                facts.label(amounts((*counter).into()));
                let left = counters.left(*counter).unwrap_or_default();
                facts.amount(*amount);
                facts.amount(left);
            }
        }
    }
}
