//! Cached facts about a device that do not depend on a request.

use dra_selector::internal::is_sound;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

use super::flags::{Flags, bit};
use crate::cluster::capacity::is_plain;

/// Cell for facts about a device, computed on first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceFacts(Flags);

/// Facts about a device, as bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts(u8);

const SOUND: u8 = 1;
const PLAIN_CAPACITIES: u8 = 2;
const LISTS: u8 = 4;

impl DeviceFacts {
    pub(crate) fn look(&self, device: &Device) -> Facts {
        Facts(self.0.get_or_find(|| {
            let all_plain = device.capacity.iter().flatten().all(|(_, capacity)| is_plain(capacity));
            let has_lists = first_list(device).is_some();
            bit(is_sound(device), SOUND) | bit(all_plain, PLAIN_CAPACITIES) | bit(has_lists, LISTS)
        }))
    }
}

impl Facts {
    /// Returns true if all attributes and capacities of the device have valid values, so that selectors can be
    /// evaluated.
    pub(crate) const fn is_sound(self) -> bool {
        self.0 & SOUND != 0
    }

    /// Returns true if an attribute of the device is a list.
    pub(crate) const fn has_lists(self) -> bool {
        self.0 & LISTS != 0
    }

    /// Returns true if no capacity of the device has a request policy and all values are simple numbers.
    pub(crate) const fn has_plain_capacities(self) -> bool {
        self.0 & PLAIN_CAPACITIES != 0
    }
}

/// Returns the name of the first attribute of a device that is a list.
pub(crate) fn first_list(device: &Device) -> Option<&str> {
    let is_list = |attribute: &DeviceAttribute| {
        attribute.bools.is_some()
            || attribute.ints.is_some()
            || attribute.strings.is_some()
            || attribute.versions.is_some()
    };
    device.attributes.iter().flatten().find(|(_, attribute)| is_list(attribute)).map(|(name, _)| name.as_str())
}
