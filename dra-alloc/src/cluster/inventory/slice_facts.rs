//! Facts of a slice and of its devices: all that a search can read of them.
//!
//! Both types are destructured without `..`, so that a new field of Kubernetes does not compile until somebody has said whether it
//! is a fact. Fields that no search reads are named with `_`: names, versions, and what is in results alone.

use dra_device::pool::slice_devices;
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{Device, ResourcePool, ResourceSlice, ResourceSliceSpec};

use super::facts::{Fact, Facts};
use super::lens::Lens;

/// Writes the facts of a slice and of its devices, as a lens shows them.
pub(super) fn write_slice(facts: &mut Facts, slice: &ResourceSlice, lens: &Lens) {
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
    driver.write(facts);
    node_name.is_some().write(facts);
    terms(node_selector.as_ref()).write(facts);
    partition_type_attribute.write(facts);
    per_device_node_selection.write(facts);
    shared_counters.write(facts);
    skip_node_operations.write(facts);
    let devices = slice_devices(slice);
    facts.number(devices.len());
    for device in devices {
        write_device(facts, device, driver, lens);
    }
}

/// Writes the facts of a device of a driver, as a lens shows them.
fn write_device(facts: &mut Facts, device: &Device, driver: &str, lens: &Lens) {
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
    allow_multiple_allocations.write(facts);
    lens.write(attributes.as_ref(), driver, facts);
    binding_conditions.write(facts);
    binds_to_node.write(facts);
    capacity.write(facts);
    consumes_counters.write(facts);
    taints.write(facts);
}

/// Returns the number of terms, which decides if results can be built. The terms themselves are in the results alone.
fn terms(selector: Option<&NodeSelector>) -> Option<usize> {
    let NodeSelector { node_selector_terms } = selector?;
    Some(node_selector_terms.len())
}
