//! Quantities of a pool's capacities (KEP-5075), read once for each version of the pool, for the devices that are asked for.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::api::resource::v1::{Device, DeviceCapacity};

use crate::cluster::capacity::{Capacity, CapacityAmounts, InvalidCapacity};

/// Amounts of the capacities of each device.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolCapacities(OnceLock<Box<[OnceLock<OfDevice>]>>);

/// Amounts of one device's capacities, in the order of their names.
type OfDevice = Result<Box<[CapacityAmounts]>, Box<BadCapacity>>;

/// First capacity of a device, by its name, with a field that is not a quantity.
#[derive(Clone, Debug)]
pub(crate) struct BadCapacity {
    pub(crate) name: String,
    pub(crate) invalid: InvalidCapacity,
}

/// Capacities of one device, sorted by name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacities<'p> {
    objects: Option<&'p BTreeMap<String, DeviceCapacity>>,
    read: &'p [CapacityAmounts],
}

impl PoolCapacities {
    /// Returns the capacities of a device, by its number in a pool of `len` devices.
    pub(super) fn of_device<'p>(
        &'p self,
        len: usize,
        number: usize,
        device: &'p Device,
    ) -> Result<Capacities<'p>, &'p BadCapacity> {
        let all = self.0.get_or_init(|| std::iter::repeat_with(OnceLock::new).take(len).collect());
        let Some(known) = all.get(number) else { return Ok(Capacities::default()) };
        let read = known.get_or_init(|| read(device)).as_deref().map_err(|bad| &**bad)?;
        Ok(Capacities { objects: device.capacity.as_ref(), read })
    }
}

impl<'p> Capacities<'p> {
    pub(crate) const fn len(self) -> usize {
        self.read.len()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Capacity<'p>> {
        let named = self.objects.into_iter().flatten().zip(self.read);
        named.map(|((name, object), read)| Capacity::new(name, object, read))
    }
}

fn read(device: &Device) -> OfDevice {
    let read = |(name, capacity): (&String, &DeviceCapacity)| {
        CapacityAmounts::new(capacity).map_err(|invalid| Box::new(BadCapacity { name: name.clone(), invalid }))
    };
    device.capacity.iter().flatten().map(read).collect()
}
