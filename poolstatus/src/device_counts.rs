//! Numbers of devices of one pool, and the four counts of devices in a status.

use dra_attrs::PoolStatusForm;
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::Device;

use crate::in_use::InUse;
use crate::taint::PoolTaints;

/// Numbers of devices of one pool, from which the counts in a status are computed for each profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceTally {
    /// Number of devices in the slices of the latest generation. A name that is listed twice counts twice.
    pub(crate) total: usize,
    /// Number of distinct device names in claims, including names that the pool does not have.
    pub(crate) claimed: usize,
    /// Number of distinct device names in claims, only of devices that the pool has.
    pub(crate) allocated: usize,
    /// Number of the pool's devices with a taint of effect `NoSchedule` or `NoExecute`.
    pub(crate) tainted: usize,
    /// Number of the pool's devices that are tainted and that no claim holds.
    pub(crate) unavailable: usize,
}

/// Counts of a pool's devices as a status reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceCounts {
    /// Value of `totalDevices` in the status.
    pub total: i32,
    /// Value of `allocatedDevices` in the status.
    pub allocated: i32,
    /// Value of `availableDevices` in the status.
    pub available: i32,
    /// Value of `unavailableDevices` in the status.
    pub unavailable: i32,
}

impl DeviceTally {
    /// Computes the counts of devices that a status reports under `profile`.
    pub(crate) fn counts(self, profile: Profile) -> DeviceCounts {
        match profile.rules().pool_status {
            PoolStatusForm::V1alpha3 => DeviceCounts::new(self.total, self.claimed, self.tainted),
            PoolStatusForm::Kep => DeviceCounts::new(self.total, self.allocated, self.unavailable),
        }
    }

    pub(crate) fn new<'s>(
        devices: impl Iterator<Item = &'s Device>,
        in_use: &InUse<'_>,
        taints: &PoolTaints<'_>,
    ) -> Self {
        let mut tally = Self { claimed: in_use.len(), ..Self::default() };
        let mut found = vec![false; in_use.len()];
        for device in devices {
            let held = in_use.position(&device.name);
            if let Some(found) = held.and_then(|position| found.get_mut(position)) {
                *found = true;
            }
            let tainted = taints.is_tainted(device);
            tally.total = tally.total.saturating_add(1);
            tally.tainted = tally.tainted.saturating_add(usize::from(tainted));
            tally.unavailable = tally.unavailable.saturating_add(usize::from(tainted && held.is_none()));
        }
        tally.allocated = found.into_iter().filter(|found| *found).count();
        tally
    }
}

impl DeviceCounts {
    fn new(total: usize, allocated: usize, unavailable: usize) -> Self {
        let available = total.saturating_sub(allocated).saturating_sub(unavailable);
        Self {
            total: to_i32(total),
            allocated: to_i32(allocated),
            available: to_i32(available),
            unavailable: to_i32(unavailable),
        }
    }
}

/// Converts a number to the type of the API's counts, saturating.
pub(crate) fn to_i32(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
