//! The `shareableSummary` of a pool: remaining capacity of devices that several claims may share.
//!
//! Source: the views of the pool status controller of Kubernetes 1.37.

use std::collections::BTreeMap;

use dra_attrs::Quantity;
use dra_device::pool::{LatestGeneration, slice_devices};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{ShareableCapacityStatus, ShareableSummaryStatus};

use crate::device_counts::to_i32;
use crate::in_use::InUse;
use crate::quantity_sum::{FirstFormat, QuantitySum};
use crate::summary_error::{MAX_SHAREABLE_CAPACITIES, SummaryError};

/// Computes the shareable summary of a pool, or `None` for a pool without shareable devices.
///
/// The consumed amount is the sum over the whole pool, including devices that the pool no longer lists. A capacity without
/// a readable value counts as zero.
pub(crate) fn shareable_summary(
    pool: LatestGeneration<'_, &ResourceSlice>,
    in_use: &InUse<'_>,
) -> Result<Option<ShareableSummaryStatus>, SummaryError> {
    let shareable: Vec<&Device> = pool.slices().flat_map(slice_devices).filter(|device| is_shareable(device)).collect();
    if shareable.is_empty() {
        return Ok(None);
    }
    let partial = shareable.iter().filter(|device| in_use.contains(&device.name)).count();
    let mut totals: BTreeMap<&str, QuantitySum<FirstFormat>> = BTreeMap::new();
    for (name, capacity) in shareable.iter().flat_map(|device| device.capacity.iter().flatten()) {
        totals.entry(name).or_default().add(Quantity::from_kube(&capacity.value).unwrap_or(Quantity::ZERO));
    }
    if totals.len() > MAX_SHAREABLE_CAPACITIES {
        let (driver, pool) = (pool.driver().to_owned(), pool.pool().to_owned());
        return Err(SummaryError::TooManyCapacities { driver, pool, count: totals.len() });
    }
    let capacity: Vec<_> =
        totals.iter().map(|(name, total)| capacity_status(name, total.total(), in_use.consumed(name))).collect();
    Ok(Some(ShareableSummaryStatus {
        capacity: (!capacity.is_empty()).then_some(capacity),
        fully_available_devices: to_i32(shareable.len().saturating_sub(partial)),
        partially_available_devices: to_i32(partial),
    }))
}

/// Returns true if several claims may hold the device at once.
pub(crate) fn is_shareable(device: &Device) -> bool {
    device.allow_multiple_allocations == Some(true)
}

/// Computes the total, consumed and available amount of one capacity. The available amount has the format of the total,
/// or of the consumed amount if the total is zero, as apimachinery subtracts. The consumed amount may be negative,
/// because claims may hold negative amounts.
fn capacity_status(name: &str, total: Quantity, consumed: Quantity) -> ShareableCapacityStatus {
    let available = total.nanos().saturating_sub(consumed.nanos()).max(0);
    let format = if total.nanos() == 0 { consumed.format() } else { total.format() };
    ShareableCapacityStatus {
        name: name.to_owned(),
        total: total.to_kube(),
        consumed: consumed.to_kube(),
        available: Quantity::from_nanos(available, format).to_kube(),
    }
}
