//! Kinds of devices, and groups of devices: what can be exchanged in every solution.
//!
//! A device meets others only through the values of constraints and through counter sets. Devices that are connected in
//! this way form a group, such as the devices of a rack. Within a group, devices of one kind can be exchanged; devices
//! without such a connection can be exchanged if their kinds are equal. Whole groups can be exchanged if they have the same
//! shape: the same kinds, with values and counters that differ by their names only.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Gate, Scalar};

use super::capacity_check::CapacityCheck;
use super::counters::Groups;
use super::device_set::DeviceSet;
use super::domains::Domains;
use super::ix::{ByColumn, ByDevice, ColumnIx, CounterIx, DeviceIx, PoolIx, SetIx};
use super::ordered::ordered_devices;
use super::request::Mode;
use super::risk::{Risk, Risks};
use super::table::{DevicesOfAll, Table};
use crate::cluster::inventory::pool_counters::Consumed;
use crate::cluster::state::DeviceUsage;

/// Number of a kind of devices in their groups.
pub(crate) type KindIx = usize;

/// Number of a value in its group.
pub(crate) type Label = u32;

/// Columns whose values some constraint compares with each other, as one number.
pub(super) type Space = usize;

/// A value of a column, as constraints compare it.
pub(crate) type Value<'s> = (Space, Scalar<'s>);

/// Devices that are connected by values or counters.
pub(crate) struct Group {
    /// Groups of one shape can be exchanged.
    pub(crate) shape: u32,
    /// Devices of each kind in the group.
    pub(crate) kinds: Vec<(KindIx, Vec<DeviceIx>)>,
    /// Counters of the group's sets, in the order of their labels.
    pub(crate) counters: Vec<(PoolIx, CounterIx)>,
    /// Counter sets, in the order of their labels.
    pub(crate) sets: Vec<(PoolIx, SetIx)>,
}

/// Kinds and groups of all devices that the search may come to.
pub(crate) struct Kinds<'s> {
    pub(crate) groups: Vec<Group>,
    /// For each value of a constraint: its group, and its number there.
    pub(crate) labels: BTreeMap<Value<'s>, (usize, Label)>,
    /// For each device: the set of the devices that can be exchanged with it.
    alike: ByDevice<usize>,
    sets: Vec<DeviceSet>,
    spaces: ByColumn<Space>,
    /// Names of compatibility groups, as numbers.
    names: BTreeMap<&'s str, u32>,
}

/// Properties of a device that are equal for all devices of a kind. Values, sets and counters are labels.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'s> {
    /// For each different domain: usable, and unsure.
    domains: Vec<(bool, bool)>,
    /// The device itself if it is not like any other.
    only: Option<DeviceIx>,
    /// For each column: labels of the values; `None` if no constraint compares the device there.
    values: Vec<Option<Vec<Label>>>,
    share: Option<Share>,
    consumption: Vec<Taken<'s>>,
}

/// Consumption from one counter set: the set, compatibility groups of the device, and amount by counter.
type Taken<'s> = (Label, &'s [String], Vec<(Label, i128)>);

/// Capacities of a device that can be shared: what is left of each, what each alternative takes, and whether the device
/// has shares of other claims.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    left: Vec<i128>,
    takes: Vec<Option<Vec<i128>>>,
    is_shared: bool,
}

impl<'s> Kinds<'s> {
    pub(crate) fn new(table: &Table<'s>, all: &DevicesOfAll, domains: &Domains<'s>, risks: &Risks) -> Self {
        let spaces = spaces(table);
        let reader = Reader::new(table, domains, &spaces, unlike_any(table, all, domains, risks));
        let mut kinds = Self {
            groups: Vec::new(),
            labels: BTreeMap::new(),
            alike: domains.devices.into_iter().map(|_| usize::MAX).collect(),
            sets: Vec::new(),
            names: reader.names(),
            spaces: ByColumn::default(),
        };
        let (mut known, mut shapes, mut alike) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for members in reader.groups() {
            kinds.add(&reader, members, &mut known, &mut shapes, &mut alike);
        }
        kinds.spaces = spaces;
        kinds
    }

