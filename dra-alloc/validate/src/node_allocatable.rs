//! Validation of `nodeAllocatableResources`: node resources that a device provides or uses as overhead (KEP-5517).

use std::collections::BTreeMap;

use dra_attrs::{FieldError, FieldPath, Quantity};
use k8s_openapi::api::resource::v1::{Device, DeviceCapacity, NodeAllocatableMapping, NodeAllocatableOverhead};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::context::ValidationContext;
use super::{names, quantity};

/// Checks each node resource of a device.
pub(super) fn check(device: &Device, at: &FieldPath<'_>, context: &mut ValidationContext) {
    for (name, resource) in device.node_allocatable_resources.iter().flatten() {
        let at = at.key(name);
        if !names::is_node_allocatable(name) {
            context.push(FieldError::invalid(&at, name, "must be a node allocatable resource name"));
        }
        if resource.mapping.is_none() && resource.overhead.is_none() {
            context.push(FieldError::required(&at, "at least one of mapping or overhead must be set"));
        }
        if let Some(mapping) = &resource.mapping {
            check_mapping(mapping, device.capacity.as_ref(), &at.child("mapping"), context);
        }
        if let Some(overhead) = &resource.overhead {
            check_overhead(overhead, &at.child("overhead"), context);
        }
    }
}

fn check_mapping(
    mapping: &NodeAllocatableMapping,
    capacities: Option<&BTreeMap<String, DeviceCapacity>>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let (at_key, at_multiplier) = (at.child("capacityKey"), at.child("capacityMultiplier"));
    match mapping.capacity_key.as_deref() {
        None => {}
        Some("") => context.push(FieldError::invalid(&at_key, "", "capacityKey must not be an empty string")),
        Some(key) if capacities.is_some_and(|capacities| capacities.contains_key(key)) => {}
        Some(key) => context.push(FieldError::not_found(&at_key, key)),
    }
    match (&mapping.capacity_key, &mapping.capacity_multiplier) {
        (Some(_), None) => {
            let detail = "capacityMultiplier is required when capacityKey is set";
            context.push(FieldError::required(&at_multiplier, detail));
        }
        (None, Some(_)) => {
            let detail = "capacityKey is required when capacityMultiplier is set";
            context.push(FieldError::required(&at_key, detail));
        }
        (Some(_), Some(multiplier)) => check_positive(multiplier, &at_multiplier, context),
        (None, None) => {}
    }
    if let Some(multiplier) = &mapping.device_multiplier {
        check_positive(multiplier, &at.child("deviceMultiplier"), context);
    }
    context.declarative(|context| check_one_of(mapping, at, context));
}

/// Checks that a mapping has exactly one of `capacityKey` and `deviceMultiplier`.
fn check_one_of(mapping: &NodeAllocatableMapping, at: &FieldPath<'_>, context: &mut ValidationContext) {
    const ONE_OF: &str = "one of: `capacityKey`, `deviceMultiplier`";
    match (mapping.capacity_key.is_some(), mapping.device_multiplier.is_some()) {
        (true, true) => {
            let detail = format!("must specify exactly {ONE_OF}");
            context.push(FieldError::invalid(at, "{capacityKey, deviceMultiplier}", detail));
        }
        (false, false) => context.push(FieldError::invalid(at, "", format!("must specify {ONE_OF}"))),
        _ => {}
    }
}

fn check_overhead(overhead: &NodeAllocatableOverhead, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if overhead.per_pod.is_none() && overhead.per_container.is_none() {
        return context.push(FieldError::invalid(at, "", "at least one of perPod or perContainer must be set"));
    }
    for (amount, field) in [(&overhead.per_pod, "perPod"), (&overhead.per_container, "perContainer")] {
        let at = at.child(field);
        let amount = quantity::read_optional(amount.as_ref(), &at, context);
        if let Some(amount) = amount.filter(|amount| *amount < Quantity::ZERO) {
            context.push(FieldError::invalid(&at, amount.to_string(), "must be non-negative"));
        }
    }
}

fn check_positive(multiplier: &KubeQuantity, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let multiplier = quantity::read(multiplier, at, context);
    if let Some(multiplier) = multiplier.filter(|multiplier| *multiplier <= Quantity::ZERO) {
        context.push(FieldError::invalid(at, multiplier.to_string(), "must be positive"));
    }
}
