//! Counters that the devices of a pool share, and compatibility groups among their consumers (KEP-4815, KEP-5963).
//!
//! A partition of a card consumes counters of the card's counter set. What the devices in use consume is gone, wherever
//! in the cluster they are; a further device needs every counter *of the pool* to be at least what is consumed then, so
//! that an overcommitted counter keeps all consumers of the pool from being allocated.
//!
//! All devices on one counter set must have a compatibility group in common, or none may have groups.
//!
//! Source: the allocator of kube-scheduler 1.37.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::quantity::{Quantity, QuantityError};
use k8s_openapi::api::resource::v1::{Counter, Device, DeviceCounterConsumption, ResourceSlice};

use crate::inventory::pool::{Pool, devices_of};
use crate::state::PoolUse;

/// The counters of a pool with what is left of them before an allocation starts.
#[derive(Debug, Default)]
pub(crate) struct CounterSets<'i> {
    sets: BTreeMap<&'i str, usize>,
    counters: BTreeMap<(&'i str, &'i str), usize>,
    left: Vec<i128>,
    /// Counters of one name in different sets have one number, below `names`.
    name_of: Vec<usize>,
    names: usize,
    groups: Vec<Groups<'i>>,
    /// The sets that a device with groups consumes already.
    grouped: BTreeSet<usize>,
}

/// The groups of the devices that consume a counter set. The first device decides whether groups matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups<'i> {
    /// No device.
    Unused,
    /// The first device has no groups.
    Without,
    /// The groups that all devices with groups have in common.
    Common(Vec<&'i str>),
}

/// What a device takes from one counter set.
#[derive(Debug)]
pub(crate) struct Consumption<'i> {
    pub(crate) set: usize,
    pub(crate) groups: &'i [String],
    /// Counters of the pool, and how much of them.
    pub(crate) amounts: Vec<(usize, i128)>,
}

/// A quantity in a slice that can't be read.
#[derive(Debug)]
pub(crate) struct InvalidCounter<'i> {
    pub(crate) slice: &'i ResourceSlice,
    pub(crate) field: String,
    pub(crate) error: QuantityError,
}

impl<'i> Groups<'i> {
    fn admits(&self, groups: &[String]) -> bool {
        match self {
            Self::Unused => true,
            Self::Without => groups.is_empty(),
            Self::Common(common) => common.iter().any(|group| groups.iter().any(|other| other == group)),
        }
    }

    /// Devices in use may contradict each other, since their slices may have changed. One of the other kind than the
    /// first counts for nothing.
    fn joined_by(&self, groups: &'i [String]) -> Self {
        let is_joining = |group: &&str| groups.iter().any(|other| other == group);
        match self {
            Self::Unused if groups.is_empty() => Self::Without,
            Self::Unused => Self::Common(groups.iter().map(String::as_str).collect()),
            Self::Common(common) if !groups.is_empty() => {
                Self::Common(common.iter().copied().filter(is_joining).collect())
            }
            Self::Without | Self::Common(_) => self.clone(),
        }
    }
}

