//! Claims of the preemptor: those that have an allocation already, and the devices that the others need.

use k8s_openapi::api::resource::v1::{DeviceRequest, DeviceSubRequest, ResourceClaim};

/// Returns true for a claim that has an allocation.
pub(super) fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

/// Returns the number of devices that a claim needs at least, of those that can't be shared, if it has no allocation yet.
pub(crate) fn least_devices(claim: &ResourceClaim) -> usize {
    if is_allocated(claim) {
        return 0;
    }
    let requests = claim
        .spec
        .iter()
        .filter_map(|spec| spec.devices.as_ref())
        .flat_map(|devices| devices.requests.iter().flatten());
    requests.map(least_of_request).fold(0, usize::saturating_add)
}

fn least_of_request(request: &DeviceRequest) -> usize {
    let least = |mode: Option<&str>, count: Option<i64>| match mode {
        None | Some("ExactCount") => count.map_or(1, |count| usize::try_from(count).unwrap_or_default()),
        Some(_) => 0,
    };
    match (&request.exactly, request.first_available.as_deref()) {
        (Some(exactly), _) if exactly.admin_access == Some(true) => 0,
        (Some(exactly), _) => least(exactly.allocation_mode.as_deref(), exactly.count),
        (None, Some(alternatives)) => {
            let of_alternative = |request: &DeviceSubRequest| least(request.allocation_mode.as_deref(), request.count);
            alternatives.iter().map(of_alternative).min().unwrap_or_default()
        }
        (None, None) => 0,
    }
}
