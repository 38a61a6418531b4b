//! An allocation that is written for the first time. Afterwards it stays as it is.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult};

use super::findings::Findings;
use super::list::List;
use super::request_names::RequestNames;
use super::{binding, config, limits, names, node_selector, quantity, skip_operations, taint};

const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];

/// Checks the devices, their configuration and the nodes.
pub(super) fn check(
    allocation: &AllocationResult,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    if let Some(devices) = &allocation.devices {
        let at = at.child("devices");
        List::new(devices.results.as_ref()).at_most(limits::RESULTS).each(
            &at.child("results"),
            findings,
            |result, at, findings| check_result(result, requests, at, findings),
        );
        List::new(devices.config.as_ref()).at_most(limits::ALLOCATION_CONFIG).each(
            &at.child("config"),
            findings,
            |one, at, findings| check_config(one, requests, at, findings),
        );
    }
    if let Some(selector) = &allocation.node_selector {
        node_selector::check(selector, &at.child("nodeSelector"), findings);
    }
}

fn check_result(
    result: &DeviceRequestAllocationResult,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    requests.check(&result.request, &at.child("request"), findings);
    names::driver(&result.driver, &at.child("driver"), findings);
    names::pool(&result.pool, &at.child("pool"), findings);
    names::label(&result.device, &at.child("device"), findings);
    let conditions = binding::Conditions {
        success: result.binding_conditions.as_ref(),
        failure: result.binding_failure_conditions.as_ref(),
    };
    binding::check(conditions, at, findings);
    taint::check_tolerations(result.tolerations.as_ref(), at, findings);
    if let Some(share) = &result.share_id {
        names::uuid(share, &at.child("shareID"), findings);
    }
    let consumed = at.child("consumedCapacity");
    for (name, amount) in result.consumed_capacity.iter().flatten() {
        quantity::read(amount, &consumed.key(name), findings);
    }
    let skip = result.skip_node_operations.as_deref().unwrap_or_default();
    skip_operations::check(skip, None, &at.child(skip_operations::FIELD), findings);
}

fn check_config(
    one: &DeviceAllocationConfiguration,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let at_source = at.child("source");
    match one.source.as_str() {
        "" => findings.push(FieldError::required(&at_source, "")),
        known if SOURCES.contains(&known) => {}
        other => findings.push(FieldError::not_supported(&at_source, other, &SOURCES)),
    }
    requests.check_list(one.requests.as_ref(), &at.child("requests"), findings);
    config::check(one.opaque.as_ref(), config::Size::Limited, at, findings);
}
