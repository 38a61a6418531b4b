//! Validation of a new allocation. (That a stored one is not modified is checked in `claim_status`.)

use dra_attrs::internal::release::Strictness;
use dra_attrs::{FieldError, FieldPath};
use dra_device::internal::of_allocation;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult, ResourceClaimStatus,
};

use super::context::ValidationContext;
use super::list::List;
use super::request_names::RequestNames;
use super::{binding, config, limits, names, node_selector, quantity, skip_operations, taint};

const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];

/// Returns the device results in the status of a claim.
pub(super) fn results(status: Option<&ResourceClaimStatus>) -> &[DeviceRequestAllocationResult] {
    status.and_then(|status| status.allocation.as_ref()).map(of_allocation).unwrap_or_default()
}

/// Checks the device results, the configuration and the node selector of an allocation.
pub(super) fn check(
    allocation: &AllocationResult,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if let Some(devices) = &allocation.devices {
        let at = at.child("devices");
        List::new(devices.results.as_ref()).at_most(limits::RESULTS).each(
            &at.child("results"),
            context,
            |result, at, context| check_result(result, requests, at, context),
        );
        List::new(devices.config.as_ref()).at_most(limits::ALLOCATION_CONFIG).each(
            &at.child("config"),
            context,
            |one, at, context| check_config(one, requests, at, context),
        );
    }
    if let Some(selector) = &allocation.node_selector {
        node_selector::check(selector, &at.child("nodeSelector"), context);
    }
}

fn check_result(
    result: &DeviceRequestAllocationResult,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    requests.check(&result.request, &at.child("request"), context);
    names::declared_driver(&result.driver, &at.child("driver"), context);
    names::declared_pool(&result.pool, &at.child("pool"), context);
    names::label(&result.device, &at.child("device"), context);
    let conditions = binding::Conditions {
        success: result.binding_conditions.as_ref(),
        failure: result.binding_failure_conditions.as_ref(),
    };
    binding::check(conditions, at, context);
    match context.rules.validation.allocated_tolerations {
        Strictness::Refused => taint::check_tolerations(result.tolerations.as_ref(), at, context),
        Strictness::Accepted => {}
    }
    if let Some(share) = &result.share_id {
        names::uuid(share, &at.child("shareID"), context);
    }
    let consumed = at.child("consumedCapacity");
    for (name, amount) in result.consumed_capacity.iter().flatten() {
        quantity::read(amount, &consumed.key(name), context);
    }
    let skip = result.skip_node_operations.as_deref().unwrap_or_default();
    skip_operations::check(skip, None, &at.child(skip_operations::FIELD), context);
}

fn check_config(
    one: &DeviceAllocationConfiguration,
    requests: &RequestNames<'_>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let at_source = at.child("source");
    match one.source.as_str() {
        "" => context.push(FieldError::required(&at_source, "")),
        known if SOURCES.contains(&known) => {}
        other => context.push(FieldError::not_supported(&at_source, other, &SOURCES)),
    }
    requests.check_list(one.requests.as_ref(), &at.child("requests"), context);
    config::check(one.opaque.as_ref(), config::Size::Limited, at, context);
}
