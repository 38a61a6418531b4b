//! Validation of the capacities of a device.

use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Device, DeviceCapacity};

use super::context::ValidationContext;
use super::list::each_entry;
use super::{limits, names, quantity, request_policy};

/// Checks the names, values and request policies of capacities. Only a device with `allowMultipleAllocations` may have
/// request policies.
pub(super) fn check(device: &Device, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let Some(capacities) = &device.capacity else { return };
    let shared = device.allow_multiple_allocations == Some(true);
    each_entry(capacities, limits::QUALIFIED_NAME, at, context, names::qualified, |capacity, at, context| {
        check_one(capacity, shared, at, context);
    });
}

fn check_one(capacity: &DeviceCapacity, shared: bool, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let value = quantity::read(&capacity.value, &at.child("value"), context);
    let Some(policy) = &capacity.request_policy else { return };
    let at = at.child("requestPolicy");
    if !shared {
        return context.push(FieldError::forbidden(&at, "allowMultipleAllocations must be true"));
    }
    if let Some(value) = value {
        request_policy::check(policy, value, &at, context);
    }
}
