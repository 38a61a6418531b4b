//! Equality of stored and wanted devices, as the API server and upstream's controller see it.
//!
//! Source: `DevicesDeepEqual` and `syncPool` of `resourceslicecontroller.go`.

use dra_device::internal::{TaintTimes, same_items};
use k8s_openapi::api::resource::v1::Device;

/// Returns true if the two lists of devices are the same to the API server, so that one need not be written over the
/// other.
///
/// Quantities are compared as numbers, and an absent list or map equals an empty one. The order of lists counts. A taint
/// without a time equals one with a time, since the API server sets it; two times may differ by a second, which is lost
/// on the way to the server and back. An absent pointer differs from one to `false` or to an empty text.
///
/// ```
/// use dra_node::driver::same_devices;
/// use k8s_openapi::api::resource::v1::Device;
/// # let device = |value: serde_json::Value| -> Device { serde_json::from_value(value).unwrap() };
/// let wanted = device(serde_json::json!({"name": "a", "capacity": {"memory": {"value": "1024Mi"}}}));
/// let stored = device(serde_json::json!({"name": "a", "capacity": {"memory": {"value": "1Gi"}}}));
/// assert!(same_devices([&wanted], [&stored]));
/// ```
pub fn same_devices<'a>(
    one: impl IntoIterator<Item = &'a Device>,
    other: impl IntoIterator<Item = &'a Device>,
) -> bool {
    same_items(one, other, TaintTimes::Near)
}
