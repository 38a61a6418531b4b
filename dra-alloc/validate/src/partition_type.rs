//! Validation of `partitionTypeAttribute`: the attribute with the type of a partition (KEP-5677).

use dra_attrs::{FieldError, FieldPath, Gate, lookup_by_name};
use k8s_openapi::api::resource::v1::ResourceSliceSpec;

use super::context::{ValidationContext, json};
use super::names;

/// Checks `partitionTypeAttribute` of a slice: the name, unless it is the stored one, and that each device that
/// consumes counters has a string attribute of that name.
pub(super) fn check(
    spec: &ResourceSliceSpec,
    old: Option<&ResourceSliceSpec>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let Some(name) = &spec.partition_type_attribute else { return };
    let at_name = at.child("partitionTypeAttribute");
    if old.is_none_or(|old| old.partition_type_attribute.as_ref() != Some(name)) {
        check_name(name, &at_name, context);
    }
    let mut consumers = spec
        .devices
        .iter()
        .flatten()
        .enumerate()
        .filter(|(_, device)| device.consumes_counters.as_ref().is_some_and(|counters| !counters.is_empty()))
        .peekable();
    if consumers.peek().is_none() {
        let detail = "may only be set on a slice which declares devices that consume counters";
        return context.push(FieldError::invalid(&at_name, name, detail));
    }
    if !names::is_fully_qualified(name) {
        // No device can have an attribute of an invalid name: one error is enough.
        return;
    }
    let devices = at.child("devices");
    for (index, device) in consumers {
        let device_path = devices.index(index);
        let attributes = device_path.child("attributes");
        let at = attributes.key(name);
        let attribute =
            device.attributes.as_ref().and_then(|attributes| lookup_by_name(attributes, name, &spec.driver));
        match attribute {
            None => {
                let detail =
                    "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set";
                context.push(FieldError::required(&at, detail));
            }
            Some(attribute) if attribute.string.is_none() => {
                let detail = "must be a string value because `partitionTypeAttribute` names this attribute";
                context.push(FieldError::invalid(&at, json(attribute), detail));
            }
            Some(_) => {}
        }
    }
}

/// Checks a `partitionTypeAttribute` that differs from the stored one. It is rejected while the gate
/// `DRAPartitionableDevicesType` is off.
fn check_name(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if context.has(Gate::PartitionableDevicesType) {
        names::declared_fully_qualified(name, at, context);
    } else {
        context.push(FieldError::forbidden(at, ""));
    }
}