    /// Returns the devices that can be exchanged with a device, itself included, as long as nothing is chosen.
    pub(crate) fn alike(&self, device: DeviceIx) -> Option<&DeviceSet> {
        self.sets.get(self.alike[device])
    }

    pub(crate) fn space(&self, column: ColumnIx) -> Space {
        self.spaces[column]
    }

    fn add<'r>(
        &mut self,
        reader: &Reader<'r, 's>,
        mut members: Vec<DeviceIx>,
        known: &mut BTreeMap<Kind<'s>, KindIx>,
        shapes: &mut BTreeMap<Shape, u32>,
        alike: &mut BTreeMap<(KindIx, usize), usize>,
    ) {
        let number = self.groups.len();
        members.sort_by_cached_key(|device| (reader.in_domains(*device), *device));
        let (mut values, mut sets, mut counters) = (Labels::default(), Labels::default(), Labels::default());
        let mut kinds: BTreeMap<KindIx, Vec<DeviceIx>> = BTreeMap::new();
        let mut shape = Shape::default();
        for device in members {
            let kind = reader.kind(device, &mut values, &mut sets, &mut counters);
            let is_single = kind.values.iter().flatten().all(Vec::is_empty) && kind.consumption.is_empty();
            let next = known.len();
            let kind = *known.entry(kind).or_insert(next);
            let place = (kind, if is_single { usize::MAX } else { number });
            let set = *alike.entry(place).or_insert(self.sets.len());
            if set == self.sets.len() {
                self.sets.push(DeviceSet::new(reader.domains.devices.end));
            }
            if let Some(set) = self.sets.get_mut(set) {
                set.insert(device);
            }
            self.alike[device] = set;
            kinds.entry(kind).or_default().push(device);
            shape.kinds.push(kind);
        }
        for (pool, counter) in &counters.order {
            let left = reader.table.counters(*pool).ok().and_then(|all| all.left(*counter));
            shape.left.push(left.unwrap_or_default());
        }
        for (pool, set) in &sets.order {
            let groups = reader.table.counters(*pool).map_or(Groups::Unused, |all| all.groups(*set));
            shape.groups.push(self.words_of(&groups));
        }
        shape.kinds.sort_unstable();
        let next = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
        let shape = *shapes.entry(shape).or_insert(next);
        self.labels.extend(values.order.into_iter().zip(0..).map(|(value, label)| (value, (number, label))));
        let kinds = kinds.into_iter().collect();
        self.groups.push(Group { shape, kinds, counters: counters.order, sets: sets.order });
    }

    /// Returns compatibility groups as numbers. Names that no device has have no effect.
    pub(crate) fn words_of(&self, groups: &Groups<'_>) -> Vec<u32> {
        let Groups::Common(names) = groups else { return vec![u32::from(matches!(groups, Groups::Without))] };
        let mut words: Vec<u32> = names.iter().filter_map(|name| self.names.get(name).copied()).collect();
        words.sort_unstable();
        words.insert(0, u32::try_from(words.len() + 2).unwrap_or(u32::MAX));
        words
    }
}

/// Properties that groups which can be exchanged have in common.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    kinds: Vec<KindIx>,
    left: Vec<i128>,
    groups: Vec<Vec<u32>>,
}

/// Numbers for things, in the order in which they are first seen.
struct Labels<T> {
    order: Vec<T>,
    known: BTreeMap<T, Label>,
}

