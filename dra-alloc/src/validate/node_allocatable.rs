//! Resources of a node that a device stands for or costs (KEP-5517).

use std::collections::BTreeMap;

use dra_attrs::field::{FieldError, FieldPath};
use dra_attrs::quantity::Quantity;
use k8s_openapi::api::resource::v1::{Device, DeviceCapacity, NodeAllocatableMapping, NodeAllocatableOverhead};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::findings::Findings;
use super::{names, quantity};

/// Checks each resource of a device.
pub(super) fn check(device: &Device, at: &FieldPath<'_>, findings: &mut Findings) {
    for (name, resource) in device.node_allocatable_resources.iter().flatten() {
        let at = at.key(name);
        if !names::is_node_allocatable(name) {
            findings.push(FieldError::invalid(&at, name, "must be a node allocatable resource name"));
        }
        if resource.mapping.is_none() && resource.overhead.is_none() {
            findings.push(FieldError::required(&at, "at least one of mapping or overhead must be set"));
        }
        if let Some(mapping) = &resource.mapping {
            check_mapping(mapping, device.capacity.as_ref(), &at.child("mapping"), findings);
        }
        if let Some(overhead) = &resource.overhead {
            check_overhead(overhead, &at.child("overhead"), findings);
        }
    }
}

fn check_mapping(
    mapping: &NodeAllocatableMapping,
    capacities: Option<&BTreeMap<String, DeviceCapacity>>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let (at_key, at_multiplier) = (at.child("capacityKey"), at.child("capacityMultiplier"));
    match mapping.capacity_key.as_deref() {
        None => {}
        Some("") => findings.push(FieldError::invalid(&at_key, "", "capacityKey must not be an empty string")),
        Some(key) if capacities.is_some_and(|capacities| capacities.contains_key(key)) => {}
        Some(key) => findings.push(FieldError::not_found(&at_key, key)),
    }
    match (&mapping.capacity_key, &mapping.capacity_multiplier) {
        (Some(_), None) => {
            let detail = "capacityMultiplier is required when capacityKey is set";
            findings.push(FieldError::required(&at_multiplier, detail));
        }
        (None, Some(_)) => {
            let detail = "capacityKey is required when capacityMultiplier is set";
            findings.push(FieldError::required(&at_key, detail));
        }
        (Some(_), Some(multiplier)) => check_positive(multiplier, &at_multiplier, findings),
        (None, None) => {}
    }
    if let Some(multiplier) = &mapping.device_multiplier {
        check_positive(multiplier, &at.child("deviceMultiplier"), findings);
    }
    findings.declared(|findings| check_one_of(mapping, at, findings));
}

/// Checks that the mapping is by capacity or by device, and not by both.
fn check_one_of(mapping: &NodeAllocatableMapping, at: &FieldPath<'_>, findings: &mut Findings) {
    const ONE_OF: &str = "one of: `capacityKey`, `deviceMultiplier`";
    match (mapping.capacity_key.is_some(), mapping.device_multiplier.is_some()) {
        (true, true) => {
            let detail = format!("must specify exactly {ONE_OF}");
            findings.push(FieldError::invalid(at, "{capacityKey, deviceMultiplier}", detail));
        }
        (false, false) => findings.push(FieldError::invalid(at, "", format!("must specify {ONE_OF}"))),
        _ => {}
    }
}

fn check_overhead(overhead: &NodeAllocatableOverhead, at: &FieldPath<'_>, findings: &mut Findings) {
    if overhead.per_pod.is_none() && overhead.per_container.is_none() {
        return findings.push(FieldError::invalid(at, "", "at least one of perPod or perContainer must be set"));
    }
    for (amount, field) in [(&overhead.per_pod, "perPod"), (&overhead.per_container, "perContainer")] {
        let at = at.child(field);
        let amount = quantity::read_optional(amount.as_ref(), &at, findings);
        if let Some(amount) = amount.filter(|amount| *amount < Quantity::ZERO) {
            findings.push(FieldError::invalid(&at, amount.to_string(), "must be non-negative"));
        }
    }
}

fn check_positive(multiplier: &KubeQuantity, at: &FieldPath<'_>, findings: &mut Findings) {
    let multiplier = quantity::read(multiplier, at, findings);
    if let Some(multiplier) = multiplier.filter(|multiplier| *multiplier <= Quantity::ZERO) {
        findings.push(FieldError::invalid(at, multiplier.to_string(), "must be positive"));
    }
}
