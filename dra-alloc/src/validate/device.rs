//! A device of a slice.

use std::collections::BTreeMap;

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::Device;

use super::equality::{same, same_capacity};
use super::findings::Findings;
use super::list::each_entry;
use super::{attribute, binding, capacity, counters, limits, names, node_allocatable, node_selection, taint};

/// Checks a device, against the one of the same name in storage if there is one.
pub(super) fn check(
    new: &Device,
    old: Option<&Device>,
    per_device_node_selection: Option<bool>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    names::label(&new.name, &at.child("name"), findings);
    check_sizes(new, at, findings);
    if let Some(attributes) = &new.attributes {
        let at = at.child("attributes");
        each_entry(attributes, limits::QUALIFIED_NAME, &at, findings, names::qualified, attribute::check);
    }
    // What stands like this in storage was valid once, and may stay.
    if old.is_none_or(|old| !same_capacity(&old.capacity, &new.capacity)) {
        capacity::check(new, &at.child("capacity"), findings);
    }
    let (taints, at_taints) = (new.taints.as_ref(), at.child("taints"));
    if old.is_none_or(|old| !same(&old.taints, &new.taints)) {
        taint::check_list(taints, &at_taints, findings);
    } else {
        // The type has a rule about effects too, which does not know a device by its name.
        findings.declared(|findings| taint::check_effects(taints, &at_taints, findings));
    }
    counters::check_consumptions(new, &at.child("consumesCounters"), findings);
    node_selection::check_device(new, per_device_node_selection, at, findings);
    let conditions = binding::Conditions {
        success: new.binding_conditions.as_ref(),
        failure: new.binding_failure_conditions.as_ref(),
    };
    binding::check(conditions, at, findings);
    node_allocatable::check(new, &at.child("nodeAllocatableResources"), findings);
}

fn check_sizes(device: &Device, at: &FieldPath<'_>, findings: &mut Findings) {
    let capacities = device.capacity.as_ref().map_or(0, BTreeMap::len);
    let attributes = device.attributes.as_ref().map_or(0, BTreeMap::len);
    let entries = attributes.saturating_add(capacities);
    if entries > limits::ATTRIBUTES_AND_CAPACITIES {
        let max = limits::ATTRIBUTES_AND_CAPACITIES;
        let detail = format!("the total number of attributes and capacities must not exceed {max}");
        findings.push(FieldError::invalid(at, entries, detail));
    }
    let values: usize = device.attributes.iter().flatten().map(|(_, attribute)| attribute::values(attribute)).sum();
    if values > limits::ATTRIBUTE_VALUES {
        let max = limits::ATTRIBUTE_VALUES;
        findings.push(FieldError::invalid(
            at,
            values,
            format!("the total number of attribute values must not exceed {max}"),
        ));
    }
}
