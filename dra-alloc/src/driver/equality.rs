//! Equality of stored and wanted contents, as the API server and upstream's controller see it.
//!
//! Quantities are compared as numbers, and an absent list or map equals an empty one. The order of lists counts. A taint
//! without a time equals one with a time, since the API server sets it; two times may differ by a second, which is lost
//! on the way to the server and back. An absent pointer differs from one to `false` or to an empty text.
//!
//! Source: `DevicesDeepEqual` and `syncPool` of `resourceslicecontroller.go`.

use std::collections::BTreeMap;

use dra_attrs::Quantity;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Counter, CounterSet, Device, DeviceAttribute, DeviceCapacity,
    DeviceCounterConsumption, DeviceTaint, NodeAllocatableMapping, NodeAllocatableOverhead, NodeAllocatableResource,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

/// Largest difference between two times of a taint that are the same, in nanoseconds.
const SAME_TIME_NANOS: i128 = 1_000_000_000;

/// Returns true if the two lists of devices are the same to the API server, so that one need not be written over the
/// other.
///
/// ```
/// use dra_alloc::driver::same_devices;
/// use k8s_openapi::api::resource::v1::Device;
/// # let device = |value: serde_json::Value| -> Device { serde_json::from_value(value).unwrap() };
/// let wanted = device(serde_json::json!({"name": "a", "capacity": {"memory": {"value": "1024Mi"}}}));
/// let stored = device(serde_json::json!({"name": "a", "capacity": {"memory": {"value": "1Gi"}}}));
/// assert!(same_devices([&wanted], [&stored]));
/// ```
pub fn same_devices<'a>(
    one: impl IntoIterator<Item = &'a Device>,
    other: impl IntoIterator<Item = &'a Device>,
) -> bool {
    all_same(one, other, same_device)
}

/// Returns true if the two lists of counter sets are the same to the API server.
pub(super) fn same_counter_sets<'a>(
    one: impl IntoIterator<Item = &'a CounterSet>,
    other: impl IntoIterator<Item = &'a CounterSet>,
) -> bool {
    all_same(one, other, |one, other| one.name == other.name && same_counters(&one.counters, &other.counters))
}

/// Returns true if the two node selectors are the same to the API server.
pub(super) fn same_node_selector(one: Option<&NodeSelector>, other: Option<&NodeSelector>) -> bool {
    same_option(one, other, |one, other| all_same(&one.node_selector_terms, &other.node_selector_terms, same_term))
}

/// Returns true if a list equals another, or both are absent or empty.
pub(super) fn same_list<T: PartialEq>(one: Option<&[T]>, other: Option<&[T]>) -> bool {
    one.unwrap_or_default() == other.unwrap_or_default()
}

fn same_device(one: &Device, other: &Device) -> bool {
    let Device {
        all_nodes,
        allow_multiple_allocations,
        attributes,
        binding_conditions,
        binding_failure_conditions,
        binds_to_node,
        capacity,
        consumes_counters,
        name,
        node_allocatable_resources,
        node_name,
        node_selector,
        taints,
    } = one;
    *name == other.name
        && *all_nodes == other.all_nodes
        && *allow_multiple_allocations == other.allow_multiple_allocations
        && *binds_to_node == other.binds_to_node
        && *node_name == other.node_name
        && same_list(binding_conditions.as_deref(), other.binding_conditions.as_deref())
        && same_list(binding_failure_conditions.as_deref(), other.binding_failure_conditions.as_deref())
        && same_map(attributes.as_ref(), other.attributes.as_ref(), same_attribute)
        && same_map(capacity.as_ref(), other.capacity.as_ref(), same_capacity)
        && all_same(items(consumes_counters.as_ref()), items(other.consumes_counters.as_ref()), same_consumption)
        && same_map(node_allocatable_resources.as_ref(), other.node_allocatable_resources.as_ref(), same_allocatable)
        && same_node_selector(node_selector.as_ref(), other.node_selector.as_ref())
        && all_same(items(taints.as_ref()), items(other.taints.as_ref()), same_taint)
}

/// Returns true if the taints are the same apart from their times.
pub(super) fn same_taint_without_time(one: &DeviceTaint, other: &DeviceTaint) -> bool {
    let value = |taint: &DeviceTaint| -> bool { taint.value.as_ref().is_none_or(String::is_empty) };
    one.key == other.key && one.effect == other.effect && (one.value == other.value || value(one) && value(other))
}

fn same_taint(one: &DeviceTaint, other: &DeviceTaint) -> bool {
    let is_near = match (&one.time_added, &other.time_added) {
        (Some(one), Some(other)) => {
            let nanos = one.0.as_nanosecond().saturating_sub(other.0.as_nanosecond());
            nanos.abs() <= SAME_TIME_NANOS
        }
        _ => true,
    };
    is_near && same_taint_without_time(one, other)
}

