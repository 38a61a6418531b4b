//! The capacities of a device.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Device, DeviceCapacity};

use super::findings::Findings;
use super::list::each_entry;
use super::{limits, names, quantity, request_policy};

/// Checks the names, the amounts and the request policies, which only a device that can be shared may have.
pub(super) fn check(device: &Device, at: &FieldPath<'_>, findings: &mut Findings) {
    let Some(capacities) = &device.capacity else { return };
    let shared = device.allow_multiple_allocations == Some(true);
    each_entry(capacities, limits::QUALIFIED_NAME, at, findings, names::qualified, |capacity, at, findings| {
        check_one(capacity, shared, at, findings);
    });
}

fn check_one(capacity: &DeviceCapacity, shared: bool, at: &FieldPath<'_>, findings: &mut Findings) {
    let value = quantity::read(&capacity.value, &at.child("value"), findings);
    let Some(policy) = &capacity.request_policy else { return };
    let at = at.child("requestPolicy");
    if !shared {
        return findings.push(FieldError::forbidden(&at, "allowMultipleAllocations must be true"));
    }
    if let Some(value) = value {
        request_policy::check(policy, value, &at, findings);
    }
}
