//! Sums over the pools of a status, for alerts and scaling.

use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequestStatus;

use crate::kep;

/// Sums over the listed pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// How many pools are listed with counts.
    pub pools: usize,
    /// All devices.
    pub total: i64,
    /// Those that claims hold.
    pub allocated: i64,
    /// Those that are left.
    pub available: i64,
    /// Those that are kept from being allocated.
    pub unavailable: i64,
    /// There are more pools, not listed or without counts: the sums are lower bounds.
    pub is_lower_bound: bool,
}

impl Totals {
    /// The sums of a status of the KEP.
    ///
    /// ```
    /// use poolstatus::kep::{PoolStatus, Status};
    /// use poolstatus::totals::Totals;
    /// let pools = [3, 1].map(|available_devices| PoolStatus { available_devices, ..PoolStatus::default() });
    /// let totals = Totals::of_kep(&Status { pools: pools.into(), truncated: true, ..Status::default() });
    /// assert!(totals.is_below(5) && totals.is_lower_bound);
    /// ```
    #[must_use]
    pub fn of_kep(status: &kep::Status) -> Self {
        let start = Self { is_lower_bound: status.truncated, ..Self::default() };
        status.pools.iter().fold(start, |totals, pool| {
            totals.with([pool.total_devices, pool.allocated_devices, pool.available_devices, pool.unavailable_devices])
        })
    }

    /// The sums of a shipped status.
    #[must_use]
    pub fn of_shipped(status: &ResourcePoolStatusRequestStatus) -> Self {
        let pools = status.pools.as_deref().unwrap_or_default();
        let is_truncated = usize::try_from(status.pool_count).is_ok_and(|count| pools.len() < count);
        let start = Self { is_lower_bound: is_truncated, ..Self::default() };
        pools.iter().fold(start, |totals, pool| {
            let counts = pool.total_devices.zip(pool.allocated_devices);
            let counts = counts.zip(pool.available_devices).zip(pool.unavailable_devices);
            match counts {
                Some((((total, allocated), available), unavailable)) => {
                    totals.with([total, allocated, available, unavailable])
                }
                None => Self { is_lower_bound: true, ..totals },
            }
        })
    }

    /// Whether fewer devices than a threshold are available, as far as the status knows. With a lower bound there may be
    /// more.
    #[must_use]
    pub const fn is_below(&self, threshold: i64) -> bool {
        self.available < threshold
    }

    fn with(self, counts: [i32; 4]) -> Self {
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
