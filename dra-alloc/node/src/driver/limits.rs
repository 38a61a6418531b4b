//! Limits and fields of slices, by the minor version of the API server.
//!
//! Source: `pkg/apis/resource/validation` of Kubernetes 1.34 to 1.37.

use dra_attrs::Gate;
use dra_device::internal::{MAX_ADVANCED_DEVICES, MAX_COUNTER_SETS, MAX_DEVICES, has_list, is_advanced};
use k8s_openapi::api::resource::v1::Device;

/// Limits of a `ResourceSlice` that a planner of slices needs, and the fields that the API server knows.
///
/// ```
/// use dra_node::driver::SliceLimits;
/// let limits = SliceLimits::for_minor(34);
/// assert_eq!((limits.max_devices, limits.max_advanced_devices), (128, 128));
/// assert_eq!(SliceLimits::for_minor(37).max_advanced_devices, 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "differences between versions that have nothing to do with each other"
)]
#[non_exhaustive]
pub struct SliceLimits {
    /// Largest number of devices of a slice.
    pub max_devices: usize,
    /// Largest number of devices of a slice with an advanced device: one that has taints, consumes counters or, from
    /// Kubernetes 1.36 on, has a list attribute.
    pub max_advanced_devices: usize,
    /// Largest number of counter sets of a slice; `None` if only counters are limited.
    pub max_counter_sets: Option<usize>,
    /// True if a slice with devices may not have counter sets. False if devices must be in the slice of the counter sets
    /// that they consume from.
    pub(super) has_separate_counters: bool,
    /// True if a list attribute makes a device an advanced one.
    pub counts_lists: bool,
    /// True if the API server knows `partitionTypeAttribute` and `skipNodeOperations`.
    pub(super) has_partition_type: bool,
    /// True if a slice has as many devices as the API server accepts: 64 if one of them is advanced, 128 otherwise. By
    /// default it has at most 64, so that a taint that is added later never splits a slice.
    pub(super) fills_slices: bool,
    /// Feature gates of slices that are off unless an administrator turns them on, or that do not exist.
    pub gates_off: &'static [Gate],
}

/// Largest number of counters of all sets of a slice, if devices are in the slice of their counter sets.
pub(super) const MAX_COUNTERS_TOGETHER: usize = 32;

/// Largest number of counters that all devices of a slice consume, if they are in the slice of their counter sets.
pub(super) const MAX_CONSUMED_TOGETHER: usize = 1024;

/// Gates of slices that are off by default in 1.36 and 1.37, or do not exist there.
const OFF: &[Gate] = &[
    Gate::ListTypeAttributes,
    Gate::NodeAllocatableResources,
    Gate::OptionalNodeOperations,
    Gate::PartitionableDevicesType,
    Gate::DeviceCompatibilityGroups,
];

/// Gates of slices that are off by default in 1.34 and 1.35, or do not exist there.
const OFF_BEFORE_36: &[Gate] = &[
    Gate::DeviceTaints,
    Gate::PartitionableDevices,
    Gate::ConsumableCapacity,
    Gate::DeviceBindingConditions,
    Gate::ListTypeAttributes,
    Gate::NodeAllocatableResources,
    Gate::OptionalNodeOperations,
    Gate::PartitionableDevicesType,
    Gate::DeviceCompatibilityGroups,
];

impl SliceLimits {
    /// Limits for a server whose version is not known: the smallest ones of 1.35 to 1.37.
    pub const UNKNOWN: Self = Self { counts_lists: true, ..Self::for_minor(35) };

    /// Returns the limits of an API server of version 1.`minor`. A version before 1.34 has those of 1.34, one after 1.37
    /// those of 1.37. [`dra_attrs::server_minor`] reads the number from the server's answer.
    #[must_use]
    pub const fn for_minor(minor: u32) -> Self {
        let has_separate_counters = minor >= 35;
        Self {
            max_devices: MAX_DEVICES,
            max_advanced_devices: if has_separate_counters { MAX_ADVANCED_DEVICES } else { MAX_DEVICES },
            max_counter_sets: if has_separate_counters { Some(MAX_COUNTER_SETS) } else { None },
            has_separate_counters,
            counts_lists: minor >= 36,
            has_partition_type: minor >= 37,
            fills_slices: false,
            gates_off: if minor >= 36 { OFF } else { OFF_BEFORE_36 },
        }
    }

    /// Lets a slice have as many devices as the API server accepts.
    #[must_use]
    pub const fn filling_slices(self) -> Self {
        Self { fills_slices: true, ..self }
    }

    /// Returns true if the device lowers the number of devices that its slice may have.
    pub(super) fn is_advanced(&self, device: &Device) -> bool {
        is_advanced(device) || self.counts_lists && has_list(device)
    }
}