impl<T> Default for Labels<T> {
    fn default() -> Self {
        Self { order: Vec::new(), known: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> Labels<T> {
    fn of(&mut self, thing: T) -> Label {
        let next = Label::try_from(self.order.len()).unwrap_or(Label::MAX);
        let label = *self.known.entry(thing).or_insert(next);
        if label == next {
            self.order.push(thing);
        }
        label
    }
}

/// Reads what kinds and groups are made of.
struct Reader<'r, 's> {
    table: &'r Table<'s>,
    domains: &'r Domains<'s>,
    spaces: &'r ByColumn<Space>,
    /// Different domains of alternatives: usable and unsure devices.
    different: BTreeSet<(&'r DeviceSet, &'r DeviceSet)>,
    /// For each column: the devices whose values some constraint may see.
    seen: ByColumn<DeviceSet>,
    /// Devices that are like no other.
    only: DeviceSet,
}

impl<'r, 's> Reader<'r, 's> {
    fn new(table: &'r Table<'s>, domains: &'r Domains<'s>, spaces: &'r ByColumn<Space>, only: DeviceSet) -> Self {
        let none = |_| DeviceSet::new(domains.devices.end);
        let mut seen: ByColumn<DeviceSet> = table.plan.columns.range().into_iter().map(none).collect();
        for (alternative, asked) in table.plan.alternatives.enumerate() {
            asked.constraints.iter().for_each(|(_, column)| seen[*column].union(&domains.reachable(alternative)));
        }
        let different = domains.usable.iter().zip(&domains.unsure).collect();
        Self { table, domains, spaces, different, seen, only }
    }

    fn in_domains(&self, device: DeviceIx) -> Vec<(bool, bool)> {
        self.different.iter().map(|(usable, unsure)| (usable.contains(device), unsure.contains(device))).collect()
    }

    /// Returns the values of a device under the constraints that may see it.
    fn values(&self, device: DeviceIx) -> impl Iterator<Item = Option<Vec<Value<'s>>>> {
        self.table.plan.columns.range().into_iter().map(move |column| {
            let values = self.table.values(column, device).ok().filter(|_| self.seen[column].contains(device))?;
            Some(values.values().iter().map(|value| (self.spaces[column], *value)).collect())
        })
    }

    fn consumption(&self, device: DeviceIx) -> (PoolIx, &'s [Consumed]) {
        let candidate = self.table.candidate(device);
        let consumption = if candidate.consumes_counters() && self.table.has(Gate::PartitionableDevices) {
            self.table.consumption(device).unwrap_or_default()
        } else {
            &[]
        };
        (candidate.pool, consumption)
    }

    /// Returns the names of the compatibility groups of all devices, as numbers.
    fn names(&self) -> BTreeMap<&'s str, u32> {
        let devices = self.different.iter().flat_map(|(usable, unsure)| usable.iter().chain(unsure.iter()));
        let groups = devices.flat_map(|device| self.consumption(device).1).flat_map(|consumed| &consumed.groups);
        let mut names = BTreeMap::new();
        for name in groups {
            let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
            names.entry(name.as_str()).or_insert(next);
        }
        names
    }

    /// Returns the devices of each group.
    fn groups(&self) -> Vec<Vec<DeviceIx>> {
        let mut reached = DeviceSet::new(self.domains.devices.end);
        self.domains.usable.iter().chain(&self.domains.unsure).for_each(|set| reached.union(set));
        let mut parents: ByDevice<DeviceIx> = self.domains.devices.into_iter().collect();
        let mut by_value: BTreeMap<Value<'s>, DeviceIx> = BTreeMap::new();
        let mut by_set: BTreeMap<(PoolIx, SetIx), DeviceIx> = BTreeMap::new();
        for device in reached.iter() {
            for value in self.values(device).flatten().flatten() {
                join(&mut parents, *by_value.entry(value).or_insert(device), device);
            }
            let (pool, consumption) = self.consumption(device);
            for consumed in consumption {
                join(&mut parents, *by_set.entry((pool, consumed.set)).or_insert(device), device);
            }
        }
        let mut groups: BTreeMap<DeviceIx, Vec<DeviceIx>> = BTreeMap::new();
        for device in reached.iter() {
            groups.entry(root(&mut parents, device)).or_default().push(device);
        }
        groups.into_values().collect()
    }

    fn kind(
        &self,
        device: DeviceIx,
        values: &mut Labels<Value<'s>>,
        sets: &mut Labels<(PoolIx, SetIx)>,
        counters: &mut Labels<(PoolIx, CounterIx)>,
    ) -> Kind<'s> {
        let labels = |seen: Vec<Value<'s>>| seen.into_iter().map(|value| values.of(value)).collect::<Vec<_>>();
        let values = self.values(device).map({
            let mut labels = labels;
            move |seen| seen.map(&mut labels)
        });
        let values = values.collect();
        let (pool, consumption) = self.consumption(device);
        let consumption = consumption.iter().map(|consumed| {
            let amounts = consumed.amounts.iter().map(|(counter, amount)| (counters.of((pool, *counter)), *amount));
            (sets.of((pool, consumed.set)), &*consumed.groups, amounts.collect())
        });
        Kind {
            domains: self.in_domains(device),
            only: self.only.contains(device).then_some(device),
            values,
            consumption: consumption.collect(),
            share: self.share(device),
        }
    }

