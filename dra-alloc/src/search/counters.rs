//! Shared counters of a pool, and compatibility groups of the devices that consume them (KEP-4815, KEP-5963).
//!
//! A partition of a card consumes counters of the card's counter set. Allocated devices consume their counters on
//! whichever node they are. A further device can be allocated if no counter *of the pool* is overcommitted afterwards.
//! So one overcommitted counter prevents the allocation of all devices of the pool that consume counters.
//!
//! All devices that consume one counter set must have a compatibility group in common, or none of them may have groups.
//!
//! Source: the allocator of kube-scheduler 1.37.

use std::collections::BTreeSet;

use dra_device::internal::name_of;
use dra_device::pool::slice_devices;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::ix::{ByCounter, ByCounterName, BySet, CounterIx, SetIx};
use crate::cluster::inventory::pool::{InvalidCounter, Pool};
use crate::cluster::inventory::pool_counters::{Consumed, PoolCounters};
use crate::cluster::state::{CountersLeft, PoolUse};

/// Counter sets of a pool, with the amounts left before the allocation starts.
#[derive(Debug)]
pub(crate) struct CounterSets<'i> {
    read: &'i PoolCounters,
    pub(crate) left: ByCounter<i128>,
    /// True if less than nothing is left of a counter.
    pub(crate) is_overcommitted: bool,
    pub(crate) groups: BySet<Groups<'i>>,
    /// Counter sets from which a device with compatibility groups is allocated.
    grouped: BTreeSet<SetIx>,
}

/// Compatibility groups of the allocated devices that consume one counter set. The first device decides if groups
/// matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups<'i> {
    /// No device consumes the set.
    Unused,
    /// The first device that consumes the set has no compatibility groups.
    Without,
    /// Compatibility groups common to all devices with groups that consume the set.
    Common(Vec<&'i str>),
}

impl<'i> Groups<'i> {
    pub(crate) fn admits(&self, groups: &[String]) -> bool {
        match self {
            Self::Unused => true,
            Self::Without => groups.is_empty(),
            Self::Common(common) => common.iter().any(|group| groups.iter().any(|other| other == group)),
        }
    }

