//! Facts of a device and of a slice: all that a search can read of them, written one after the other.
//!
//! Each type is destructured without `..`, so that a new field of Kubernetes does not compile until somebody has said whether it
//! is a fact. Fields that no search reads are named with `_`: names, versions, and times.

use std::collections::BTreeMap;

use dra_device::pool::slice_devices;
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Counter, CounterSet, Device, DeviceAttribute, DeviceCapacity,
    DeviceCounterConsumption, DeviceTaint, ResourcePool, ResourceSlice, ResourceSliceSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::lens::Lens;

/// List of facts. Two lists have the same bytes only if all their facts are equal: a number tells where it ends, and a text and a
/// list begin with their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts(Vec<u8>);

/// Value that is a fact.
pub(crate) trait Fact {
    /// Writes the value behind other facts.
    fn write(&self, facts: &mut Facts);
}

impl Facts {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn number(&mut self, number: usize) {
        let mut rest = number;
        while rest >= 0x80 {
            self.0.push(rest.to_le_bytes().first().copied().unwrap_or_default() | 0x80);
            rest >>= 7;
        }
        self.0.push(rest.to_le_bytes().first().copied().unwrap_or_default());
    }

    /// Writes the facts of a slice and of its devices, as a lens shows them.
    pub(super) fn slice(&mut self, slice: &ResourceSlice, lens: &Lens) {
        let ResourceSlice { metadata: _, spec } = slice;
        let ResourceSliceSpec {
            all_nodes: _, // The slice is in the view of the node.
            devices: _,   // Below.
            driver,
            node_name,
            node_selector,
            partition_type_attribute,
            per_device_node_selection,
            pool: ResourcePool { generation: _, name: _, resource_slice_count: _ },
            shared_counters,
            skip_node_operations,
        } = spec;
        driver.write(self);
        node_name.is_some().write(self);
        terms(node_selector.as_ref()).write(self);
        partition_type_attribute.write(self);
        per_device_node_selection.write(self);
        shared_counters.write(self);
        skip_node_operations.write(self);
        let devices = slice_devices(slice);
        self.number(devices.len());
        for device in devices {
            self.device(device, driver, lens);
        }
    }

    /// Writes the facts of a device of a driver, as a lens shows them.
    fn device(&mut self, device: &Device, driver: &str, lens: &Lens) {
        let Device {
            name: _,
            all_nodes: _,
            allow_multiple_allocations,
            attributes,
            binding_conditions,
            binding_failure_conditions: _, // In results alone.
            binds_to_node,
            capacity,
            consumes_counters,
            node_allocatable_resources: _, // Read where resources of nodes are counted.
            node_name: _,                  // Nodes that devices choose are no part of a shape.
            node_selector: _,
            taints,
        } = device;
        allow_multiple_allocations.write(self);
        lens.write(attributes.as_ref(), driver, self);
        binding_conditions.write(self);
        binds_to_node.write(self);
        capacity.write(self);
        consumes_counters.write(self);
        taints.write(self);
    }
}

/// Returns the number of terms, which decides if results can be built. The terms themselves are in the results alone.
fn terms(selector: Option<&NodeSelector>) -> Option<usize> {
    let NodeSelector { node_selector_terms } = selector?;
    Some(node_selector_terms.len())
}

impl Fact for usize {
    fn write(&self, facts: &mut Facts) {
        facts.number(*self);
    }
}

impl Fact for bool {
    fn write(&self, facts: &mut Facts) {
        facts.0.push(u8::from(*self));
    }
}

impl Fact for i64 {
    fn write(&self, facts: &mut Facts) {
        facts.0.extend(self.to_le_bytes());
    }
}

impl Fact for str {
    fn write(&self, facts: &mut Facts) {
        facts.number(self.len());
        facts.0.extend(self.as_bytes());
    }
}

impl Fact for String {
    fn write(&self, facts: &mut Facts) {
        self.as_str().write(facts);
    }
}

impl<T: Fact + ?Sized> Fact for &T {
    fn write(&self, facts: &mut Facts) {
        T::write(self, facts);
    }
}

impl<T: Fact> Fact for Option<T> {
    fn write(&self, facts: &mut Facts) {
        self.is_some().write(facts);
        if let Some(value) = self {
            value.write(facts);
        }
    }
}

impl<T: Fact> Fact for Vec<T> {
    fn write(&self, facts: &mut Facts) {
        facts.number(self.len());
        for value in self {
            value.write(facts);
        }
    }
}

impl<T: Fact> Fact for BTreeMap<String, T> {
    fn write(&self, facts: &mut Facts) {
        facts.number(self.len());
        for (name, value) in self {
            name.write(facts);
            value.write(facts);
        }
    }
}

/// Types whose facts are those of fields. A field after `without` is none.
macro_rules! facts_of {
    ($($type:ident { $($field:ident),+ $(; without $other:ident)? }),+ $(,)?) => {
        $(impl Fact for $type {
            fn write(&self, facts: &mut Facts) {
                let Self { $($field,)+ $($other: _,)? } = self;
                $($field.write(facts);)+
            }
        })+
    };
}

impl Fact for Quantity {
    fn write(&self, facts: &mut Facts) {
        let Self(text) = self;
        text.write(facts);
    }
}

facts_of! {
    DeviceAttribute { bool, bools, int, ints, string, strings, version, versions },
    DeviceCapacity { request_policy, value },
    CapacityRequestPolicy { default, valid_range, valid_values },
    CapacityRequestPolicyRange { max, min, step },
    Counter { value },
    CounterSet { counters, name },
    DeviceCounterConsumption { compatibility_groups, counter_set, counters },
    DeviceTaint { effect, key, value; without time_added },
}
