//! How much is left of devices that several claims may share.
//!
//! Source: the views of the pool status controller of Kubernetes 1.37.

use std::collections::BTreeMap;

use dra_alloc::inventory::pool::{Newest, devices_of};
use dra_attrs::quantity::Quantity;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{ShareableCapacityStatus, ShareableSummaryStatus};

use crate::amount::{Ordered, Sum};
use crate::in_use::InUse;
use crate::pool::{ViewError, count};

/// The most capacities of a pool's shareable devices.
pub(crate) const MAX_CAPACITIES: usize = 32;

/// What is left; nothing for a pool without shareable devices.
///
/// What is consumed is the sum over the whole pool, also of devices that are not listed any more. A capacity without a
/// readable value counts as nothing.
pub(crate) fn summary(
    pool: Newest<'_, &ResourceSlice>,
    in_use: &InUse<'_>,
) -> Result<Option<ShareableSummaryStatus>, ViewError> {
    let shareable: Vec<&Device> = pool.slices().flat_map(devices_of).filter(|device| is_shareable(device)).collect();
    if shareable.is_empty() {
        return Ok(None);
    }
    let partial = shareable.iter().filter(|device| in_use.contains(&device.name)).count();
    let mut totals: BTreeMap<&str, Sum<Ordered>> = BTreeMap::new();
    for (name, capacity) in shareable.iter().flat_map(|device| device.capacity.iter().flatten()) {
        totals.entry(name).or_default().add(Quantity::from_kube(&capacity.value).unwrap_or(Quantity::ZERO));
    }
    if totals.len() > MAX_CAPACITIES {
        let (driver, pool) = (pool.driver().to_owned(), pool.pool().to_owned());
        return Err(ViewError::TooManyCapacities { driver, pool, count: totals.len() });
    }
    let capacity: Vec<_> =
        totals.iter().map(|(name, total)| status(name, total.total(), in_use.consumed(name))).collect();
    Ok(Some(ShareableSummaryStatus {
        capacity: (!capacity.is_empty()).then_some(capacity),
        fully_available_devices: count(shareable.len().saturating_sub(partial)),
        partially_available_devices: count(partial),
    }))
}

pub(crate) fn is_shareable(device: &Device) -> bool {
    device.allow_multiple_allocations == Some(true)
}

/// What is available is written as the total is, and as what is consumed where the total is nothing: so apimachinery
/// subtracts. Less than nothing is consumed where a claim says so.
fn status(name: &str, total: Quantity, consumed: Quantity) -> ShareableCapacityStatus {
    let available = total.nanos().saturating_sub(consumed.nanos()).max(0);
    let format = if total.nanos() == 0 { consumed.format() } else { total.format() };
    ShareableCapacityStatus {
        name: name.to_owned(),
        total: total.to_kube(),
        consumed: consumed.to_kube(),
        available: Quantity::from_nanos(available, format).to_kube(),
    }
}
