//! Occupancy: the devices of a pool, as a node sees it, that claims use.
//!
//! The use of a pool is known by names, the pool's devices by positions. The occupancy joins the two, so that a search
//! passes over held devices by 64 at once and a full pool is told by a number. It is computed when a pool is first asked
//! for and belongs to the state: copies share it, and a change of a large pool changes one bit.

use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;

use super::device_usage::DeviceUsage;
use crate::cluster::bits::Bits;
use crate::cluster::inventory::pool_devices::PoolDevices;

/// Number of devices up to which an occupancy is computed anew after a change.
const SMALL: usize = 64;
/// Number of views of one pool whose occupancies are kept. Nodes that see different slices of a pool have different
/// views of it.
const KEPT: usize = 8;

/// Devices of a pool that claims use.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    devices: Arc<PoolDevices>,
    /// Devices that no claim holds exclusively.
    open: Bits,
    /// Devices that are held or shared.
    used: Bits,
    /// Devices with shares.
    shared: Bits,
    /// Number of devices in `open`.
    open_count: usize,
    /// Number of devices in `used`.
    used_count: usize,
}

impl Occupancy {
    fn new<'u>(devices: &Arc<PoolDevices>, usage_of: impl Fn(&str) -> Option<&'u DeviceUsage>) -> Self {
        let len = devices.len();
        let [open, used, shared] = std::array::from_fn(|_| Bits::none(len));
        let mut occupancy = Self { devices: Arc::clone(devices), open, used, shared, open_count: 0, used_count: 0 };
        for (position, device) in devices.iter().enumerate() {
            occupancy.set(position, usage_of(&device.name));
        }
        occupancy
    }

    fn set(&mut self, position: usize, usage: Option<&DeviceUsage>) {
        let is_open = !usage.is_some_and(DeviceUsage::is_exclusive);
        self.open_count = self.open_count + usize::from(is_open) - usize::from(self.open.contains(position));
        self.used_count = self.used_count + usize::from(usage.is_some()) - usize::from(self.used.contains(position));
        self.open.set(position, is_open);
        self.used.set(position, usage.is_some());
        self.shared.set(position, usage.is_some_and(DeviceUsage::is_shared));
    }

    /// Returns the number of devices that no claim holds exclusively.
    pub(crate) const fn open_count(&self) -> usize {
        self.open_count
    }

    /// Returns the number of devices that are held or shared.
    pub(crate) const fn used_count(&self) -> usize {
        self.used_count
    }

    /// Writes which devices are in use and how, as bits: one word that tells how, then the words. Returns the positions of the
    /// devices that are shared.
    pub(super) fn write<W: Extend<u64>>(&self, words: &mut W) -> impl Iterator<Item = usize> + use<'_, W> {
        let mut shared = self.shared.next(0);
        words.extend([u64::from(shared.is_some())]);
        words.extend(self.used.words());
        if shared.is_some() {
            words.extend(self.open.words().chain(self.shared.words()));
        }
        std::iter::from_fn(move || {
            let position = shared?;
            shared = self.shared.next(position + 1);
            Some(position)
        })
    }

    /// Returns the first device at a position or after it that no claim holds exclusively.
    pub(crate) fn next_open(&self, from: usize) -> Option<usize> {
        self.open.next(from)
    }

    /// Returns true if a claim holds the device exclusively.
    pub(crate) fn is_held(&self, position: usize) -> bool {
        !self.open.contains(position)
    }

    /// Returns true if the device is held or shared.
    pub(crate) fn is_used(&self, position: usize) -> bool {
        self.used.contains(position)
    }
}

/// Occupancies of one pool, by the devices that a node sees.
#[derive(Debug, Default)]
pub(super) struct Occupancies(RwLock<SmallVec<[Arc<Occupancy>; 1]>>);

impl Clone for Occupancies {
    fn clone(&self) -> Self {
        Self(RwLock::new(self.0.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl Occupancies {
    /// Returns the occupancy of a node's view of the pool, computed when it is first asked for.
    pub(super) fn find<'u>(
        &self,
        devices: &Arc<PoolDevices>,
        usage_of: impl Fn(&str) -> Option<&'u DeviceUsage>,
    ) -> Arc<Occupancy> {
        let is_it = |known: &&Arc<Occupancy>| Arc::ptr_eq(&known.devices, devices);
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(is_it) {
            return Arc::clone(known);
        }
        drop(known);
        let found = Arc::new(Occupancy::new(devices, usage_of));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push(Arc::clone(&found));
        found
    }

    /// Follows a change of one device.
    pub(super) fn update(&mut self, name: &str, usage: Option<&DeviceUsage>) {
        let known = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        known.retain(|occupancy| occupancy.devices.len() > SMALL);
        for occupancy in known.iter_mut() {
            if let Some(position) = occupancy.devices.position(name) {
                Arc::make_mut(occupancy).set(position, usage);
            }
        }
    }
}
