//! Shared counters of a pool, and compatibility groups of the devices that consume them (KEP-4815, KEP-5963).
//!
//! A partition of a card consumes counters of the card's counter set. Allocated devices consume their counters on
//! whichever node they are. A further device can be allocated if no counter *of the pool* is overcommitted afterwards.
//! So one overcommitted counter prevents the allocation of all devices of the pool that consume counters.
//!
//! All devices that consume one counter set must have a compatibility group in common, or none of them may have groups.
//!
//! Source: the allocator of kube-scheduler 1.37.

use std::borrow::Cow;
use std::collections::BTreeSet;

use dra_device::internal::name_of;
use dra_device::pool::slice_devices;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use super::ix::{ByCounterName, BySet, CounterIx, PoolIx, SetIx};
use crate::cluster::inventory::pool::{InvalidCounter, Pool};
use crate::cluster::inventory::pool_counters::{Consumed, PoolCounters};
use crate::cluster::state::{CountersLeft, PoolUse};

/// Counter sets of a pool, with the amounts left before the allocation starts.
#[derive(Debug)]
pub(crate) struct CounterSets<'i> {
    read: &'i PoolCounters,
    /// Amounts left: those of the pool while nothing is in use, or what its use keeps.
    left: Cow<'i, [i128]>,
    /// True if less than nothing is left of a counter.
    pub(crate) is_overcommitted: bool,
    groups: SetGroups<'i>,
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

/// Compatibility groups on all counter sets of a pool.
#[derive(Debug)]
enum SetGroups<'i> {
    /// No device consumes a set.
    Unused,
    /// True for each set that devices without groups consume.
    Without(&'i [bool]),
    Known(BySet<Groups<'i>>),
}

impl<'i> SetGroups<'i> {
    fn of(&self, set: SetIx) -> Groups<'i> {
        match self {
            Self::Without(is_used) if is_used.get(usize::from(set)) == Some(&true) => Groups::Without,
            Self::Unused | Self::Without(_) => Groups::Unused,
            Self::Known(groups) => groups.at(set).cloned().unwrap_or(Groups::Unused),
        }
    }
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
    pub(crate) fn new(pool: &'i Pool, in_use: Option<&'i PoolUse>) -> Result<Self, InvalidCounter<'i>> {
        let read = pool.read_counters()?;
        // A pool without counter sets has nothing to take off, however many of its devices are in use.
        let Some(in_use) = in_use.filter(|_| !read.is_empty()) else { return Ok(Self::unused(read)) };
        if let Some(kept) = in_use.counters_left(pool.stamp()) {
            let (left, groups) = (Cow::Borrowed(&*kept.amounts), SetGroups::Without(&kept.is_used));
            return Ok(Self { left, is_overcommitted: kept.is_overcommitted, groups, ..Self::unused(read) });
        }
        let sets = match in_use.two() {
            Some([one, other]) => Self::new(pool, Some(one))?.least(&Self::new(pool, Some(other))?),
            None => Self::unused(read).beside(pool, in_use)?,
        };
        sets.keep(pool, in_use);
        Ok(sets)
    }

    fn unused(read: &'i PoolCounters) -> Self {
        let (left, is_overcommitted) = (Cow::Borrowed(read.amounts()), read.is_below_zero());
        Self { read, left, is_overcommitted, groups: SetGroups::Unused, grouped: BTreeSet::new() }
    }

    /// Subtracts what the devices in use consume.
    fn beside(mut self, pool: &'i Pool, in_use: &PoolUse) -> Result<Self, InvalidCounter<'i>> {
        let devices =
            pool.all_slices().flat_map(|slice| slice_devices(slice).iter().map(move |device| (slice, device)));
        let mut groups = self.all_groups();
        for (number, (slice, device)) in devices.enumerate() {
            if device.consumes_counters.is_some() && in_use.device(&device.name).is_some() {
                self.take_off(&mut groups, slice, device, number)?;
            }
        }
        self.groups = SetGroups::Known(groups);
        self.is_overcommitted = is_overcommitted(&self.left);
        Ok(self)
    }

    /// Keeps the counters that are left with the use of the pool.
    fn keep(&self, pool: &Pool, in_use: &PoolUse) {
        if self.grouped.is_empty() {
            in_use.keep_counters_left(
                pool.stamp(),
                CountersLeft {
                    amounts: self.left.iter().copied().collect(),
                    is_overcommitted: self.is_overcommitted,
                    is_used: self.all_groups().iter().map(|groups| *groups != Groups::Unused).collect(),
                },
            );
        }
    }

    /// Returns the counters that are left in each of two uses of one pool, with the groups that both admit.
    fn least(mut self, other: &Self) -> Self {
        for (left, others) in self.left.to_mut().iter_mut().zip(&*other.left) {
            *left = (*left).min(*others);
        }
        let groups = self.all_groups();
        self.groups =
            SetGroups::Known(groups.enumerate().map(|(set, groups)| groups.with(&other.groups(set))).collect());
        self.grouped.extend(&other.grouped);
        self.is_overcommitted = is_overcommitted(&self.left);
        self
    }

    /// Returns the amount left of a counter.
    pub(crate) fn left(&self, counter: CounterIx) -> Option<i128> {
        self.left.get(usize::from(counter)).copied()
    }

    /// Returns the amounts left of all counters.
    pub(crate) fn all_left(&self) -> &[i128] {
        &self.left
    }

    /// Returns the compatibility groups of the devices on a counter set.
    pub(crate) fn groups(&self, set: SetIx) -> Groups<'i> {
        self.groups.of(set)
    }

    /// Returns the compatibility groups of the devices on all counter sets.
    pub(crate) fn all_groups(&self) -> BySet<Groups<'i>> {
        (0..self.read.set_count()).map(|set| self.groups(SetIx::from(set))).collect()
    }

    fn take_off(
        &mut self,
        groups: &mut BySet<Groups<'i>>,
        slice: &'i ResourceSlice,
        device: &'i Device,
        number: usize,
    ) -> Result<(), InvalidCounter<'i>> {
        for consumed in self.consumption(slice, device, number)? {
            for (counter, amount) in &consumed.amounts {
                if let Some(left) = self.left.to_mut().get_mut(usize::from(*counter)) {
                    *left = left.saturating_sub(*amount);
                }
            }
            if let Some(groups) = groups.at_mut(consumed.set) {
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
            let (left, wanted) = (self.left(counter)?, wanted(counter));
            (wanted > left).then_some((set, name, left, wanted))
        })
    }

    /// Returns the amount left of the counters of each name, summed over all sets.
    pub(crate) fn left_by_name(&self, ledger: Option<&Ledger<'_>>) -> ByCounterName<i128> {
        let left = ledger.map_or(&*self.left, |ledger| &*ledger.left);
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
            && amounts.all(|(counter, amount)| self.left(*counter).is_none_or(|left| *amount <= left))
    }

    /// Returns true if a device is refused for its counters before any other choice, as [`Ledger::reserve`] would. False says
    /// nothing: a device may consume a counter twice, or a negative amount of it.
    pub(crate) fn refuse(&self, device: &[Consumed]) -> bool {
        let admits = |consumed: &Consumed| self.groups(consumed.set).admits(&consumed.groups);
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

fn is_overcommitted(left: &[i128]) -> bool {
    left.iter().any(|left| *left < 0)
}

/// Amounts left of a pool's counters during the search for one allocation.
#[derive(Debug)]
pub(crate) struct Ledger<'i> {
    left: Vec<i128>,
    /// Number of overcommitted counters.
    short: usize,
    groups: BySet<Groups<'i>>,
}