    /// Returns the groups common to the devices of two uses of the set. One use with groups and one without admit nothing.
    fn with(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Unused, groups) | (groups, Self::Unused) => groups.clone(),
            (Self::Without, Self::Without) => Self::Without,
            (Self::Without, Self::Common(_)) | (Self::Common(_), Self::Without) => Self::Common(Vec::new()),
            (Self::Common(own), Self::Common(others)) => {
                Self::Common(own.iter().copied().filter(|group| others.contains(group)).collect())
            }
        }
    }

    /// Returns the groups after one more device is allocated. A device without groups among devices with groups, or the
    /// reverse, is ignored: such allocations occur if slices have changed.
    pub(crate) fn joined_by(&self, groups: &'i [String]) -> Self {
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
    /// Takes the counters of a pool, and subtracts the amounts that allocated devices consume.
    pub(crate) fn new(pool: &'i Pool, in_use: Option<&PoolUse>) -> Result<Self, InvalidCounter<'i>> {
        let read = pool.read_counters()?;
        // A pool without counter sets has nothing to take off, however many of its devices are in use.
        let in_use = in_use.filter(|_| !read.is_empty());
        if let Some(kept) = in_use.and_then(|in_use| in_use.counters_left(pool.stamp())) {
            return Ok(Self::restored(read, kept));
        }
        let unused = std::iter::repeat_n(Groups::Unused, read.set_count());
        let mut sets = Self::with(read, read.amounts(), unused.collect());
        let Some(in_use) = in_use else { return Ok(sets) };
        if let Some([one, other]) = in_use.two() {
            let sets = Self::new(pool, Some(one))?.least(&Self::new(pool, Some(other))?);
            sets.keep(pool, in_use);
            return Ok(sets);
        }
        let devices =
            pool.all_slices().flat_map(|slice| slice_devices(slice).iter().map(move |device| (slice, device)));
        for (number, (slice, device)) in devices.enumerate() {
            if device.consumes_counters.is_some() && in_use.device(&device.name).is_some() {
                sets.take_off(slice, device, number)?;
            }
        }
        sets.keep(pool, in_use);
        sets.is_overcommitted = is_overcommitted(&sets.left);
        Ok(sets)
    }

    fn with(read: &'i PoolCounters, left: &[i128], groups: BySet<Groups<'i>>) -> Self {
        let left = ByCounter::new(left.to_vec());
        Self { read, is_overcommitted: is_overcommitted(&left), left, groups, grouped: BTreeSet::new() }
    }

    fn restored(read: &'i PoolCounters, kept: &CountersLeft) -> Self {
        let groups = |is_used: &bool| if *is_used { Groups::Without } else { Groups::Unused };
        Self::with(read, &kept.amounts, kept.is_used.iter().map(groups).collect())
    }

    /// Keeps the counters that are left with the use of the pool.
    fn keep(&self, pool: &Pool, in_use: &PoolUse) {
        if self.grouped.is_empty() {
            in_use.keep_counters_left(
                pool.stamp(),
                CountersLeft {
                    amounts: self.left.iter().copied().collect(),
                    is_used: self.groups.iter().map(|groups| *groups != Groups::Unused).collect(),
                },
            );
        }
    }

    /// Returns the counters that are left in each of two uses of one pool, with the groups that both admit.
    fn least(mut self, other: &Self) -> Self {
        for (left, others) in self.left.iter_mut().zip(&other.left) {
            *left = (*left).min(*others);
        }
        for (groups, others) in self.groups.iter_mut().zip(&other.groups) {
            *groups = groups.with(others);
        }
        self.grouped.extend(&other.grouped);
        self.is_overcommitted = is_overcommitted(&self.left);
        self
    }

    fn take_off(
        &mut self,
        slice: &'i ResourceSlice,
        device: &'i Device,
        number: usize,
    ) -> Result<(), InvalidCounter<'i>> {
        for consumed in self.consumption(slice, device, number)? {
            for (counter, amount) in &consumed.amounts {
                if let Some(left) = self.left.at_mut(*counter) {
                    *left = left.saturating_sub(*amount);
                }
            }
            if let Some(groups) = self.groups.at_mut(consumed.set) {
                *groups = groups.joined_by(&consumed.groups);
            }
            if !consumed.groups.is_empty() {
                self.grouped.insert(consumed.set);
            }
        }
        Ok(())
    }

    /// Returns the consumption of a device, by its number in the pool.
    pub(crate) fn consumption(
        &self,
        slice: &'i ResourceSlice,
        device: &'i Device,
        number: usize,
    ) -> Result<&'i [Consumed], InvalidCounter<'i>> {
        self.read.consumption(number, device).map_err(|bad| InvalidCounter {
            slice: name_of(slice),
            field: bad.field.clone(),
            error: bad.error.clone(),
        })
    }

    /// Returns the first counter of which less is left than a device consumes: set, counter, amount left and amount
    /// consumed, in billionths of a unit.
    pub(crate) fn shortage(&self, device: &[Consumed]) -> Option<(&'i str, &'i str, i128, i128)> {
        let wanted = |counter: CounterIx| {
            let amounts = device.iter().flat_map(|consumed| &consumed.amounts);
            amounts.filter(|(other, _)| *other == counter).fold(0_i128, |sum, (_, amount)| sum.saturating_add(*amount))
        };
        self.read.counters().find_map(|(set, name, counter)| {
            let (left, wanted) = (*self.left.at(counter)?, wanted(counter));
            (wanted > left).then_some((set, name, left, wanted))
        })
    }

    /// Returns the amount left of the counters of each name, summed over all sets.
    pub(crate) fn left_by_name(&self, ledger: Option<&Ledger<'_>>) -> ByCounterName<i128> {
        let left = ledger.map_or(&self.left, |ledger| &ledger.left);
        let mut sums = self.zeros();
        for (name, left) in self.read.name_of().iter().zip(left) {
            sums[*name] = sums[*name].saturating_add((*left).max(0));
        }
        sums
    }

    /// Returns the amount that a device consumes of the counters of each name.
    pub(crate) fn by_name(&self, device: &[Consumed]) -> ByCounterName<i128> {
        let mut sums = self.zeros();
        for (counter, amount) in device.iter().flat_map(|consumed| &consumed.amounts) {
            if let Some(name) = self.read.name_of().get(usize::from(*counter)) {
                sums[*name] = sums[*name].saturating_add((*amount).max(0));
            }
        }
        sums
    }

    /// Returns true if a device with compatibility groups is allocated from a counter set.
    pub(super) fn is_grouped(&self, set: SetIx) -> bool {
        self.grouped.contains(&set)
    }

    /// Returns a zero for each name of a counter.
    fn zeros(&self) -> ByCounterName<i128> {
        std::iter::repeat_n(0, self.read.names()).collect()
    }

    /// Returns false if a device can't be allocated even before any other choice: a counter of the pool is overcommitted,
    /// or less is left of one than the device consumes.
    pub(crate) fn may_serve(&self, device: &[Consumed]) -> bool {
        let mut amounts = device.iter().flat_map(|consumed| &consumed.amounts);
        !self.is_overcommitted
            && amounts.all(|(counter, amount)| self.left.at(*counter).is_none_or(|left| amount <= left))
    }

    /// Returns true if a device is refused for its counters before any other choice, as [`Ledger::reserve`] would. False says
    /// nothing: a device may consume a counter twice, or a negative amount of it.
    pub(crate) fn refuse(&self, device: &[Consumed]) -> bool {
        let admits =
            |consumed: &Consumed| self.groups.at(consumed.set).is_none_or(|groups| groups.admits(&consumed.groups));
        let amounts = || device.iter().flat_map(|consumed| &consumed.amounts);
        device.iter().all(admits) && amounts().all(|(_, amount)| *amount >= 0) && !self.may_serve(device)
    }

    /// Returns true if the gate `DRADeviceCompatibilityGroups` must be on to allocate a device: the device has groups,
    /// or shares a counter set with an allocated device that has groups.
    pub(crate) fn needs_groups(&self, consumption: &[Consumed]) -> bool {
        consumption.iter().any(|consumed| !consumed.groups.is_empty() || self.is_grouped(consumed.set))
    }
}

