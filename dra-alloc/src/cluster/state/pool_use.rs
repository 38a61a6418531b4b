//! Use of one pool's devices by claims.

use std::sync::{Arc, OnceLock};

use dra_attrs::Quantity;

use super::device_usage::{DeviceUsage, Holder};
use super::holding::Holding;
use super::occupancy::{Occupancies, Occupancy};
use crate::cluster::inventory::pool_devices::PoolDevices;
use crate::cluster::stamp::Stamp;
use crate::cluster::trie::{Trie, hash};

/// Devices of one pool that are in use.
#[derive(Clone, Debug)]
pub(crate) struct PoolUse {
    pub(super) driver: Arc<str>,
    pub(super) pool: Arc<str>,
    devices: Trie<DeviceUsage>,
    /// Number of devices that are held twice.
    held_twice: usize,
    occupancies: Occupancies,
    /// Last change of the pool's use.
    stamp: Stamp,
    /// Counters that are left, of the pool that was asked for first since then.
    counters_left: OnceLock<(Stamp, CountersLeft)>,
    /// The two uses of which this is the larger, if it is.
    two: Option<TwoUses>,
}

/// Counters of a pool that are left beside the devices in use.
#[derive(Clone, Debug)]
pub(crate) struct CountersLeft {
    /// Amount left of each counter, in billionths of a unit.
    pub(crate) amounts: Box<[i128]>,
    /// True if less than nothing is left of a counter.
    pub(crate) is_overcommitted: bool,
    /// True for each counter set that a device in use consumes. None of them has compatibility groups.
    pub(crate) is_used: Box<[bool]>,
}

/// Effect of a holding that was added to the use of a pool.
pub(super) struct Added<'u> {
    /// Driver, pool and device, as the use keeps their names.
    pub(super) names: [&'u Arc<str>; 3],
    /// Mark of the change.
    pub(super) stamp: Stamp,
    /// True if the device was not in use before.
    pub(super) is_first: bool,
    /// True if the device is held twice since then.
    pub(super) is_twice: bool,
}

impl PoolUse {
    pub(super) fn new(driver: &str, pool: &str) -> Self {
        let (driver, pool, devices, occupancies) =
            (driver.into(), pool.into(), Trie::default(), Occupancies::default());
        Self {
            driver,
            pool,
            devices,
            held_twice: 0,
            occupancies,
            stamp: Stamp::default(),
            counters_left: OnceLock::new(),
            two: None,
        }
    }

    /// Returns the larger of two uses of one pool.
    pub(super) fn larger(one: &Self, other: &Self) -> Self {
        let differing: Vec<&DeviceUsage> =
            other.devices.iter().filter(|usage| one.device(&usage.name) != Some(usage)).collect();
        let mut larger = one.clone();
        if differing.is_empty() && other.two.is_none() && one.len() == other.len() {
            return larger;
        }
        (larger.stamp, larger.counters_left) = (Stamp::next(), OnceLock::new());
        larger.two = Some(TwoUses::new(one, other));
        for usage in differing {
            let make = || DeviceUsage::new(&usage.name);
            let found = larger.devices.entry(hash(&*usage.name), |known| known.name == usage.name, make);
            let before = found.is_held_twice();
            *found = if found.is_unused() { usage.clone() } else { found.larger(usage) };
            larger.held_twice = larger.held_twice + usize::from(found.is_held_twice()) - usize::from(before);
            larger.occupancies.update(&usage.name, Some(found));
        }
        larger
    }

    /// Returns the two uses of which this is the larger, if it is: counters are counted in each of them by itself.
    pub(crate) fn two(&self) -> Option<&[Self; 2]> {
        self.two.as_ref().map(TwoUses::both)
    }

    /// Returns the devices that are held twice.
    pub(super) fn twice(&self) -> impl Iterator<Item = &DeviceUsage> {
        let devices = (self.held_twice > 0).then(|| self.devices.iter());
        devices.into_iter().flatten().filter(|usage| usage.is_held_twice())
    }

    /// Returns true if a device is held twice.
    pub(super) fn is_twice(&self, device: &str) -> bool {
        self.device(device).is_some_and(DeviceUsage::is_held_twice)
    }

    pub(super) fn is(&self, driver: &str, pool: &str) -> bool {
        *self.driver == *driver && *self.pool == *pool
    }

    /// Returns the last change of the pool's use.
    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns the use of the pool's devices, as a node sees them.
    pub(crate) fn occupancy(&self, devices: &Arc<PoolDevices>) -> Arc<Occupancy> {
        self.occupancies.find(devices, |name| self.device(name))
    }

