//! Parts of a `ResourceSlice` that several modules read.

use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, ResourceSlice};

/// Returns the devices of a slice.
#[must_use]
pub fn slice_devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

/// Returns the name of a slice; empty if it has none.
#[must_use]
pub fn name_of(slice: &ResourceSlice) -> &str {
    slice.metadata.name.as_deref().unwrap_or_default()
}

/// Returns true if the attribute has a list value.
const fn is_list(attribute: &DeviceAttribute) -> bool {
    attribute.bools.is_some() || attribute.ints.is_some() || attribute.strings.is_some() || attribute.versions.is_some()
}

/// Returns the paths of the list attributes of a slice.
#[must_use]
pub fn list_fields(slice: &ResourceSlice) -> Vec<String> {
    let devices = slice.spec.devices.iter().flatten().enumerate();
    let attributes = devices.flat_map(|(index, device)| {
        let attributes = device.attributes.iter().flatten().filter(|(_, attribute)| is_list(attribute));
        attributes.map(move |(name, _)| format!("spec.devices[{index}].attributes[{name}]"))
    });
    attributes.collect()
}

/// Returns true if the device uses a feature that lowers the number of devices that a slice may have, in all releases.
/// From Kubernetes 1.36 on, a list attribute lowers it too ([`has_list`]).
#[must_use]
pub fn is_advanced(device: &Device) -> bool {
    let taints = device.taints.as_ref().is_some_and(|taints| !taints.is_empty());
    taints || consumes(device)
}

/// Returns true if the device has a list attribute.
#[must_use]
pub fn has_list(device: &Device) -> bool {
    device.attributes.iter().flatten().any(|(_, attribute)| is_list(attribute))
}

/// Returns true if the device consumes counters.
fn consumes(device: &Device) -> bool {
    device.consumes_counters.as_ref().is_some_and(|counters| !counters.is_empty())
}
