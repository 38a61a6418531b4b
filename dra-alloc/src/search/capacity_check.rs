//! Answer to the question if a device has the capacities that an alternative asks for.

use dra_attrs::Quantity;
use smallvec::SmallVec;

use crate::cluster::capacity::Amount;

/// Result of comparing a device's capacities with the amounts that an alternative consumes; by capacity name, the first
/// miss counts.
#[derive(Debug)]
pub(crate) enum CapacityCheck<'s> {
    /// A capacity can't serve the alternative, even if nothing else uses the device.
    Never(CapacityMiss<'s>),
    Takes(SmallVec<[Amount<'s>; 1]>),
}

/// Reason why a device can't serve the requested capacities, even if nothing else uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CapacityMiss<'s> {
    /// The device has no capacity of this name.
    Missing(&'s str),
    /// The request policy of the capacity does not permit the amount.
    Policy { name: &'s str, wanted: Quantity },
    /// The value of the capacity is below the requested amount.
    TooSmall { name: &'s str, value: Quantity, wanted: Quantity },
}
