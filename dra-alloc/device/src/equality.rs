//! Equality of objects, as the API server sees it: an update that changes nothing by these rules is no update.
//!
//! Quantities are compared as numbers (`1Gi` equals `1024Mi`), times by the second. A field that is a pointer in the API
//! server's Go types is absent or has a value; of other fields an empty value equals an absent one: `[]`, `{}`, `""` and
//! `0`. Defaults that the server sets (`ExactCount`, one device, `Equal`) equal an absent value too. The order of lists counts. JSON that only a driver interprets is compared as it is.
//!
//! Each type of a spec or status is destructured, most of them by a row of a table, so that a new field does not compile until
//! somebody has said which it is.
//!
//! Source: `apiequality.Semantic` of `k8s.io/apimachinery`; for times of taints `DevicesDeepEqual` of
//! `resourceslicecontroller.go`.

use std::collections::BTreeMap;

use dra_attrs::Quantity;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    AllocatedDeviceStatus, AllocationResult, CELDeviceSelector, CapacityRequestPolicy, CapacityRequestPolicyRange,
    CapacityRequirements, Counter, CounterSet, Device, DeviceAllocationConfiguration, DeviceAllocationResult,
    DeviceAttribute, DeviceCapacity, DeviceClaim, DeviceClaimConfiguration, DeviceClassConfiguration, DeviceClassSpec,
    DeviceConstraint, DeviceCounterConsumption, DeviceDerivedAttribute, DeviceRequest, DeviceRequestAllocationResult,
    DeviceSelector, DeviceSubRequest, DeviceTaint, DeviceTaintRuleSpec, DeviceTaintSelector, DeviceToleration,
    ExactDeviceRequest, NetworkDeviceData, NodeAllocatableMapping, NodeAllocatableOverhead, NodeAllocatableResource,
    OpaqueDeviceConfiguration, ResourceClaimConsumerReference, ResourceClaimSpec, ResourceClaimStatus,
    ResourceClaimTemplateSpec, ResourcePool, ResourceSliceSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;

/// Comparison of the times at which taints were added; all else is compared in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "read by the packages of the family alone")]
pub enum TaintTimes {
    /// By the second, as other times.
    Exact,
    /// One may be absent, since the API server sets it, and two may differ by a second, which is lost on the way to the
    /// server and back.
    Near,
    /// Not at all.
    Any,
}

/// Largest difference between two near times of a taint, in nanoseconds.
const NEAR_NANOS: i128 = 1_000_000_000;

/// Values that the API server compares.
pub trait Same {
    /// Returns true if the API server treats the values as equal.
    fn same(&self, other: &Self, times: TaintTimes) -> bool;
}

/// Returns true if two lists are the same, item by item.
pub fn same_items<'a, T: Same + 'a>(
    one: impl IntoIterator<Item = &'a T>,
    other: impl IntoIterator<Item = &'a T>,
    times: TaintTimes,
) -> bool {
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one.same(other, times) => {}
            _ => return false,
        }
    }
}

/// Returns true if two fields are the same of which an empty value equals an absent one.
#[must_use]
pub fn same_or_empty<T: Same + Default>(one: Option<&T>, other: Option<&T>, times: TaintTimes) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.same(other, times),
        (Some(value), None) | (None, Some(value)) => value.same(&T::default(), times),
    }
}

