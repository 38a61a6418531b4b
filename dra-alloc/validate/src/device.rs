//! Validation of a device of a slice.

use std::collections::BTreeMap;

use dra_attrs::internal::release::StoredPart;
use dra_attrs::{FieldError, FieldPath};
use dra_device::internal::{TaintTimes, same_or_empty};
use k8s_openapi::api::resource::v1::Device;

use super::context::ValidationContext;
use super::list::each_entry;
use super::{attribute, binding, capacity, counters, limits, names, node_allocatable, node_selection, taint};

/// Checks a device. `old` is the device of the same name in the stored slice, if there is one; `sets` are the counter sets
/// of its slice.
pub(super) fn check(
    new: &Device,
    old: Option<&Device>,
    sets: &counters::Sets<'_>,
    per_device_node_selection: Option<bool>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    names::label(&new.name, &at.child("name"), context);
    check_sizes(new, at, context);
    if let Some(attributes) = &new.attributes {
        let at = at.child("attributes");
        each_entry(attributes, limits::QUALIFIED_NAME, &at, context, names::qualified, attribute::check);
    }
    // Unchanged capacities and taints of a stored device are not checked again, where the release trusts them.
    let is_trusted = |part, is_same: fn(&Device, &Device) -> bool| match part {
        StoredPart::Trusted => old.is_some_and(|old| is_same(old, new)),
        StoredPart::Validated => false,
    };
    let rules = &context.rules.validation;
    let trusts_capacity = is_trusted(rules.stored_capacities, |old, new| {
        same_or_empty(old.capacity.as_ref(), new.capacity.as_ref(), TaintTimes::Exact)
    });
    let trusts_taints = is_trusted(rules.stored_taints, |old, new| {
        same_or_empty(old.taints.as_ref(), new.taints.as_ref(), TaintTimes::Exact)
    });
    if !trusts_capacity {
        capacity::check(new, &at.child("capacity"), context);
    }
    let (taints, at_taints) = (new.taints.as_ref(), at.child("taints"));
    if !trusts_taints {
        taint::check_list(taints, &at_taints, context);
    }
    counters::check_consumptions(new, sets, at, context);
    node_selection::check_device(new, per_device_node_selection, at, context);
    let conditions = binding::Conditions {
        success: new.binding_conditions.as_ref(),
        failure: new.binding_failure_conditions.as_ref(),
    };
    binding::check(conditions, at, context);
    node_allocatable::check(new, &at.child("nodeAllocatableResources"), context);
}

fn check_sizes(device: &Device, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let capacities = device.capacity.as_ref().map_or(0, BTreeMap::len);
    let attributes = device.attributes.as_ref().map_or(0, BTreeMap::len);
    let entries = attributes.saturating_add(capacities);
    if entries > limits::ATTRIBUTES_AND_CAPACITIES {
        let max = limits::ATTRIBUTES_AND_CAPACITIES;
        let detail = format!("the total number of attributes and capacities must not exceed {max}");
        context.push(FieldError::invalid(at, entries, detail));
    }
    let values: usize = device.attributes.iter().flatten().map(|(_, attribute)| attribute::values(attribute)).sum();
    if values > limits::ATTRIBUTE_VALUES {
        let max = limits::ATTRIBUTE_VALUES;
        context.push(FieldError::invalid(
            at,
            values,
            format!("the total number of attribute values must not exceed {max}"),
        ));
    }
}
