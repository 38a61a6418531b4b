//! Feature gates of Kubernetes that change a decision of the family.
//!
//! Source: `kube_features.go` and the DRA plugin of kube-scheduler; KEP-5945 for the name of its gate.

use serde::Serialize;

/// A feature gate, as read by kube-scheduler, the API server, the kubelet and the controllers.
///
/// The variant of a gate of devices documents what the allocator does while the gate is off. The API server drops the
/// fields of such a gate ([`release::SentWhileOff`](crate::release::SentWhileOff)).
///
/// ```
/// use dra_attrs::{Gate, GateSet, Profile};
/// let gates = GateSet::parse("DRAListTypeAttributes=true", Profile::V1_37)?;
/// assert!(gates.has(Gate::ListTypeAttributes) && gates.has(Gate::AdminAccess));
/// # Ok::<(), dra_attrs::GateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Gate {
    /// Requests may ask for admin access (KEP-5018). Off: a request that sets `adminAccess` (even to false) is an
    /// error.
    AdminAccess,
    /// Requests may list subrequests as alternatives (KEP-4816). Off: `firstAvailable` is an error.
    PrioritizedList,
    /// Device taints prevent allocation to requests that do not tolerate them (KEP-5055). Off: taints are ignored.
    DeviceTaints,
    /// Devices may consume shared counters and select nodes themselves (KEP-4815). Off: slices that use these features
    /// are skipped, and devices that consume counters are not allocated.
    PartitionableDevices,
    /// Devices may be shared between claims, which request capacity of them (KEP-5075). Off: a capacity request is an
    /// error.
    ConsumableCapacity,
    /// Devices may have binding conditions (KEP-5007). Off: devices with binding conditions are not allocated. Requires
    /// [`Gate::ResourceClaimDeviceStatus`].
    DeviceBindingConditions,
    /// Constraints understand list-typed attributes (KEP-5491). Off: see
    /// [`AllocatorRules::lists_off`](crate::release::AllocatorRules::lists_off).
    ListTypeAttributes,
    /// Devices may declare node operations unnecessary (KEP-5945). Off: see `dra_alloc::skip`.
    OptionalNodeOperations,
    /// Requests may derive attributes of devices by CEL expressions (KEP-6080). Off: a request with derived attributes
    /// is an error.
    DerivedAttributes,
    /// Devices that consume the same counter set must have a compatibility group in common (KEP-5963). Off: devices
    /// with groups are not allocated, and neither are devices that consume a counter set which an allocated device with
    /// groups consumes.
    DeviceCompatibilityGroups,
    /// Request policies of capacities may have fractions of a unit (`step: 500m`). Off: numbers of a range are rounded
    /// up to whole units.
    FractionalCapacityRange,
    /// Drivers may report on allocated devices in the status of claims (KEP-4817). No effect on allocation.
    ResourceClaimDeviceStatus,
    /// Devices may account for resources of their node, such as CPU (KEP-5517). No effect on allocation.
    NodeAllocatableResources,
    /// Slices may name the attribute with the type of a partition (KEP-5677). No effect on allocation.
    PartitionableDevicesType,
    /// Claims may be owned by, and reserved for, pod groups (KEP-5729). No effect on allocation; see
    /// `dra_alloc::pods`.
    WorkloadResourceClaims,
    /// Device classes may serve extended resources (KEP-5004). No effect on the allocation of claims.
    ExtendedResource,
    /// `DeviceTaintRule`s taint devices (KEP-5055). Off: only the taints in slices count.
    DeviceTaintRules,
    /// The API `ResourcePoolStatusRequest` and its controller (KEP-5677). Off in the API server: requests are inaccessible.
    /// Off in kube-controller-manager: requests stay pending.
    ResourcePoolStatus,
    /// kube-scheduler writes the chosen node into `nominatedNodeName` at the start of a binding cycle that has work to do
    /// (KEP-5278).
    NominatedNodeNameForExpectation,
    /// kube-apiserver clears `nominatedNodeName` when it binds the pod (KEP-5278).
    ClearingNominatedNodeNameAfterBinding,
    /// kube-scheduler preempts other pods for a bound pod whose in-place resize is deferred for lack of room.
    InPlacePodVerticalScalingSchedulerPreemption,
    /// An admission plugin of kube-apiserver adds the node's topology labels to a binding, and kube-apiserver copies them
    /// to the pod.
    PodTopologyLabelsAdmission,
}

