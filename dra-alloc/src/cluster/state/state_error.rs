//! Errors of changes of the state.

use dra_attrs::{Index, Quantity, QuantityError};
use dra_device::DeviceId;
use k8s_openapi::api::resource::v1::DeviceRequestAllocationResult;

/// Reason why an allocation can't be added to the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A consumed capacity is not a valid quantity.
    #[error("devices.results[{index}].consumedCapacity[{capacity}] of device {device}: {source}")]
    ConsumedCapacity {
        /// Device of the allocation result.
        device: Box<DeviceId>,
        /// Index of the device result in its allocation.
        index: Index<DeviceRequestAllocationResult>,
        /// Name of the capacity.
        capacity: String,
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
    /// A consumed capacity is below zero.
    #[error("devices.results[{index}].consumedCapacity[{capacity}] of device {device}: must not be negative: {amount}")]
    NegativeCapacity {
        /// Device of the allocation result.
        device: Box<DeviceId>,
        /// Index of the device result in its allocation.
        index: Index<DeviceRequestAllocationResult>,
        /// Name of the capacity.
        capacity: String,
        /// The consumed amount.
        amount: Quantity,
    },
}