impl<'i> CounterSets<'i> {
    /// Reads the counters of a pool, and takes off what devices in use consume.
    pub(crate) fn new(pool: &'i Pool, in_use: Option<&PoolUse>) -> Result<Self, InvalidCounter<'i>> {
        let mut sets = Self::default();
        for slice in pool.counter_slices() {
            for (index, set) in slice.spec.shared_counters.iter().flatten().enumerate() {
                sets.sets.insert(&set.name, sets.groups.len());
                sets.groups.push(Groups::Unused);
                for (name, counter) in &set.counters {
                    let field = || format!("spec.sharedCounters[{index}].counters[{name}].value");
                    let value = read(slice, counter, field)?;
                    sets.counters.insert((&set.name, name), sets.left.len());
                    sets.left.push(value);
                }
            }
        }
        sets.number_names();
        let Some(in_use) = in_use else { return Ok(sets) };
        for slice in pool.all_slices() {
            for device in devices_of(slice).iter().filter(|device| in_use.contains_key(&device.name)) {
                sets.take_off(slice, device)?;
            }
        }
        Ok(sets)
    }

    fn number_names(&mut self) {
        let mut names = BTreeMap::new();
        self.name_of = vec![0; self.left.len()];
        for ((_, name), counter) in &self.counters {
            let next = names.len();
            if let Some(number) = self.name_of.get_mut(*counter) {
                *number = *names.entry(*name).or_insert(next);
            }
        }
        self.names = names.len();
    }

    fn take_off(&mut self, slice: &'i ResourceSlice, device: &'i Device) -> Result<(), InvalidCounter<'i>> {
        for consumption in self.consumption(slice, device)? {
            for (counter, amount) in consumption.amounts {
                if let Some(left) = self.left.get_mut(counter) {
                    *left = left.saturating_sub(amount);
                }
            }
            if let Some(groups) = self.groups.get_mut(consumption.set) {
                *groups = groups.joined_by(consumption.groups);
            }
            if !consumption.groups.is_empty() {
                self.grouped.insert(consumption.set);
            }
        }
        Ok(())
    }

    /// What a device consumes. Names that the pool does not have were found when the pool was checked.
    pub(crate) fn consumption(
        &self,
        slice: &'i ResourceSlice,
        device: &'i Device,
    ) -> Result<Vec<Consumption<'i>>, InvalidCounter<'i>> {
        let consumed = device.consumes_counters.iter().flatten().enumerate();
        let known =
            consumed.filter_map(|(index, consumed)| Some((index, consumed, *self.sets.get(&*consumed.counter_set)?)));
        known
            .map(|(index, consumed, set)| {
                let groups = consumed.compatibility_groups.as_deref().unwrap_or_default();
                Ok(Consumption { set, groups, amounts: self.amounts(slice, device, index, consumed)? })
            })
            .collect()
    }

    fn amounts(
        &self,
        slice: &'i ResourceSlice,
        device: &'i Device,
        index: usize,
        consumed: &'i DeviceCounterConsumption,
    ) -> Result<Vec<(usize, i128)>, InvalidCounter<'i>> {
        let amounts = consumed.counters.iter().filter_map(|(name, counter)| {
            let position = *self.counters.get(&(consumed.counter_set.as_str(), name.as_str()))?;
            let field = || format!("spec.devices[{}].consumesCounters[{index}].counters[{name}].value", device.name);
            Some(read(slice, counter, field).map(|amount| (position, amount)))
        });
        amounts.collect()
    }

    /// The first counter of which less is left than a device consumes: set, counter, what is left and what is wanted.
    pub(crate) fn shortage(&self, device: &[Consumption<'_>]) -> Option<(&'i str, &'i str, i128, i128)> {
        let wanted = |counter: usize| {
            let amounts = device.iter().flat_map(|consumed| &consumed.amounts);
            amounts.filter(|(other, _)| *other == counter).fold(0_i128, |sum, (_, amount)| sum.saturating_add(*amount))
        };
        self.counters.iter().find_map(|((set, name), counter)| {
            let (left, wanted) = (*self.left.get(*counter)?, wanted(*counter));
            (wanted > left).then_some((*set, *name, left, wanted))
        })
    }

    /// What is left of the counters of each name, in all sets together.
    pub(crate) fn left_by_name(&self, ledger: Option<&Ledger<'_>>) -> Vec<i128> {
        let left = ledger.map_or(&self.left, |ledger| &ledger.left);
        let mut sums = vec![0_i128; self.names];
        for (name, left) in self.name_of.iter().zip(left) {
            if let Some(sum) = sums.get_mut(*name) {
                *sum = sum.saturating_add((*left).max(0));
            }
        }
        sums
    }

    /// What a device takes of the counters of each name.
    pub(crate) fn by_name(&self, device: &[Consumption<'_>]) -> Vec<i128> {
        let mut sums = vec![0_i128; self.names];
        for (counter, amount) in device.iter().flat_map(|consumed| &consumed.amounts) {
            let name = self.name_of.get(*counter).copied().unwrap_or(self.names);
            if let Some(sum) = sums.get_mut(name) {
                *sum = sum.saturating_add((*amount).max(0));
            }
        }
        sums
    }

    /// Whether a device may not be used while groups are not understood: it has groups, or a device in use on one of its
    /// counter sets has.
    pub(crate) fn needs_groups(&self, consumption: &[Consumption<'_>]) -> bool {
        consumption.iter().any(|consumed| !consumed.groups.is_empty() || self.grouped.contains(&consumed.set))
    }
}

fn read<'i>(
    slice: &'i ResourceSlice,
    counter: &Counter,
    field: impl Fn() -> String,
) -> Result<i128, InvalidCounter<'i>> {
    let quantity = Quantity::from_kube(&counter.value);
    quantity.map(Quantity::nanos).map_err(|error| InvalidCounter { slice, field: field(), error })
}

