//! Fields that are sent and not stored, since a gate is off or unknown, with the consequences for readers of a slice or
//! claim.
//!
//! The consequences are this crate's own.

use crate::gate::Gate;
use crate::gate_in_release::GateName;

/// A field that was sent, and that the API server does not store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedField {
    /// Gate that governs the field.
    pub gate: GateName,
    /// Path of the field.
    pub field: String,
    /// Reason why the field is dropped.
    pub cause: DropCause,
}

/// Reason why the API server drops a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the release knows the field, or it does not")]
pub enum DropCause {
    /// The gate of the field is off.
    GateOff,
    /// The release does not know the field: it goes before anything else is decided, with a warning, and a client with
    /// strict validation is refused.
    Unknown,
}

impl DroppedField {
    /// Returns the field at a path, whose gate is off.
    #[must_use]
    pub const fn new(gate: GateName, field: String) -> Self {
        Self { gate, field, cause: DropCause::GateOff }
    }

    /// Returns the field at a path, which a release does not know; a later one has it with the gate.
    #[must_use]
    pub const fn unknown(gate: GateName, field: String) -> Self {
        Self { gate, field, cause: DropCause::Unknown }
    }

    /// Returns the consequence for readers of the object, in words.
    #[must_use]
    pub fn consequence(&self) -> &'static str {
        consequence(self.gate.gate).0
    }

    /// Returns true if readers would make wrong use of a device without the field.
    #[must_use]
    pub fn is_unsafe(&self) -> bool {
        consequence(self.gate.gate).1
    }
}

/// Returns the consequence of a gate that is off, and true if it is unsafe.
const fn consequence(gate: Gate) -> (&'static str, bool) {
    match gate {
        Gate::DeviceTaints => ("an unhealthy device can be allocated", true),
        Gate::PartitionableDevices => ("a device and its partitions can be allocated together", true),
        Gate::DeviceBindingConditions => ("a pod starts before its device is ready", true),
        Gate::ConsumableCapacity => ("a shareable device is allocated as a whole", false),
        Gate::NodeAllocatableResources => ("resources of the node are counted wrongly", true),
        Gate::DeviceCompatibilityGroups => ("incompatible partitions can be allocated together", true),
        Gate::OptionalNodeOperations => ("the node plugin is called", false),
        Gate::PartitionableDevicesType => ("the pool's status has no summary of partitions", false),
        Gate::ListTypeAttributes => ("the attribute is refused", false),
        Gate::AdminAccess => ("the request has no admin access", false),
        Gate::PrioritizedList => ("the request has no alternatives", false),
        Gate::DerivedAttributes => ("the request has no derived attributes", false),
        Gate::ResourceClaimDeviceStatus => ("the claim has no status of its devices", false),
        // They govern no field that is dropped.
        Gate::FractionalCapacityRange
        | Gate::WorkloadResourceClaims
        | Gate::DeviceTaintRules
        | Gate::ResourcePoolStatus
        | Gate::NominatedNodeNameForExpectation
        | Gate::ClearingNominatedNodeNameAfterBinding
        | Gate::InPlacePodVerticalScalingSchedulerPreemption
        | Gate::PodTopologyLabelsAdmission => ("none", false),
        Gate::ExtendedResource => ("the class serves no extended resource", false),
    }
}
