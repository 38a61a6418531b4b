//! Devices that can be evaluated.

use dra_attrs::{Quantity, Version};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

use super::content::{Content, describe};
use super::plain;
use crate::error::EvaluationError;

/// Rejects a device with an invalid attribute or capacity, even if no expression reads it: Kubernetes converts all of
/// them before an evaluation. The first by name is reported.
pub(crate) fn check(device: &Device) -> Result<(), EvaluationError> {
    let invalid = |name: &str, reason| EvaluationError::Attribute { name: name.to_owned(), reason };
    for (name, value) in device.attributes.iter().flatten() {
        check_attribute(value).map_err(|reason| invalid(name, reason))?;
    }
    for (name, capacity) in device.capacity.iter().flatten() {
        if plain::units(&capacity.value.0).is_none() {
            Quantity::from_kube(&capacity.value).map_err(|error| invalid(name, error.to_string()))?;
        }
    }
    Ok(())
}

/// Checks that an attribute has a valid value; the error text says what is wrong.
fn check_attribute(attribute: &DeviceAttribute) -> Result<(), String> {
    let valid = |text: &str| match plain::version(text) {
        Some(_) => Ok(()),
        None => text.parse::<Version>().map(|_| ()).map_err(|error| describe(&error)),
    };
    match Content::of(attribute).ok_or("unsupported attribute value")? {
        Content::Version(version) => valid(version),
        Content::Versions(versions) => versions.iter().try_for_each(|version| valid(version)),
        _ => Ok(()),
    }
}

/// Returns true if all attributes and capacities of a device have valid values.
#[must_use]
pub fn is_sound(device: &Device) -> bool {
    check(device).is_ok()
}