/// What is left of a pool's counters in the course of one allocation.
#[derive(Debug)]
pub(crate) struct Ledger<'i> {
    left: Vec<i128>,
    /// How many counters are overcommitted.
    short: usize,
    groups: Vec<Groups<'i>>,
}

/// Why a device can't consume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Its groups do not go with those of the devices on a counter set.
    Groups,
    /// A counter of the pool is overcommitted, or would be.
    Counters,
}

/// The groups before a device consumed, to be put back when it is released.
#[derive(Debug)]
pub(crate) struct Reserved<'i>(Vec<(usize, Groups<'i>)>);

impl<'i> Ledger<'i> {
    pub(crate) fn new(sets: &CounterSets<'i>) -> Self {
        let short = sets.left.iter().filter(|left| **left < 0).count();
        Self { left: sets.left.clone(), short, groups: sets.groups.clone() }
    }

    /// Takes what a device consumes, or changes nothing.
    pub(crate) fn reserve(&mut self, device: &[Consumption<'i>]) -> Result<Reserved<'i>, Shortage> {
        let reserved = self.join(device)?;
        for (counter, amount) in device.iter().flat_map(|consumed| &consumed.amounts) {
            self.change(*counter, amount.wrapping_neg());
        }
        if self.short == 0 {
            return Ok(reserved);
        }
        self.release(device, reserved);
        Err(Shortage::Counters)
    }

    /// Gives back what a device took.
    pub(crate) fn release(&mut self, device: &[Consumption<'i>], reserved: Reserved<'i>) {
        for (counter, amount) in device.iter().flat_map(|consumed| &consumed.amounts) {
            self.change(*counter, *amount);
        }
        self.restore(reserved);
    }

    fn join(&mut self, device: &[Consumption<'i>]) -> Result<Reserved<'i>, Shortage> {
        let mut reserved = Reserved(Vec::new());
        for consumed in device {
            let Some(groups) = self.groups.get_mut(consumed.set) else { continue };
            if !groups.admits(consumed.groups) {
                self.restore(reserved);
                return Err(Shortage::Groups);
            }
            let joined = groups.joined_by(consumed.groups);
            reserved.0.push((consumed.set, std::mem::replace(groups, joined)));
        }
        Ok(reserved)
    }

    fn restore(&mut self, reserved: Reserved<'i>) {
        for (set, before) in reserved.0.into_iter().rev() {
            if let Some(groups) = self.groups.get_mut(set) {
                *groups = before;
            }
        }
    }

    /// Wrapping, so that giving back is exact even beyond the numbers that quantities have.
    fn change(&mut self, counter: usize, by: i128) {
        let Some(left) = self.left.get_mut(counter) else { return };
        let was_short = *left < 0;
        *left = left.wrapping_add(by);
        match (was_short, *left < 0) {
            (false, true) => self.short += 1,
            (true, false) => self.short -= 1,
            _ => {}
        }
    }
}
