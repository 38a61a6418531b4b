//! Terms over groups of devices: groups that are opened, and how evenly they are used.

use std::collections::BTreeMap;

use dra_attrs::{ListTypes, Scalar, ValueSet, lookup_by_name};
use smallvec::SmallVec;

use super::ground::Ground;
use super::measure::{Facts, Measure, sum_of_smallest, wide};
use super::partial::{Partial, Want};
use super::term::GroupBy;
use crate::search::device_set::DeviceSet;
use crate::search::ix::{ByDevice, DeviceIx, PoolIx, SetIx};
use crate::search::table::Table;

/// Number of a group.
type GroupIx = usize;

/// Groups that a device belongs to.
type Own = SmallVec<[GroupIx; 2]>;

/// Name of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'s> {
    Pool(PoolIx),
    Set(PoolIx, SetIx),
    Value(Scalar<'s>),
}

/// Groups of the devices of a node.
struct Groups {
    of: ByDevice<Own>,
    /// Number of uses of each group by held devices.
    uses: Vec<u64>,
}

impl Groups {
    fn new(ground: &Ground<'_, '_>, by: &GroupBy) -> Self {
        let table = ground.table;
        let mut numbers = BTreeMap::new();
        let mut of: ByDevice<Own> = table.candidates.all().into_iter().map(|_| Own::new()).collect();
        for device in &ground.reach {
            for key in keys(table, by, *device) {
                let next = numbers.len();
                of[*device].push(*numbers.entry(key).or_insert(next));
            }
        }
        let mut groups = Self { of, uses: vec![0; numbers.len()] };
        for device in &ground.reach {
            let uses = table.in_use(*device).map_or(0, |usage| wide(usage.uses()));
            for group in &groups.of[*device] {
                if let Some(known) = groups.uses.get_mut(*group) {
                    *known = known.saturating_add(uses);
                }
            }
        }
        groups
    }

    fn uses(&self, group: GroupIx) -> u64 {
        self.uses.get(group).copied().unwrap_or(0)
    }

    /// Returns the groups of the chosen devices with the number of devices of each, sorted.
    fn counts(&self, partial: &Partial<'_>) -> SmallVec<[(GroupIx, u64); 16]> {
        let mut groups: SmallVec<[GroupIx; 16]> =
            partial.chosen.iter().flat_map(|chosen| self.of[chosen.device].iter().copied()).collect();
        groups.sort_unstable();
        let mut counts: SmallVec<[(GroupIx, u64); 16]> = SmallVec::new();
        for group in groups {
            match counts.last_mut() {
                Some((last, count)) if *last == group => *count += 1,
                _ => counts.push((group, 1)),
            }
        }
        counts
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        facts.number(wide(self.of[device].len()));
        for group in &self.of[device] {
            facts.number(self.uses(*group));
            facts.label(wide(*group));
        }
    }
}

fn keys<'s>(table: &Table<'s>, by: &GroupBy, device: DeviceIx) -> Vec<Key<'s>> {
    let candidate = table.candidate(device);
    let mut keys: Vec<Key<'s>> = match by {
        GroupBy::Pool => vec![Key::Pool(candidate.pool)],
        GroupBy::CounterSet => {
            let consumption = table.consumption(device).unwrap_or_default();
            let consumed = consumption.iter().filter(|consumed| !consumed.amounts.is_empty());
            consumed.map(|consumed| Key::Set(candidate.pool, consumed.set)).collect()
        }
        GroupBy::Attribute(name) => {
            values(table, name, device).values().iter().map(|value| Key::Value(*value)).collect()
        }
    };
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the groups of a device in words, each after its pool if another pool may have one of the same name.
pub(super) fn names(table: &Table<'_>, by: &GroupBy, device: DeviceIx) -> Vec<(Option<PoolIx>, String)> {
    let candidate = table.candidate(device);
    match by {
        GroupBy::Pool => vec![(Some(candidate.pool), candidate.slice.spec.pool.name.clone())],
        GroupBy::CounterSet => {
            let consumed = candidate.device.consumes_counters.iter().flatten();
            consumed.map(|consumed| (Some(candidate.pool), consumed.counter_set.clone())).collect()
        }
        GroupBy::Attribute(name) => {
            values(table, name, device).values().iter().map(|value| (None, value.to_string())).collect()
        }
    }
}