fn same_attribute(one: &DeviceAttribute, other: &DeviceAttribute) -> bool {
    let DeviceAttribute { bool, bools, int, ints, string, strings, version, versions } = one;
    *bool == other.bool
        && *int == other.int
        && *string == other.string
        && *version == other.version
        && same_list(bools.as_deref(), other.bools.as_deref())
        && same_list(ints.as_deref(), other.ints.as_deref())
        && same_list(strings.as_deref(), other.strings.as_deref())
        && same_list(versions.as_deref(), other.versions.as_deref())
}

fn same_capacity(one: &DeviceCapacity, other: &DeviceCapacity) -> bool {
    same_quantity(&one.value, &other.value)
        && same_option(one.request_policy.as_ref(), other.request_policy.as_ref(), same_policy)
}

fn same_policy(one: &CapacityRequestPolicy, other: &CapacityRequestPolicy) -> bool {
    let CapacityRequestPolicy { default, valid_range, valid_values } = one;
    same_option(default.as_ref(), other.default.as_ref(), same_quantity)
        && same_option(valid_range.as_ref(), other.valid_range.as_ref(), same_range)
        && all_same(items(valid_values.as_ref()), items(other.valid_values.as_ref()), same_quantity)
}

fn same_range(one: &CapacityRequestPolicyRange, other: &CapacityRequestPolicyRange) -> bool {
    let CapacityRequestPolicyRange { max, min, step } = one;
    same_quantity(min, &other.min)
        && same_option(max.as_ref(), other.max.as_ref(), same_quantity)
        && same_option(step.as_ref(), other.step.as_ref(), same_quantity)
}

fn same_consumption(one: &DeviceCounterConsumption, other: &DeviceCounterConsumption) -> bool {
    let DeviceCounterConsumption { compatibility_groups, counter_set, counters } = one;
    *counter_set == other.counter_set
        && same_list(compatibility_groups.as_deref(), other.compatibility_groups.as_deref())
        && same_counters(counters, &other.counters)
}

fn same_counters(one: &BTreeMap<String, Counter>, other: &BTreeMap<String, Counter>) -> bool {
    same_map(Some(one), Some(other), |one, other| same_quantity(&one.value, &other.value))
}

fn same_allocatable(one: &NodeAllocatableResource, other: &NodeAllocatableResource) -> bool {
    let NodeAllocatableResource { mapping, overhead } = one;
    same_option(mapping.as_ref(), other.mapping.as_ref(), same_mapping)
        && same_option(overhead.as_ref(), other.overhead.as_ref(), same_overhead)
}

fn same_mapping(one: &NodeAllocatableMapping, other: &NodeAllocatableMapping) -> bool {
    let NodeAllocatableMapping { capacity_key, capacity_multiplier, device_multiplier } = one;
    *capacity_key == other.capacity_key
        && same_option(capacity_multiplier.as_ref(), other.capacity_multiplier.as_ref(), same_quantity)
        && same_option(device_multiplier.as_ref(), other.device_multiplier.as_ref(), same_quantity)
}

fn same_overhead(one: &NodeAllocatableOverhead, other: &NodeAllocatableOverhead) -> bool {
    let NodeAllocatableOverhead { per_container, per_pod } = one;
    same_option(per_container.as_ref(), other.per_container.as_ref(), same_quantity)
        && same_option(per_pod.as_ref(), other.per_pod.as_ref(), same_quantity)
}

fn same_term(one: &NodeSelectorTerm, other: &NodeSelectorTerm) -> bool {
    let NodeSelectorTerm { match_expressions, match_fields } = one;
    let same = |one: &Option<Vec<NodeSelectorRequirement>>, other: &Option<Vec<NodeSelectorRequirement>>| {
        all_same(items(one.as_ref()), items(other.as_ref()), |one, other| {
            one.key == other.key
                && one.operator == other.operator
                && same_list(one.values.as_deref(), other.values.as_deref())
        })
    };
    same(match_expressions, &other.match_expressions) && same(match_fields, &other.match_fields)
}

fn same_quantity(one: &KubeQuantity, other: &KubeQuantity) -> bool {
    let amount = |quantity: &KubeQuantity| Quantity::from_kube(quantity).ok();
    one == other || amount(one).is_some_and(|one| amount(other) == Some(one))
}

fn same_option<T: ?Sized>(one: Option<&T>, other: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => same(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn same_map<K: PartialEq, V>(
    one: Option<&BTreeMap<K, V>>,
    other: Option<&BTreeMap<K, V>>,
    same: impl Fn(&V, &V) -> bool,
) -> bool {
    let (one, other) = (one.into_iter().flatten(), other.into_iter().flatten());
    all_same(one, other, |(one_key, one), (other_key, other)| one_key == other_key && same(one, other))
}

fn items<T>(list: Option<&Vec<T>>) -> &[T] {
    list.map(Vec::as_slice).unwrap_or_default()
}

fn all_same<T: Copy>(
    one: impl IntoIterator<Item = T>,
    other: impl IntoIterator<Item = T>,
    mut same: impl FnMut(T, T) -> bool,
) -> bool {
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if same(one, other) => {}
            _ => return false,
        }
    }
}
