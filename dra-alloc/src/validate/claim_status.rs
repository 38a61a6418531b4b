//! The status of a claim: what is allocated, for whom, and what drivers say about it.

use std::collections::BTreeSet;

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus};

use super::equality::same;
use super::findings::{Findings, json};
use super::list::List;
use super::request_names::RequestNames;
use super::{allocation, device_status, limits};

/// Checks an update of the status.
pub(super) fn check(new: &ResourceClaim, old: &ResourceClaim, findings: &mut Findings) {
    let empty = ResourceClaimStatus::default();
    let status = new.status.as_ref().unwrap_or(&empty);
    let old_status = old.status.as_ref().unwrap_or(&empty);
    let at = FieldPath::new("status");
    let at_consumers = at.child("reservedFor");
    let consumers = List::new(status.reserved_for.as_ref()).at_most(limits::RESERVED_FOR);
    consumers.each_unique(&at_consumers, findings, |consumer| consumer.uid.as_str(), check_consumer);
    device_status::check_list(status, &at.child("devices"), findings);
    check_consumers(new, status, old_status, &at_consumers, findings);
    check_allocation(new, status, old_status, &at.child("allocation"), findings);
}

fn check_consumer(consumer: &ResourceClaimConsumerReference, at: &FieldPath<'_>, findings: &mut Findings) {
    for (field, value) in [("resource", &consumer.resource), ("name", &consumer.name), ("uid", &consumer.uid)] {
        if value.is_empty() {
            findings.push(FieldError::required(&at.child(field), ""));
        }
    }
}

/// Checks that only an allocated claim has consumers, and one that is being deleted gets no new ones.
fn check_consumers(
    claim: &ResourceClaim,
    new: &ResourceClaimStatus,
    old: &ResourceClaimStatus,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let consumers = new.reserved_for.as_deref().unwrap_or_default();
    if consumers.is_empty() {
        return;
    }
    if new.allocation.is_none() {
        return findings.push(FieldError::forbidden(at, "may not be specified when `allocated` is not set"));
    }
    let key = |consumer: &ResourceClaimConsumerReference| {
        let ResourceClaimConsumerReference { api_group, name, resource, uid } = consumer.clone();
        (api_group.unwrap_or_default(), name, resource, uid)
    };
    let known: BTreeSet<_> = old.reserved_for.iter().flatten().map(key).collect();
    let is_deleted = claim.metadata.deletion_timestamp.is_some();
    if is_deleted && consumers.iter().any(|consumer| !known.contains(&key(consumer))) {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        findings.push(FieldError::forbidden(at, detail));
    }
}

fn check_allocation(
    claim: &ResourceClaim,
    new: &ResourceClaimStatus,
    old: &ResourceClaimStatus,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    match (&new.allocation, &old.allocation) {
        (None, _) => {}
        (Some(allocation), Some(old)) => {
            if !same(allocation, old) {
                findings.push(FieldError::invalid(at, json(allocation), "field is immutable"));
            }
        }
        (Some(allocation), None) => {
            let requests = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
            let requests = requests.map(RequestNames::of).unwrap_or_default();
            allocation::check(allocation, &requests, at, findings);
        }
    }
}