impl<T: Same> Same for Option<T> {
    fn same(&self, other: &Self, times: TaintTimes) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.same(other, times),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl<T: Same> Same for Vec<T> {
    fn same(&self, other: &Self, times: TaintTimes) -> bool {
        same_items(self, other, times)
    }
}

impl<T: Same> Same for BTreeMap<String, T> {
    fn same(&self, other: &Self, times: TaintTimes) -> bool {
        self.keys().eq(other.keys()) && same_items(self.values(), other.values(), times)
    }
}

impl Same for KubeQuantity {
    fn same(&self, other: &Self, _: TaintTimes) -> bool {
        let amount = |quantity: &Self| Quantity::from_kube(quantity).ok();
        self == other || amount(self).is_some_and(|one| amount(other) == Some(one))
    }
}

impl Same for Time {
    fn same(&self, other: &Self, _: TaintTimes) -> bool {
        self.0.as_second() == other.0.as_second()
    }
}

/// Values that are the same if they are equal.
macro_rules! equal {
    ($($type:ty),*) => {
        $(impl Same for $type {
            fn same(&self, other: &Self, _: TaintTimes) -> bool {
                self == other
            }
        })*
    };
}

equal!(String, bool, i64, RawExtension, OwnerReference, ManagedFieldsEntry);

/// A row for each type: its fields that are required or pointers, and those of which an empty value equals an absent one.
macro_rules! same_by_fields {
    ($($type:ident { $($field:ident),* } or_empty { $($empty:ident),* })*) => {
        $(impl Same for $type {
            fn same(&self, other: &Self, times: TaintTimes) -> bool {
                let Self { $($field,)* $($empty),* } = self;
                $($field.same(&other.$field, times) &&)*
                $(same_or_empty($empty.as_ref(), other.$empty.as_ref(), times) &&)*
                true
            }
        })*
    };
}

same_by_fields! {
    // Slices.
    ResourceSliceSpec {
        all_nodes, driver, node_name, node_selector, partition_type_attribute, per_device_node_selection, pool
    }
        or_empty { devices, shared_counters, skip_node_operations }
    ResourcePool { generation, name, resource_slice_count } or_empty {}
    Device { name, all_nodes, allow_multiple_allocations, binds_to_node, node_name, node_selector }
        or_empty {
            attributes, binding_conditions, binding_failure_conditions, capacity, consumes_counters,
            node_allocatable_resources, taints
        }
    DeviceAttribute { bool, int, string, version } or_empty { bools, ints, strings, versions }
    DeviceCapacity { value, request_policy } or_empty {}
    CapacityRequestPolicy { default, valid_range } or_empty { valid_values }
    CapacityRequestPolicyRange { min, max, step } or_empty {}
    DeviceCounterConsumption { counter_set, counters } or_empty { compatibility_groups }
    CounterSet { name, counters } or_empty {}
    Counter { value } or_empty {}
    NodeAllocatableResource { mapping, overhead } or_empty {}
    NodeAllocatableMapping { capacity_key, capacity_multiplier, device_multiplier } or_empty {}
    NodeAllocatableOverhead { per_container, per_pod } or_empty {}
    NodeSelector { node_selector_terms } or_empty {}
    NodeSelectorTerm {} or_empty { match_expressions, match_fields }
    NodeSelectorRequirement { key, operator } or_empty { values }
    // Claims, templates and classes.
    ResourceClaimSpec {} or_empty { devices }
    DeviceClaim {} or_empty { config, constraints, requests }
    DeviceRequest { name, exactly } or_empty { first_available }
    DeviceSelector { cel } or_empty {}
    CELDeviceSelector { expression } or_empty {}
    CapacityRequirements {} or_empty { requests }
    DeviceDerivedAttribute { name, expression } or_empty {}
    DeviceConstraint { distinct_attribute, match_attribute } or_empty { requests }
    DeviceClaimConfiguration { opaque } or_empty { requests }
    DeviceClassConfiguration { opaque } or_empty {}
    OpaqueDeviceConfiguration { driver, parameters } or_empty {}
    ResourceClaimTemplateSpec {} or_empty { metadata, spec }
    DeviceClassSpec { extended_resource_name } or_empty { config, selectors }
    // The status of a claim.
    ResourceClaimStatus { allocation } or_empty { devices, reserved_for }
    AllocationResult { allocation_timestamp, node_selector } or_empty { devices }
    DeviceAllocationResult {} or_empty { config, results }
    DeviceAllocationConfiguration { opaque, source } or_empty { requests }
    DeviceRequestAllocationResult { admin_access, device, driver, pool, request, share_id }
        or_empty { binding_conditions, binding_failure_conditions, consumed_capacity, skip_node_operations, tolerations }
    ResourceClaimConsumerReference { name, resource, uid } or_empty { api_group }
    AllocatedDeviceStatus { device, driver, pool, share_id, data, network_data } or_empty { conditions }
    NetworkDeviceData {} or_empty { hardware_address, interface_name, ips }
    Condition { last_transition_time, message, reason, status, type_ } or_empty { observed_generation }
    // Taint rules.
    DeviceTaintRuleSpec { device_selector, taint } or_empty {}
    DeviceTaintSelector { device, driver, pool } or_empty {}
    ObjectMeta { creation_timestamp, deletion_grace_period_seconds, deletion_timestamp }
        or_empty {
            annotations, finalizers, generate_name, generation, labels, managed_fields, name, namespace, owner_references,
            resource_version, self_link, uid
        }
}

impl Same for DeviceTaint {
    fn same(&self, other: &Self, times: TaintTimes) -> bool {
        let Self { key, effect, value, time_added } = self;
        *key == other.key
            && *effect == other.effect
            && same_text(value.as_ref(), other.value.as_ref())
            && times.are_same(time_added.as_ref(), other.time_added.as_ref())
    }
}

impl TaintTimes {
    fn are_same(self, one: Option<&Time>, other: Option<&Time>) -> bool {
        match (self, one, other) {
            (Self::Any, ..) | (Self::Near, None, _) | (Self::Near, _, None) => true,
            (Self::Exact, one, other) => one.map(|time| time.0.as_second()) == other.map(|time| time.0.as_second()),
            (Self::Near, Some(one), Some(other)) => {
                one.0.as_nanosecond().saturating_sub(other.0.as_nanosecond()).abs() <= NEAR_NANOS
            }
        }
    }
}

impl Same for DeviceToleration {
    fn same(&self, other: &Self, _: TaintTimes) -> bool {
        let Self { effect, key, operator, toleration_seconds, value } = self;
        same_text(effect.as_ref(), other.effect.as_ref())
            && same_text(key.as_ref(), other.key.as_ref())
            && same_text(value.as_ref(), other.value.as_ref())
            && or_default(operator.as_ref(), "Equal") == or_default(other.operator.as_ref(), "Equal")
            && *toleration_seconds == other.toleration_seconds
    }
}

/// A row for each form of a request: the mode and the number of devices count together, since their defaults do.
macro_rules! same_requests {
    ($($type:ident { $($field:ident),* } or_empty { $($empty:ident),* })*) => {
        $(impl Same for $type {
            fn same(&self, other: &Self, times: TaintTimes) -> bool {
                let Self { allocation_mode, count, $($field,)* $($empty),* } = self;
                $($field.same(&other.$field, times) &&)*
                $(same_or_empty($empty.as_ref(), other.$empty.as_ref(), times) &&)*
                Number::of(allocation_mode.as_ref(), *count) == Number::of(other.allocation_mode.as_ref(), other.count)
            }
        })*
    };
}

same_requests! {
    ExactDeviceRequest { admin_access, capacity, device_class_name } or_empty { derived_attributes, selectors, tolerations }
    DeviceSubRequest { name, capacity, device_class_name } or_empty { derived_attributes, selectors, tolerations }
}

/// Number of devices that a request wants, with the defaults that the API server sets.
#[derive(PartialEq)]
struct Number<'r> {
    mode: &'r str,
    count: i64,
}

impl<'r> Number<'r> {
    fn of(mode: Option<&'r String>, count: Option<i64>) -> Self {
        let mode = or_default(mode, "ExactCount");
        let count = count.unwrap_or_default();
        Self { mode, count: if mode == "ExactCount" && count == 0 { 1 } else { count } }
    }
}

fn or_default<'t>(text: Option<&'t String>, default: &'static str) -> &'t str {
    text.map(String::as_str).filter(|text| !text.is_empty()).unwrap_or(default)
}

fn same_text(one: Option<&String>, other: Option<&String>) -> bool {
    or_default(one, "") == or_default(other, "")
}