/// Returns the values of a device's attribute. A list is the set of its items, whatever the gates: it is a fact about the
/// device.
pub(super) fn values<'s>(table: &Table<'s>, name: &str, device: DeviceIx) -> ValueSet<'s> {
    let candidate = table.candidate(device);
    let attributes = candidate.device.attributes.as_ref();
    let attribute = attributes.and_then(|all| lookup_by_name(all, name, &candidate.slice.spec.driver));
    ValueSet::from_attribute(attribute, ListTypes::Enabled)
}

/// Number of groups of new devices that no held device belongs to.
pub(super) struct Opened(Groups);

impl Opened {
    pub(super) fn new(ground: &Ground<'_, '_>, by: &GroupBy) -> Self {
        Self(Groups::new(ground, by))
    }
}

impl Measure for Opened {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let Self(groups) = self;
        let counts = groups.counts(partial);
        let is_open = |group: &GroupIx| {
            groups.uses(*group) > 0 || counts.binary_search_by_key(group, |(group, _)| *group).is_ok()
        };
        let opened = counts.iter().filter(|(group, _)| groups.uses(*group) == 0).count();
        // The first device of a request opens what it opens; those of several requests may open the same.
        let further = partial.wants.iter().map(|want| {
            let devices = want.options.iter().flat_map(|option| option.devices.iter());
            let opens = |device| groups.of[device].iter().filter(|group| !is_open(group)).count();
            devices.map(opens).min().unwrap_or(0)
        });
        wide(opened + further.max().unwrap_or(0))
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        self.0.tell(device, facts);
    }
}

/// Sum over groups of the square of the number of uses, after minus before.
pub(super) struct Spread(Groups);

impl Spread {
    pub(super) fn new(ground: &Ground<'_, '_>, by: &GroupBy) -> Self {
        Self(Groups::new(ground, by))
    }
}

impl Spread {
    /// Returns what some devices add at least: one after the other in the group where it adds the least, if each has one group
    /// at most; otherwise as much for each as the cheapest adds now.
    fn further(&self, devices: &DeviceSet, count: usize, uses: impl Fn(GroupIx) -> u64) -> u64 {
        let Self(groups) = self;
        let adds = |device: DeviceIx| {
            groups.of[device].iter().map(|group| grown(uses(*group), 1)).fold(0, u64::saturating_add)
        };
        if devices.iter().any(|device| groups.of[device].len() > 1) {
            let least = devices.iter().map(adds).min().unwrap_or(0);
            return least.saturating_mul(wide(count));
        }
        // Each group adds the odd numbers from twice its uses on, as often as it has devices.
        let mut own: BTreeMap<GroupIx, u64> = BTreeMap::new();
        let costs = devices.iter().map(|device| match groups.of[device].first() {
            None => 0,
            Some(group) => {
                let taken = own.entry(*group).or_default();
                *taken += 1;
                grown(uses(*group).saturating_add(*taken - 1), 1)
            }
        });
        sum_of_smallest(costs, count)
    }
}

/// Returns `(uses + count)² − uses²`.
const fn grown(uses: u64, count: u64) -> u64 {
    count.saturating_mul(uses.saturating_mul(2).saturating_add(count))
}

impl Measure for Spread {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let Self(groups) = self;
        let counts = groups.counts(partial);
        let uses = |group: GroupIx| {
            let found = counts.binary_search_by_key(&group, |(group, _)| *group).ok();
            let own = found.and_then(|at| counts.get(at)).map_or(0, |(_, count)| *count);
            groups.uses(group).saturating_add(own)
        };
        let so_far = counts.iter().map(|(group, count)| grown(groups.uses(*group), *count));
        let apart = partial.at_least(|open| self.further(&open.devices, open.missing, uses));
        // All requests together, as if each could get the devices of all.
        let mut options = partial.wants.iter().flat_map(|want| &want.options);
        let together = options.next().map_or(0, |first| {
            let mut devices = first.devices.clone();
            options.for_each(|open| devices.union(&open.devices));
            let missing = |want: &Want| want.options.iter().map(|open| open.missing).min().unwrap_or(0);
            self.further(&devices, partial.wants.iter().map(missing).sum(), uses)
        });
        so_far.fold(apart.max(together), u64::saturating_add)
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        self.0.tell(device, facts);
    }
}