/// Computes the counters that are left of a pool, which its use keeps. One that is not a quantity is an error of the search.
pub(crate) fn keep_counters_left(pool: &Pool, in_use: &PoolUse) {
    if pool.counter_slices().next().is_some() && in_use.counters_left(pool.stamp()).is_none() {
        let _: Result<CounterSets<'_>, _> = CounterSets::new(pool, Some(in_use));
    }
}

fn is_overcommitted(left: &ByCounter<i128>) -> bool {
    left.iter().any(|left| *left < 0)
}

/// Amounts left of a pool's counters during the search for one allocation.
#[derive(Debug)]
pub(crate) struct Ledger<'i> {
    pub(crate) left: ByCounter<i128>,
    /// Number of overcommitted counters.
    short: usize,
    pub(crate) groups: BySet<Groups<'i>>,
}

/// Reason why a device can't consume its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The compatibility groups of the device do not match those of the devices that consume a counter set.
    Groups,
    /// A counter of the pool is overcommitted, or would be with the device.
    Counters,
}

/// Compatibility groups of the counter sets before a device was added, restored when the device is released.
#[derive(Debug)]
pub(crate) struct Reserved<'i>(Vec<(SetIx, Groups<'i>)>);

impl<'i> Ledger<'i> {
    pub(crate) fn new(sets: &CounterSets<'i>) -> Self {
        let short = sets.left.iter().filter(|left| **left < 0).count();
        Self { left: sets.left.clone(), short, groups: sets.groups.clone() }
    }

    /// Subtracts the consumption of a device. Changes nothing if it returns an error.
    pub(crate) fn reserve(&mut self, device: &'i [Consumed]) -> Result<Reserved<'i>, Shortage> {
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

    /// Adds back the consumption of a device, and restores the compatibility groups in `reserved`.
    pub(crate) fn release(&mut self, device: &'i [Consumed], reserved: Reserved<'i>) {
        for (counter, amount) in device.iter().flat_map(|consumed| &consumed.amounts) {
            self.change(*counter, *amount);
        }
        self.restore(reserved);
    }

    fn join(&mut self, device: &'i [Consumed]) -> Result<Reserved<'i>, Shortage> {
        let mut reserved = Reserved(Vec::new());
        for consumed in device {
            let Some(groups) = self.groups.at_mut(consumed.set) else { continue };
            if !groups.admits(&consumed.groups) {
                self.restore(reserved);
                return Err(Shortage::Groups);
            }
            let joined = groups.joined_by(&consumed.groups);
            reserved.0.push((consumed.set, std::mem::replace(groups, joined)));
        }
        Ok(reserved)
    }

    fn restore(&mut self, reserved: Reserved<'i>) {
        for (set, before) in reserved.0.into_iter().rev() {
            if let Some(groups) = self.groups.at_mut(set) {
                *groups = before;
            }
        }
    }

    /// Adds an amount to a counter. Wraps on overflow, so that `release` exactly undoes `reserve`.
    fn change(&mut self, counter: CounterIx, by: i128) {
        let Some(left) = self.left.at_mut(counter) else { return };
        let was_short = *left < 0;
        *left = left.wrapping_add(by);
        match (was_short, *left < 0) {
            (false, true) => self.short += 1,
            (true, false) => self.short -= 1,
            _ => {}
        }
    }
}