    fn share(&self, device: DeviceIx) -> Option<Share> {
        let in_use = self.table.in_use(device);
        if !self.table.is_shareable(device) {
            return None;
        }
        let capacities = self.table.capacities(device).unwrap_or_default();
        let left = capacities.iter().map(|capacity| {
            capacity.value().nanos().saturating_sub(self.table.consumed(device, capacity.name).nanos())
        });
        let questions = self.domains.questions.enumerate().filter(|(alternative, question)| alternative == *question);
        let takes = questions.map(|(alternative, _)| match self.table.fit(alternative, device) {
            Ok(CapacityCheck::Takes(amounts)) => Some(amounts.iter().map(|amount| amount.quantity.nanos()).collect()),
            _ => None,
        });
        Some(Share {
            left: left.collect(),
            takes: takes.collect(),
            is_shared: in_use.is_some_and(DeviceUsage::is_shared),
        })
    }
}

/// Returns the devices that are like no other: those on which a check may fail, those of a risky request for all devices,
/// which is placed in the order of the devices, and those whose order counts.
fn unlike_any(table: &Table<'_>, all: &DevicesOfAll, domains: &Domains<'_>, risks: &Risks) -> DeviceSet {
    let mut only = DeviceSet::new(domains.devices.end);
    domains.unsure.iter().for_each(|unsure| only.union(unsure));
    for (alternative, asked) in table.plan.alternatives.enumerate() {
        if asked.mode == Mode::All && risks[alternative] != Risk::None {
            all.at(alternative).into_iter().flatten().for_each(|device| only.insert(*device));
        }
    }
    only.union(&ordered_devices(table, all, domains));
    only
}

/// Numbers the columns so that columns of one constraint have one number.
pub(super) fn spaces(table: &Table<'_>) -> ByColumn<Space> {
    let mut spaces: ByColumn<Space> = table.plan.columns.range().into_iter().map(usize::from).collect();
    let mut first: BTreeMap<_, ColumnIx> = BTreeMap::new();
    for asked in &table.plan.alternatives {
        for (constraint, column) in &asked.constraints {
            let known = *first.entry((asked.claim, *constraint)).or_insert(*column);
            let (keep, replace) = (spaces[known], spaces[*column]);
            spaces.iter_mut().filter(|space| **space == replace).for_each(|space| *space = keep);
        }
    }
    spaces
}

fn root(parents: &mut ByDevice<DeviceIx>, device: DeviceIx) -> DeviceIx {
    let mut at = device;
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

fn join(parents: &mut ByDevice<DeviceIx>, left: DeviceIx, right: DeviceIx) {
    let (left, right) = (root(parents, left), root(parents, right));
    parents[left.max(right)] = left.min(right);
}