/// Ledgers of the pools that the search has looked at, sorted by pool.
#[derive(Debug, Default)]
pub(crate) struct Ledgers<'i>(Vec<(PoolIx, Ledger<'i>)>);

impl<'i> Ledgers<'i> {
    pub(crate) fn of(&self, pool: PoolIx) -> Option<&Ledger<'i>> {
        self.0.get(self.place(pool).ok()?).map(|(_, ledger)| ledger)
    }

    pub(crate) fn of_mut(&mut self, pool: PoolIx) -> Option<&mut Ledger<'i>> {
        let place = self.place(pool).ok()?;
        self.0.get_mut(place).map(|(_, ledger)| ledger)
    }

    /// Returns the ledger of a pool, begun with its counters if there is none.
    #[expect(clippy::indexing_slicing, reason = "the place is that of the ledger")]
    pub(crate) fn begin(&mut self, pool: PoolIx, sets: &CounterSets<'i>) -> &mut Ledger<'i> {
        let place = self.place(pool).unwrap_or_else(|place| {
            self.0.insert(place, (pool, Ledger::new(sets)));
            place
        });
        &mut self.0[place].1
    }

    fn place(&self, pool: PoolIx) -> Result<usize, usize> {
        self.0.binary_search_by_key(&pool, |(known, _)| *known)
    }
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
pub(crate) struct Reserved<'i>(SmallVec<[(SetIx, Groups<'i>); 1]>);

impl<'i> Ledger<'i> {
    fn new(sets: &CounterSets<'i>) -> Self {
        let short = if sets.is_overcommitted { sets.left.iter().filter(|left| **left < 0).count() } else { 0 };
        Self { left: sets.left.to_vec(), short, groups: sets.all_groups() }
    }

    /// Returns the amount left of a counter.
    pub(crate) fn left(&self, counter: CounterIx) -> Option<i128> {
        self.left.get(usize::from(counter)).copied()
    }

    /// Returns the compatibility groups of the devices on a counter set.
    pub(crate) fn groups(&self, set: SetIx) -> Groups<'i> {
        self.groups.at(set).cloned().unwrap_or(Groups::Unused)
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
        let mut reserved = Reserved(SmallVec::new());
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
        let Some(left) = self.left.get_mut(usize::from(counter)) else { return };
        let was_short = *left < 0;
        *left = left.wrapping_add(by);
        match (was_short, *left < 0) {
            (false, true) => self.short += 1,
            (true, false) => self.short -= 1,
            _ => {}
        }
    }
}
