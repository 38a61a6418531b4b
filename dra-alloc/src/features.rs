//! Feature gates that change what the allocator does and what the API server stores.
//!
//! Source: `kube_features.go` and the DRA plugin of kube-scheduler 1.37; KEP-5945 for the name of its gate.

use std::fmt;

use dra_attrs::profile::Profile;
use serde::Serialize;

/// A part of DRA that a feature gate switches. What it says about "off" is the allocator's side; for the API server see
/// [`crate::validate::GatePolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Feature {
    /// Requests may ask for admin access (KEP-5018). Off: a request that sets `adminAccess`, even to false, is an error.
    AdminAccess,
    /// Requests may list alternatives (KEP-4816). Off: `firstAvailable` is an error.
    PrioritizedList,
    /// Taints keep devices from requests (KEP-5055). Off: taints are ignored.
    DeviceTaints,
    /// Counters and per-device node selection (KEP-4815). Off: slices that use them are passed over, and devices that
    /// consume counters are not allocated.
    PartitionableDevices,
    /// Devices may be shared and have capacity requested from them (KEP-5075). Off: a capacity request is an error.
    ConsumableCapacity,
    /// Devices may have binding conditions (KEP-5007). Off: devices with binding conditions are not allocated.
    BindingConditions,
    /// Constraints understand list-typed attributes (KEP-5491). Off: see [`dra_attrs::matching::ListTypes::off`].
    ListTypeAttributes,
    /// Devices may do without node operations (KEP-5945). Off: see [`crate::skip`].
    OptionalNodeOperations,
    /// Requests may compute attributes of devices (KEP-6080). Off: a request with derived attributes is an error.
    DerivedAttributes,
    /// Consumers of a counter set must have a group in common (KEP-5963). Off: devices with groups are not allocated, and
    /// neither are devices on a counter set that an allocated device with groups consumes.
    CompatibilityGroups,
    /// Request policies of capacities may have fractions. Off: amounts are whole numbers, rounded up.
    FractionalCapacityRange,
    /// Drivers may report on allocated devices in the status of claims (KEP-4817). The allocator does not look.
    DeviceStatus,
    /// Devices may stand for resources of their node (KEP-5517). The allocator does not look.
    NodeAllocatableResources,
    /// Slices may name the attribute that tells partitions apart (KEP-5677). The allocator does not look.
    PartitionTypes,
}

/// Feature, its gates in 1.37, its gates in the KEPs, and whether it is on by default in 1.37.
const GATES: [(Feature, &[&str], &[&str], bool); 14] = [
    (Feature::AdminAccess, &["DRAAdminAccess"], &["DRAAdminAccess"], true),
    (Feature::PrioritizedList, &["DRAPrioritizedList"], &["DRAPrioritizedList"], true),
    (Feature::DeviceTaints, &["DRADeviceTaints"], &["DRADeviceTaints"], true),
    (Feature::PartitionableDevices, &["DRAPartitionableDevices"], &["DRAPartitionableDevices"], true),
    (Feature::ConsumableCapacity, &["DRAConsumableCapacity"], &["DRAConsumableCapacity"], true),
    (Feature::BindingConditions, BINDING_GATES, BINDING_GATES, true),
    (Feature::ListTypeAttributes, &["DRAListTypeAttributes"], &["DRAListTypeAttributes"], false),
    (Feature::OptionalNodeOperations, &["DRAOptionalNodeOperations"], &["DRAOptionalNodePreparation"], false),
    (Feature::DerivedAttributes, &["DRADerivedAttributes"], &["DRADerivedAttributes"], false),
    (Feature::CompatibilityGroups, &["DRADeviceCompatibilityGroups"], &["DRADeviceCompatibilityGroups"], false),
    (Feature::FractionalCapacityRange, &["DRAFractionalCapacityRange"], &["DRAFractionalCapacityRange"], false),
    (Feature::DeviceStatus, DEVICE_STATUS_GATE, DEVICE_STATUS_GATE, true),
    (Feature::NodeAllocatableResources, NODE_ALLOCATABLE_GATE, NODE_ALLOCATABLE_GATE, false),
    (Feature::PartitionTypes, &["DRAPartitionableDevicesType"], &["DRAPartitionableDevicesType"], false),
];

