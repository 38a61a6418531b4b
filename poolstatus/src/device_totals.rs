//! Sums of device counts over the pools of a status, for alerts and scaling.

use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequestStatus;

use crate::kep;

/// Sums of device counts over the listed pools of a status.
///
/// ```
/// use poolstatus::DeviceTotals;
/// use poolstatus::kep::{PoolStatus, Status};
/// let pools = [3, 1].map(|available_devices| PoolStatus { available_devices, ..PoolStatus::default() });
/// let totals = DeviceTotals::from(&Status { pools: pools.into(), truncated: true, ..Status::default() });
/// assert!(totals.is_below(5) && totals.is_lower_bound);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceTotals {
    /// Number of pools that are listed with counts.
    pub pools: usize,
    /// Number of devices in the listed pools.
    pub total: i64,
    /// Number of devices in the listed pools that claims hold.
    pub allocated: i64,
    /// Number of devices in the listed pools that can still be allocated.
    pub available: i64,
    /// Number of devices in the listed pools that taints keep from being allocated.
    pub unavailable: i64,
    /// True if some matching pools are not in the sums, so that the real totals may be higher.
    pub is_lower_bound: bool,
}

impl From<&kep::Status> for DeviceTotals {
    fn from(status: &kep::Status) -> Self {
        let start = Self { is_lower_bound: status.truncated, ..Self::default() };
        status.pools.iter().fold(start, |totals, pool| {
            totals.plus([pool.total_devices, pool.allocated_devices, pool.available_devices, pool.unavailable_devices])
        })
    }
}

impl From<&ResourcePoolStatusRequestStatus> for DeviceTotals {
    fn from(status: &ResourcePoolStatusRequestStatus) -> Self {
        let pools = status.pools.as_deref().unwrap_or_default();
        let is_truncated = usize::try_from(status.pool_count).is_ok_and(|count| pools.len() < count);
        let start = Self { is_lower_bound: is_truncated, ..Self::default() };
        pools.iter().fold(start, |totals, pool| {
            let counts = pool.total_devices.zip(pool.allocated_devices);
            let counts = counts.zip(pool.available_devices).zip(pool.unavailable_devices);
            match counts {
                Some((((total, allocated), available), unavailable)) => {
                    totals.plus([total, allocated, available, unavailable])
                }
                None => Self { is_lower_bound: true, ..totals },
            }
        })
    }
}

impl DeviceTotals {
    /// Returns true if the status counts fewer available devices than `threshold`. If the sums are lower bounds, there may
    /// be more.
    #[must_use]
    pub const fn is_below(&self, threshold: i64) -> bool {
        self.available < threshold
    }

    fn plus(self, counts: [i32; 4]) -> Self {
        let [total, allocated, available, unavailable] = counts.map(i64::from);
        Self {
            pools: self.pools.saturating_add(1),
            total: self.total.saturating_add(total),
            allocated: self.allocated.saturating_add(allocated),
            available: self.available.saturating_add(available),
            unavailable: self.unavailable.saturating_add(unavailable),
            is_lower_bound: self.is_lower_bound,
        }
    }
}
