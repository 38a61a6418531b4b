//! Rejection of new `skipNodeOperations` values while the gate `Gate::OptionalNodeOperations` is off (KEP-5945).
//! Stored values stay valid.

use std::collections::BTreeMap;

use dra_attrs::{FieldError, FieldPath};
use dra_device::allocated_devices;
use dra_device::skip::SkipDeclaration;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim, ResourceSlice};

use super::context::ValidationContext;
use super::skip_operations::FIELD;

/// Checks that a slice does not set `skipNodeOperations`, unless the stored slice has the same value.
pub(super) fn check_slice(
    new: &ResourceSlice,
    old: Option<&ResourceSlice>,
    gate: &str,
    context: &mut ValidationContext,
) {
    let old = old.and_then(|old| old.spec.skip_node_operations.as_deref());
    let spec = FieldPath::new("spec");
    check(new.spec.skip_node_operations.as_deref(), &[old], gate, &spec.child(FIELD), context);
}

/// Checks that no allocation result sets `skipNodeOperations`, unless a stored result for the same request, device and
/// share has the same value. The order of results does not matter, and several may be for the same device.
pub(super) fn check_claim(new: &ResourceClaim, old: &ResourceClaim, gate: &str, context: &mut ValidationContext) {
    let mut stored: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for result in allocated_devices(old) {
        stored.entry(identity(result)).or_default().push(result.skip_node_operations.as_deref());
    }
    let status = FieldPath::new("status");
    let allocation = status.child("allocation");
    let devices = allocation.child("devices");
    let at_results = devices.child("results");
    for (index, result) in allocated_devices(new).iter().enumerate() {
        let old = stored.get(&identity(result)).map(Vec::as_slice).unwrap_or_default();
        let at = at_results.index(index);
        check(result.skip_node_operations.as_deref(), old, gate, &at.child(FIELD), context);
    }
}

fn check(
    new: Option<&[String]>,
    old: &[Option<&[String]>],
    gate: &str,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let set = |names: Option<&[String]>| SkipDeclaration::from_kube(names).set();
    let wanted = set(new);
    if !wanted.is_empty() && !old.iter().any(|old| set(*old) == wanted) {
        let detail = format!("must not be set while the feature gate {gate} is disabled");
        context.push(FieldError::forbidden(at, detail));
    }
}

fn identity(result: &DeviceRequestAllocationResult) -> (&str, &str, &str, &str, Option<&str>) {
    (&result.request, &result.driver, &result.pool, &result.device, result.share_id.as_deref())
}
