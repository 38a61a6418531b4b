//! The flag `--feature-gates` of the programs.

use dra_attrs::{Gate, GateError, GateSet, Profile};

use crate::output::say;

/// Gates that kubelets read.
pub const KUBELET_GATES: [Gate; 3] =
    [Gate::OptionalNodeOperations, Gate::ExtendedResource, Gate::WorkloadResourceClaims];

/// Gates that the status of pools depends on.
pub const POOL_STATUS_GATES: [Gate; 3] =
    [Gate::ResourcePoolStatus, Gate::PartitionableDevicesType, Gate::DeviceTaintRules];

/// Gates that decisions about devices depend on.
pub const DEVICE_GATES: [Gate; 16] = [
    Gate::AdminAccess,
    Gate::PrioritizedList,
    Gate::DeviceTaints,
    Gate::PartitionableDevices,
    Gate::ConsumableCapacity,
    Gate::DeviceBindingConditions,
    Gate::ListTypeAttributes,
    Gate::OptionalNodeOperations,
    Gate::DerivedAttributes,
    Gate::DeviceCompatibilityGroups,
    Gate::FractionalCapacityRange,
    Gate::ResourceClaimDeviceStatus,
    Gate::NodeAllocatableResources,
    Gate::PartitionableDevicesType,
    Gate::WorkloadResourceClaims,
    Gate::ExtendedResource,
];

/// Reads a list of gates as Kubernetes components take it, and names those that the program does not read to stderr.
///
/// # Errors
/// A part of the list is no assignment, or names a gate that the release does not have.
pub fn feature_gates(list: &str, profile: Profile, read: &[Gate]) -> Result<GateSet, GateError> {
    let gates = GateSet::parse(list, profile)?;
    let is_idle = |name: &&str| !read.iter().any(|gate| gate.name(profile) == *name);
    let mut idle: Vec<&str> = list.split(',').filter_map(|part| Some(part.split_once('=')?.0.trim())).collect();
    idle.retain(is_idle);
    idle.dedup();
    if !idle.is_empty() {
        say(&format_args!("feature gates without effect here: {}", idle.join(", ")));
    }
    Ok(gates)
}

/// Says of a program that counts devices alone that it does so also where devices stand for CPU or memory (KEP-5517).
pub fn say_uncounted(program: &str, gates: GateSet) {
    if gates.has(Gate::NodeAllocatableResources) {
        say(&format_args!(
            "{program}: CPU and memory of nodes are not counted, nor what devices take of them \
             (DRANodeAllocatableResources); kubectl dra plan and scheduler --pods count them"
        ));
    }
}
