//! Devices of a pool that a node can use, in search order: by slice name, then as in the slice.

use std::sync::{Arc, OnceLock};

use dra_device::pool::slice_devices;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

/// Devices of a pool that a node can use. Two pools with the same devices in memory have the same list.
#[derive(Debug, Default)]
pub(crate) struct PoolDevices {
    pub(super) slices: SmallVec<[Arc<ResourceSlice>; 1]>,
    len: usize,
    names: OnceLock<Names>,
}

/// Index of the devices of a large pool by name.
#[derive(Debug)]
struct Names {
    /// Position of the first device of each slice.
    starts: Box<[usize]>,
    /// Positions of the devices, sorted by device name.
    sorted: Box<[u32]>,
}

impl PoolDevices {
    pub(super) fn new(slices: SmallVec<[Arc<ResourceSlice>; 1]>) -> Self {
        let len = slices.iter().map(|slice| slice_devices(slice).len()).sum();
        Self { slices, len, names: OnceLock::new() }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the devices in search order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.slices.iter().flat_map(|slice| slice_devices(slice))
    }

    /// Returns the devices in search order, each with its slice.
    pub(crate) fn with_slices(&self) -> impl Iterator<Item = (&ResourceSlice, &Device)> {
        self.slices.iter().flat_map(|slice| slice_devices(slice).iter().map(move |device| (&**slice, device)))
    }

    /// Returns the position of the device that is named `name`.
    ///
    /// Logarithmic in the number of devices; the first time `n log n`.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        let names = self.names.get_or_init(|| self.names());
        let name_at = |position: &u32| self.at(names, *position).map(|device| device.name.as_str());
        let found = names.sorted.binary_search_by(|position| name_at(position).cmp(&Some(name))).ok()?;
        usize::try_from(*names.sorted.get(found)?).ok()
    }

    fn names(&self) -> Names {
        let starts = self.slices.iter().scan(0, |end, slice| {
            let start = *end;
            *end += slice_devices(slice).len();
            Some(start)
        });
        let starts = starts.collect();
        let mut named: Vec<(&str, u32)> = self.iter().map(|device| device.name.as_str()).zip(0..).collect();
        named.sort_unstable();
        Names { starts, sorted: named.into_iter().map(|(_, position)| position).collect() }
    }

    fn at(&self, names: &Names, position: u32) -> Option<&Device> {
        let position = usize::try_from(position).ok()?;
        let slice = names.starts.partition_point(|start| *start <= position).checked_sub(1)?;
        slice_devices(self.slices.get(slice)?).get(position - names.starts.get(slice)?)
    }
}
