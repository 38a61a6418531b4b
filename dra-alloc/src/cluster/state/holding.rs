//! Holding: effect of one device result of an allocation on its device.

use dra_attrs::{Index, Quantity};
use dra_device::DeviceId;
use dra_device::internal::of_allocation;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult};

use super::state_error::StateError;

/// Treatment of device results with a `shareID`: as a share of the device, or as the whole device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shares {
    #[default]
    Apart,
    Exclusive,
}

/// Effect of a device result on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    Exclusive,
    Share(Share),
}

/// Share of a device, with the amounts that it consumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// ID of the share; `None` for consumed capacity of which no share is known.
    pub(super) id: Option<String>,
    /// Consumed amounts by capacity name, none of them negative.
    pub(super) consumed: Vec<(String, Quantity)>,
}

/// Returns the holdings of an allocation, each with its device result. Results with admin access hold nothing.
pub(super) fn holdings(
    allocation: &AllocationResult,
    shares: Shares,
) -> Result<Vec<(&DeviceRequestAllocationResult, Holding)>, StateError> {
    let counting = of_allocation(allocation).iter().enumerate().filter(|(_, result)| result.admin_access != Some(true));
    counting.map(|(index, result)| Ok((result, holding(result, Index::from(index), shares)?))).collect()
}

fn holding(
    result: &DeviceRequestAllocationResult,
    index: Index<DeviceRequestAllocationResult>,
    shares: Shares,
) -> Result<Holding, StateError> {
    let share = result.share_id.as_ref().filter(|_| shares == Shares::Apart);
    let Some(id) = share else { return Ok(Holding::Exclusive) };
    let device = || Box::new(DeviceId::new(&result.driver, &result.pool, &result.device));
    let amounts = result.consumed_capacity.iter().flatten().map(|(name, amount)| {
        let capacity = name.clone();
        match Quantity::from_kube(amount) {
            Ok(amount) if amount < Quantity::ZERO => {
                Err(StateError::NegativeCapacity { device: device(), index, capacity, amount })
            }
            Ok(amount) => Ok((capacity, amount)),
            Err(source) => Err(StateError::ConsumedCapacity { device: device(), index, capacity, source }),
        }
    });
    Ok(Holding::Share(Share { id: Some(id.clone()), consumed: amounts.collect::<Result<_, _>>()? }))
}