    /// Writes the use of the pool's devices, as a node sees them, by positions: for devices of one shape two uses have the same
    /// words only if they are equal but for claims and names.
    pub(crate) fn write(&self, devices: &Arc<PoolDevices>, words: &mut impl Extend<u64>) {
        if let Some([one, other]) = self.two() {
            // No use begins with this number.
            words.extend([2]);
            one.write(devices, words);
            return other.write(devices, words);
        }
        let occupancy = self.occupancy(devices);
        let mut shared = occupancy.write(words).peekable();
        if shared.peek().is_none() {
            return;
        }
        for (position, device) in devices.iter().enumerate() {
            if shared.next_if_eq(&position).is_none() {
                continue;
            }
            let usage = self.device(&device.name);
            for capacity in device.capacity.iter().flatten().map(|(name, _)| name) {
                words.extend(halves(usage.map_or(Quantity::ZERO, |usage| usage.consumed(capacity)).nanos()));
            }
        }
    }

    /// Returns the counters that are left of a version of the pool, if they were kept since the last change.
    pub(crate) fn counters_left(&self, pool: Stamp) -> Option<&CountersLeft> {
        self.counters_left.get().filter(|(kept, _)| *kept == pool).map(|(_, left)| left)
    }

    /// Keeps the counters that are left of a version of the pool until the next change. Those of another version stay, if
    /// there are any: nodes may see different slices of a pool.
    pub(crate) fn keep_counters_left(&self, pool: Stamp, left: CountersLeft) {
        self.counters_left.get_or_init(|| (pool, left));
    }

    /// Returns the number of devices in use.
    pub(crate) const fn len(&self) -> usize {
        self.devices.len()
    }

    /// Returns the number of devices that are held twice.
    pub(crate) const fn held_twice(&self) -> usize {
        self.held_twice
    }

    pub(crate) fn device(&self, name: &str) -> Option<&DeviceUsage> {
        self.devices.find(hash(name), |device| *device.name == *name)
    }

    /// Returns the devices in use, sorted by name.
    pub(super) fn sorted(&self) -> Vec<&DeviceUsage> {
        let mut devices: Vec<_> = self.devices.iter().collect();
        devices.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        devices
    }

    pub(super) fn add(&mut self, device: &str, holder: Holder, holding: Holding) -> Added<'_> {
        self.stamp = Stamp::next();
        self.counters_left = OnceLock::new();
        let mut is_first = false;
        let make = || {
            is_first = true;
            DeviceUsage::new(device)
        };
        let found = self.devices.entry(hash(device), |other| *other.name == *device, make);
        let before = found.is_held_twice();
        match &mut self.two {
            None => found.add(holder, holding),
            Some(two) => {
                *found = two.change(device, |pool| {
                    pool.add(device, holder.clone(), holding.clone());
                });
            }
        }
        let is_twice = found.is_held_twice() && !before;
        self.held_twice += usize::from(is_twice);
        self.occupancies.update(device, Some(found));
        let names = [&self.driver, &self.pool, &found.name];
        Added { names, stamp: self.stamp, is_first, is_twice }
    }

    pub(super) fn remove(&mut self, device: &str, holder: &Holder, holding: &Holding) {
        self.stamp = Stamp::next();
        let (hash, is_it) = (hash(device), |other: &DeviceUsage| *other.name == *device);
        let found = self.devices.entry(hash, is_it, || DeviceUsage::new(device));
        let before = found.is_held_twice();
        match &mut self.two {
            None => found.remove(holder, holding),
            Some(two) => *found = two.change(device, |pool| pool.remove(device, holder, holding)),
        }
        self.held_twice = self.held_twice + usize::from(found.is_held_twice()) - usize::from(before);
        if found.is_unused() {
            self.devices.remove(hash, is_it);
        }
        self.counters_left = OnceLock::new();
        let usage = self.devices.find(hash, is_it);
        self.occupancies.update(device, usage);
    }
}

/// Returns the halves of a number.
fn halves(number: i128) -> [u64; 2] {
    let [low, high] = [number, number >> 64].map(|half| half & i128::from(u64::MAX));
    [low, high].map(|half| u64::try_from(half).unwrap_or_default())
}

/// Two uses of a pool are equal if the same claims hold the same devices, now and later.
impl PartialEq for PoolUse {
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp
            || self.devices.len() == other.devices.len()
                && self.devices.iter().all(|device| other.device(&device.name) == Some(device))
                && self.two == other.two
    }
}

impl Eq for PoolUse {}

/// Two uses of one pool, of which another use is the larger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TwoUses(Arc<[PoolUse; 2]>);

impl TwoUses {
    pub(super) fn new(one: &PoolUse, other: &PoolUse) -> Self {
        Self(Arc::new([one, other].map(PoolUse::clone)))
    }

    pub(super) fn both(&self) -> &[PoolUse; 2] {
        &self.0
    }

    /// Changes the use of a device in both, and returns the larger of the two that come of it.
    pub(super) fn change(&mut self, device: &str, change: impl Fn(&mut PoolUse)) -> DeviceUsage {
        let both = Arc::make_mut(&mut self.0);
        both.iter_mut().for_each(change);
        let mut uses = both.iter().filter_map(|pool| pool.device(device));
        match (uses.next(), uses.next()) {
            (Some(one), Some(other)) => one.larger(other),
            (Some(only), None) => only.clone(),
            _ => DeviceUsage::new(device),
        }
    }
}
