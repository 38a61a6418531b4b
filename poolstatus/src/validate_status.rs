//! Validation of a status that is written to a `v1alpha3` request.
//!
//! Source: the declarative and hand-written validation of `ResourcePoolStatusRequest`, Kubernetes 1.37. All rules are
//! checked except those of the object's metadata.

use std::collections::BTreeSet;

use dra_attrs::internal::release::ConditionRules;
use dra_attrs::{BadValue, ErrorType, FieldError, FieldErrors, FieldPath, NameFormat, Quantity, QuantityFormat};
use dra_device::internal::validate_conditions;
use k8s_openapi::api::resource::v1alpha3::{
    PartitionTypeStatus, PoolStatus, ResourcePoolStatusRequestStatus, ShareableCapacityStatus, ShareableSummaryStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource as kube;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::availability_report::MAX_VALIDATION_ERROR_LEN;
use crate::names::{check_driver, check_pool};
use crate::status_request::StatusRequest;
use crate::summary_error::{MAX_PARTITION_TYPES, MAX_SHAREABLE_CAPACITIES};

/// Maximum number of conditions in a status.
const MAX_CONDITIONS: usize = 10;

/// Validates a status that is written to a request, as the API server of Kubernetes 1.37 does. `old` is the stored status.
///
/// A status is written once: a status that differs from the stored one is refused, and a status that equals it is not
/// checked further. A pool of generation 0 is refused although slices may have that generation, since the server takes the
/// 0 for a missing value.
///
/// ```
/// use k8s_openapi::api::resource::v1alpha3::{PoolStatus, ResourcePoolStatusRequestStatus};
/// use poolstatus::validate_status;
/// let (driver, pool_name) = ("gpu.example.com".to_owned(), "node-1".to_owned());
/// let pool = PoolStatus { driver, pool_name, generation: 0, ..PoolStatus::default() };
/// let status = ResourcePoolStatusRequestStatus { pool_count: 1, pools: Some(vec![pool]), conditions: None };
/// assert_eq!(validate_status(None, &status).to_string(), "status.pools[0].generation: Required value");
/// ```
#[must_use]
pub fn validate_status(
    old: Option<&ResourcePoolStatusRequestStatus>,
    new: &ResourcePoolStatusRequestStatus,
) -> FieldErrors {
    let path = FieldPath::new("status");
    if let Some(old) = old {
        let error = || FieldError::new(ErrorType::Invalid, &path, BadValue::Omitted, "field is immutable");
        return (normalized(old) != normalized(new)).then(error).into_iter().collect();
    }
    let mut errors: FieldErrors = minimum(&path.child("poolCount"), new.pool_count.into(), 0).into_iter().collect();
    check_pools(&path.child("pools"), new.pools.as_deref().unwrap_or_default(), &mut errors);
    check_conditions(&path.child("conditions"), new.conditions.as_deref().unwrap_or_default(), &mut errors);
    errors
}

fn minimum(field: &FieldPath<'_>, value: i64, min: i64) -> Option<FieldError> {
    (value < min).then(|| FieldError::invalid(field, value, format!("must be greater than or equal to {min}")))
}

fn required(field: &FieldPath<'_>, value: &str) -> Option<FieldError> {
    value.is_empty().then(|| FieldError::required(field, ""))
}

/// Returns true if a list has at most `max` items, and adds an error otherwise. The items of a longer list are not
/// checked.
fn fits(field: &FieldPath<'_>, len: usize, max: usize, errors: &mut FieldErrors) -> bool {
    if len > max {
        errors.push(FieldError::too_many(field, len, max));
    }
    len <= max
}

fn check_pools(field: &FieldPath<'_>, pools: &[PoolStatus], errors: &mut FieldErrors) {
    if fits(field, pools.len(), usize::try_from(StatusRequest::MAX_LIMIT).unwrap_or_default(), errors) {
        pools.iter().enumerate().for_each(|(index, pool)| check_pool_status(&field.index(index), pool, errors));
    }
}

fn check_pool_status(field: &FieldPath<'_>, pool: &PoolStatus, errors: &mut FieldErrors) {
    let counts = [
        ("resourceSliceCount", pool.resource_slice_count, 1),
        ("totalDevices", pool.total_devices, 0),
        ("allocatedDevices", pool.allocated_devices, 0),
        ("availableDevices", pool.available_devices, 0),
        ("unavailableDevices", pool.unavailable_devices, 0),
    ];
    errors.extend(check_driver(&field.child("driver"), &pool.driver));
    errors.extend(check_pool(&field.child("poolName"), &pool.pool_name));
    errors.extend(check_generation(&field.child("generation"), pool.generation));
    for (child, count, min) in counts {
        errors.extend(count.and_then(|count| minimum(&field.child(child), count.into(), min)));
    }
    errors.extend(pool.node_name.iter().flat_map(|node| NameFormat::LongName.check(node, &field.child("nodeName"))));
    if pool.validation_error.as_ref().is_some_and(|error| error.len() > MAX_VALIDATION_ERROR_LEN) {
        errors.push(FieldError::too_long(&field.child("validationError"), MAX_VALIDATION_ERROR_LEN));
    }
    let partitions = pool.partition_summary.as_deref().unwrap_or_default();
    check_partitions(&field.child("partitionSummary"), partitions, errors);
    if let Some(summary) = &pool.shareable_summary {
        check_shareable(&field.child("shareableSummary"), summary, errors);
    }
}

/// Normalizes a status for comparison: quantities compare by value, and an empty list equals a missing one.
fn normalized(status: &ResourcePoolStatusRequestStatus) -> ResourcePoolStatusRequestStatus {
    let mut status = status.clone();
    for pool in status.pools.get_or_insert_default() {
        pool.partition_summary.get_or_insert_default();
        let capacities = pool.shareable_summary.as_mut().map(|summary| summary.capacity.get_or_insert_default());
        for capacity in capacities.into_iter().flatten() {
            let ShareableCapacityStatus { total, consumed, available, .. } = capacity;
            [total, consumed, available].into_iter().for_each(make_canonical);
        }
    }
    for condition in status.conditions.get_or_insert_default() {
        condition.observed_generation.get_or_insert_default();
    }
    status
}

fn make_canonical(amount: &mut kube::Quantity) {
    if let Ok(read) = Quantity::from_kube(amount) {
        *amount = Quantity::from_nanos(read.nanos(), QuantityFormat::DecimalSi).to_kube();
    }
}

/// Validates the required generation of a pool: 0 counts as missing, and a negative value is invalid.
fn check_generation(field: &FieldPath<'_>, generation: i64) -> Option<FieldError> {
    if generation == 0 { Some(FieldError::required(field, "")) } else { minimum(field, generation, 0) }
}

fn check_partitions(field: &FieldPath<'_>, types: &[PartitionTypeStatus], errors: &mut FieldErrors) {
    if !fits(field, types.len(), MAX_PARTITION_TYPES, errors) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in types.iter().enumerate() {
        let field = field.index(index);
        if !seen.insert((&entry.attribute, &entry.type_)) {
            errors.push(FieldError::duplicate(&field, format!("{}/{}", entry.attribute, entry.type_)));
        }
        errors.extend(required(&field.child("attribute"), &entry.attribute));
        errors.extend(required(&field.child("type"), &entry.type_));
        errors.extend(minimum(&field.child("total"), entry.total.into(), 0));
        errors.extend(minimum(&field.child("allocatable"), entry.allocatable.into(), 0));
    }
}

fn check_shareable(field: &FieldPath<'_>, summary: &ShareableSummaryStatus, errors: &mut FieldErrors) {
    let (full, partial) = (summary.fully_available_devices, summary.partially_available_devices);
    errors.extend(minimum(&field.child("fullyAvailableDevices"), full.into(), 0));
    errors.extend(minimum(&field.child("partiallyAvailableDevices"), partial.into(), 0));
    let field = field.child("capacity");
    let capacities = summary.capacity.as_deref().unwrap_or_default();
    if !fits(&field, capacities.len(), MAX_SHAREABLE_CAPACITIES, errors) {
        return;
    }
    // The API server accepts duplicate names.
    for (index, capacity) in capacities.iter().enumerate() {
        let ShareableCapacityStatus { name, total, consumed, available } = capacity;
        let field = field.index(index);
        errors.extend(required(&field.child("name"), name));
        for (child, amount) in [("total", total), ("consumed", consumed), ("available", available)] {
            errors.extend(required(&field.child(child), &amount.0));
        }
    }
}

fn check_conditions(field: &FieldPath<'_>, conditions: &[Condition], errors: &mut FieldErrors) {
    if fits(field, conditions.len(), MAX_CONDITIONS, errors) {
        errors.extend(validate_conditions(conditions, field, ConditionRules::Declared));
    }
}
