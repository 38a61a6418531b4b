//! Parts of a `ResourceSlice` that several modules read.

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

/// Returns the devices of a slice.
#[must_use]
pub fn slice_devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

/// Returns the name of a slice; empty if it has none.
pub(crate) fn name_of(slice: &ResourceSlice) -> &str {
    slice.metadata.name.as_deref().unwrap_or_default()
}
