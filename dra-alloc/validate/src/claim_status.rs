//! Validation of the status of a claim: allocation, `reservedFor` and the drivers' status of its devices.

use std::collections::BTreeSet;

use dra_attrs::internal::release::ChangedAllocation;
use dra_attrs::{BadValue, FieldError, FieldPath};
use dra_device::internal::{Same, TaintTimes};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus};

use super::context::ValidationContext;
use super::list::List;
use super::request_names::RequestNames;
use super::{allocation, device_status, limits};

/// Checks an update of the status of a claim.
pub(super) fn check(new: &ResourceClaim, old: &ResourceClaim, context: &mut ValidationContext) {
    let empty = ResourceClaimStatus::default();
    let status = new.status.as_ref().unwrap_or(&empty);
    let old_status = old.status.as_ref().unwrap_or(&empty);
    let at = FieldPath::new("status");
    let at_consumers = at.child("reservedFor");
    let consumers = List::new(status.reserved_for.as_ref()).at_most(limits::RESERVED_FOR).keyed_by("uid");
    consumers.each_unique(&at_consumers, context, |consumer| consumer.uid.as_str(), check_consumer);
    device_status::check_list(status, &at.child("devices"), context);
    check_consumers(new, status, old_status, &at_consumers, context);
    check_allocation(new, status, old_status, &at.child("allocation"), context);
}

fn check_consumer(consumer: &ResourceClaimConsumerReference, at: &FieldPath<'_>, context: &mut ValidationContext) {
    for (field, value) in [("resource", &consumer.resource), ("name", &consumer.name), ("uid", &consumer.uid)] {
        if value.is_empty() {
            context.push(FieldError::required(&at.child(field), ""));
        }
    }
}

/// Checks that only an allocated claim has consumers, and that a claim with a deletion timestamp gets no new ones.
fn check_consumers(
    claim: &ResourceClaim,
    new: &ResourceClaimStatus,
    old: &ResourceClaimStatus,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let consumers = new.reserved_for.as_deref().unwrap_or_default();
    if consumers.is_empty() {
        return;
    }
    if new.allocation.is_none() {
        return context.push(FieldError::forbidden(at, "may not be specified when `allocated` is not set"));
    }
    let key = |consumer: &ResourceClaimConsumerReference| {
        let ResourceClaimConsumerReference { api_group, name, resource, uid } = consumer.clone();
        (api_group.unwrap_or_default(), name, resource, uid)
    };
    let known: BTreeSet<_> = old.reserved_for.iter().flatten().map(key).collect();
    let is_deleted = claim.metadata.deletion_timestamp.is_some();
    if is_deleted && consumers.iter().any(|consumer| !known.contains(&key(consumer))) {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        context.push(FieldError::forbidden(at, detail));
    }
}

fn check_allocation(
    claim: &ResourceClaim,
    new: &ResourceClaimStatus,
    old: &ResourceClaimStatus,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    match (&new.allocation, &old.allocation) {
        (None, _) => {}
        (Some(allocation), Some(old)) => {
            if !allocation.same(old, TaintTimes::Exact) {
                let detail = match context.rules.validation.changed_allocation {
                    ChangedAllocation::Immutable => "field is immutable",
                    ChangedAllocation::OnceSet => "field cannot be modified once set",
                };
                context.push(FieldError::invalid(at, BadValue::literal("null"), detail));
            }
        }
        (Some(allocation), None) => {
            let requests = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
            let requests = requests.map(RequestNames::from_claim).unwrap_or_default();
            allocation::check(allocation, &requests, at, context);
        }
    }
}
