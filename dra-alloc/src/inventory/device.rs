//! What a look at a device tells, whatever is asked of it.

use k8s_openapi::api::resource::v1::Device;

use super::flags::{Flags, bit};
use crate::capacity::is_plain;
use crate::selector::is_sound;

/// Facts about a device, found when they are first needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceFacts(Flags);

/// Facts about a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts(u8);

const SOUND: u8 = 1;
const PLAIN_CAPACITIES: u8 = 2;

impl DeviceFacts {
    pub(crate) fn of(&self, device: &Device) -> Facts {
        Facts(self.0.get_or_find(|| {
            let all_plain = device.capacity.iter().flatten().all(|(_, capacity)| is_plain(capacity));
            bit(is_sound(device), SOUND) | bit(all_plain, PLAIN_CAPACITIES)
        }))
    }
}

impl Facts {
    /// Whether all attributes and capacities have valid values, so that selectors can be evaluated.
    pub(crate) const fn is_sound(self) -> bool {
        self.0 & SOUND != 0
    }

    /// Whether no capacity has a policy, and all are simple numbers.
    pub(crate) const fn has_plain_capacities(self) -> bool {
        self.0 & PLAIN_CAPACITIES != 0
    }
}