const DEVICE_STATUS_GATE: &[&str] = &["DRAResourceClaimDeviceStatus"];

const NODE_ALLOCATABLE_GATE: &[&str] = &["DRANodeAllocatableResources"];

const BINDING_GATES: &[&str] = &["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"];

impl Feature {
    /// Every feature, in the order of the enum.
    pub fn all() -> impl Iterator<Item = Self> {
        GATES.iter().map(|(feature, ..)| *feature)
    }

    /// The gates that must all be on for the feature to be on.
    ///
    /// ```
    /// use dra_alloc::features::Feature;
    /// use dra_attrs::profile::Profile;
    /// assert_eq!(Feature::OptionalNodeOperations.gates(Profile::Kep), ["DRAOptionalNodePreparation"]);
    /// assert_eq!(Feature::OptionalNodeOperations.gates(Profile::V1_37), ["DRAOptionalNodeOperations"]);
    /// assert_eq!(Feature::BindingConditions.gates(Profile::Kep).len(), 2);
    /// ```
    #[must_use]
    pub fn gates(self, profile: Profile) -> &'static [&'static str] {
        let row = GATES.iter().find(|(feature, ..)| *feature == self);
        row.map_or(&[], |(_, shipped, kep, _)| if profile == Profile::V1_37 { shipped } else { kep })
    }

    /// Whether the allocator asks for the feature.
    pub(crate) const fn concerns_allocation(self) -> bool {
        !matches!(self, Self::DeviceStatus | Self::NodeAllocatableResources | Self::PartitionTypes)
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of features.
///
/// The default is what Kubernetes 1.37 has on.
///
/// ```
/// use dra_alloc::features::{Feature, Features};
/// let features = Features::default().with(Feature::ListTypeAttributes);
/// assert!(features.has(Feature::AdminAccess) && features.has(Feature::ListTypeAttributes));
/// assert!(!Features::NONE.has(Feature::AdminAccess));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Features(u32);

impl Features {
    /// Everything is off.
    pub const NONE: Self = Self(0);

    /// Everything is on.
    #[must_use]
    pub fn all() -> Self {
        Feature::all().collect()
    }

    /// The features whose gates are all on. A gate for which `is_on` has no value keeps its default.
    ///
    /// Names that the profile does not have are not asked for: with `Kep`, `DRAOptionalNodeOperations` is one of them.
    ///
    /// ```
    /// use dra_alloc::features::{Feature, Features};
    /// use dra_attrs::profile::Profile;
    /// let is_on = |gate: &str| (gate == "DRAOptionalNodePreparation").then_some(true);
    /// let features = Features::from_gates(Profile::Kep, is_on);
    /// assert_eq!(features, Features::default().with(Feature::OptionalNodeOperations));
    /// assert_eq!(Features::from_gates(Profile::Kep, |_| Some(false)), Features::NONE);
    /// ```
    #[must_use]
    pub fn from_gates(profile: Profile, is_on: impl Fn(&str) -> Option<bool>) -> Self {
        let has =
            |feature: &Feature, default: bool| feature.gates(profile).iter().all(|gate| is_on(gate).unwrap_or(default));
        GATES.iter().filter(|(feature, .., default)| has(feature, *default)).map(|(feature, ..)| *feature).collect()
    }

    /// Whether a feature is on.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & feature.bit() != 0
    }

    /// The set with a feature on.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | feature.bit())
    }

    /// The set with a feature off.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !feature.bit())
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        features.into_iter().fold(Self::NONE, Self::with)
    }
}

impl Default for Features {
    fn default() -> Self {
        GATES.iter().filter(|(.., on)| *on).map(|(feature, ..)| *feature).collect()
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Feature::all().filter(|feature| self.has(*feature))).finish()
    }
}