/// Every gate with its name in Kubernetes.
const GATES: [(Gate, &str); Gate::COUNT] = [
    (Gate::AdminAccess, "DRAAdminAccess"),
    (Gate::PrioritizedList, "DRAPrioritizedList"),
    (Gate::DeviceTaints, "DRADeviceTaints"),
    (Gate::PartitionableDevices, "DRAPartitionableDevices"),
    (Gate::ConsumableCapacity, "DRAConsumableCapacity"),
    (Gate::DeviceBindingConditions, "DRADeviceBindingConditions"),
    (Gate::ListTypeAttributes, "DRAListTypeAttributes"),
    (Gate::OptionalNodeOperations, "DRAOptionalNodeOperations"),
    (Gate::DerivedAttributes, "DRADerivedAttributes"),
    (Gate::DeviceCompatibilityGroups, "DRADeviceCompatibilityGroups"),
    (Gate::FractionalCapacityRange, "DRAFractionalCapacityRange"),
    (Gate::ResourceClaimDeviceStatus, "DRAResourceClaimDeviceStatus"),
    (Gate::NodeAllocatableResources, "DRANodeAllocatableResources"),
    (Gate::PartitionableDevicesType, "DRAPartitionableDevicesType"),
    (Gate::WorkloadResourceClaims, "DRAWorkloadResourceClaims"),
    (Gate::ExtendedResource, "DRAExtendedResource"),
    (Gate::DeviceTaintRules, "DRADeviceTaintRules"),
    (Gate::ResourcePoolStatus, "DRAResourcePoolStatus"),
    (Gate::NominatedNodeNameForExpectation, "NominatedNodeNameForExpectation"),
    (Gate::ClearingNominatedNodeNameAfterBinding, "ClearingNominatedNodeNameAfterBinding"),
    (Gate::InPlacePodVerticalScalingSchedulerPreemption, "InPlacePodVerticalScalingSchedulerPreemption"),
    (Gate::PodTopologyLabelsAdmission, "PodTopologyLabelsAdmission"),
];

impl Gate {
    /// Number of gates.
    pub(crate) const COUNT: usize = 22;

    #[expect(clippy::indexing_slicing, reason = "GATES has the order of the enum, as a test asserts")]
    pub(crate) const fn row(self) -> (Self, &'static str) {
        GATES[self as usize]
    }

    /// Returns true if the allocator reads the gate.
    #[must_use]
    pub const fn concerns_allocation(self) -> bool {
        matches!(
            self,
            Self::AdminAccess
                | Self::PrioritizedList
                | Self::DeviceTaints
                | Self::PartitionableDevices
                | Self::ConsumableCapacity
                | Self::DeviceBindingConditions
                | Self::ListTypeAttributes
                | Self::OptionalNodeOperations
                | Self::DerivedAttributes
                | Self::DeviceCompatibilityGroups
                | Self::FractionalCapacityRange
        )
    }
}

impl Gate {
    /// Every feature gate, in the order of the enum.
    #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
    pub const ALL: [Self; Self::COUNT] = {
        let mut all = [Self::AdminAccess; GATES.len()];
        let mut index = 0;
        while index < GATES.len() {
            all[index] = GATES[index].0;
            index += 1;
        }
        all
    };

    /// Returns the other gates that must be on so that this gate has an effect.
    #[must_use]
    pub const fn requires(self) -> &'static [Self] {
        match self {
            Self::DeviceBindingConditions => &[Self::ResourceClaimDeviceStatus],
            _ => &[],
        }
    }
}
