//! Feature gates that affect `ResourcePoolStatusRequest`s.

use dra_attrs::{FeatureGate, Profile};

/// A feature gate that changes which requests are processed, and which devices count as unavailable.
///
/// ```
/// use poolstatus::{GateSet, PoolStatusGate, Profile};
/// let gates = GateSet::parse("DRAResourcePoolStatus=true", Profile::V1_37)?;
/// assert!(gates.has(PoolStatusGate::ResourcePoolStatus) && gates.has(PoolStatusGate::DeviceTaintRules));
/// # Ok::<(), dra_attrs::GateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PoolStatusGate {
    /// `DRAResourcePoolStatus`: the API `ResourcePoolStatusRequest` and its controller (KEP-5677). Off in the API
    /// server: requests are inaccessible. Off in kube-controller-manager: requests stay pending.
    ResourcePoolStatus,
    /// `DRAPartitionableDevicesType`: slices (`partitionTypeAttribute`) and requests (`defaultPartitionTypeAttribute`)
    /// may name the attribute that holds the partition type of a device. Off: a new request that names an attribute is
    /// refused.
    PartitionableDevicesType,
    /// `DRADeviceTaintRules`: `DeviceTaintRule`s taint devices. Off: only the taints in slices count.
    DeviceTaintRules,
}

impl dra_attrs::internal::Sealed for PoolStatusGate {}

impl FeatureGate for PoolStatusGate {
    const ALL: &'static [Self] = &[Self::ResourcePoolStatus, Self::PartitionableDevicesType, Self::DeviceTaintRules];

    fn name(self, _: Profile) -> &'static str {
        match self {
            Self::ResourcePoolStatus => "DRAResourcePoolStatus",
            Self::PartitionableDevicesType => "DRAPartitionableDevicesType",
            Self::DeviceTaintRules => "DRADeviceTaintRules",
        }
    }

    fn is_default(self, _: Profile) -> bool {
        self == Self::DeviceTaintRules
    }

    fn position(self) -> u32 {
        self as u32
    }
}
