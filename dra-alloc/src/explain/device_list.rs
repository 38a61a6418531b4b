//! List of devices in an explanation, which shares the node's slices instead of copying names.

use std::fmt;
use std::sync::Arc;

use dra_device::DeviceId;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use crate::cluster::inventory::pool_devices::PoolDevices;

/// Devices in the order of the search, named when they are read.
///
/// Shares the slices that the devices are in, and so keeps them in memory. Two lists are equal if they name the same devices.
#[derive(Clone, Default)]
pub struct DeviceList {
    runs: SmallVec<[Run; 1]>,
}

/// Devices of one pool that follow each other.
#[derive(Clone)]
struct Run {
    devices: Arc<PoolDevices>,
    /// Position of the first device.
    start: usize,
    len: usize,
}

impl DeviceList {
    /// Adds `len` devices of a pool from a position on.
    pub(super) fn add(&mut self, devices: &Arc<PoolDevices>, start: usize, len: usize) {
        self.runs.push(Run { devices: Arc::clone(devices), start, len });
    }

    /// Puts the devices at the same positions of other pools in the place of the listed ones.
    pub(super) fn replace(&mut self, other: impl Fn(&Arc<PoolDevices>) -> Arc<PoolDevices>) {
        for run in &mut self.runs {
            run.devices = other(&run.devices);
        }
    }

    /// Returns the number of devices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len).sum()
    }

    /// Returns true if no device is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the devices.
    ///
    /// # Complexity
    /// Linear in the number of devices, and of slices before them.
    pub fn iter(&self) -> impl Iterator<Item = DeviceId> {
        let devices = self.runs.iter().flat_map(|run| run.devices.with_slices().skip(run.start).take(run.len));
        devices.map(|(slice, device)| DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name))
    }
}

impl PartialEq for DeviceList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for DeviceList {}

impl fmt::Debug for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Writes the identity of each device.
impl Serialize for DeviceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
