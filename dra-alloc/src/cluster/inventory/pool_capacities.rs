//! Quantities of a pool's capacities (KEP-5075), read once for each version of the pool, for the devices that are asked for.

use std::sync::OnceLock;

use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::Device;

use crate::cluster::capacity::{Capacity, parsed};

/// Quantities of each device's capacities and their request policies, in the order in which [`Capacity::read`] asks for
/// them; `None` if one is not a quantity.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolCapacities(OnceLock<Box<[OnceLock<OfDevice>]>>);

/// Quantities of one device.
type OfDevice = Option<Box<[Quantity]>>;

impl PoolCapacities {
    /// Returns the quantities of a device, by its number in a pool of `len` devices.
    pub(super) fn quantities(&self, len: usize, number: usize, device: &Device) -> Option<&[Quantity]> {
        let all = self.0.get_or_init(|| std::iter::repeat_with(OnceLock::new).take(len).collect());
        all.get(number)?.get_or_init(|| read(device)).as_deref()
    }
}

fn read(device: &Device) -> Option<Box<[Quantity]>> {
    let mut quantities = Vec::new();
    for (name, capacity) in device.capacity.iter().flatten() {
        let parse = |field, text| parsed(field, text).inspect(|quantity| quantities.push(*quantity));
        Capacity::read(name, capacity, parse).ok()?;
    }
    Some(quantities.into())
}
