//! Limits and fields of slices, by the release and the gates of the API server.

use dra_attrs::internal::release::CounterLimits;
use dra_attrs::{Component, Gate, Profile};
use dra_device::internal::{MAX_DEVICES, Places, has_list, is_advanced};
use k8s_openapi::api::resource::v1::Device;

/// Limits of a `ResourceSlice` that a planner of slices needs, and the fields that the API server keeps.
///
/// ```
/// use dra_attrs::{Gate, Profile};
/// use dra_node::driver::SliceLimits;
/// let limits = SliceLimits::of(Profile::V1_34);
/// assert_eq!((limits.max_devices, limits.max_advanced_devices), (128, 128));
/// assert!(limits.gates_off().any(|gate| gate == Gate::DeviceTaints));
/// assert_eq!(SliceLimits::of(Profile::V1_37).max_advanced_devices, 64);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SliceLimits {
    /// Largest number of devices of a slice.
    pub max_devices: usize,
    /// Largest number of devices of a slice with an advanced device: one that has taints, consumes counters or, from
    /// Kubernetes 1.36 on, has a list attribute.
    pub max_advanced_devices: usize,
    /// Limits of counter sets, and the slices that they are in.
    pub(super) counters: CounterLimits,
    /// True if a list attribute makes a device an advanced one.
    pub counts_lists: bool,
    /// True if the API server knows `partitionTypeAttribute` and `skipNodeOperations`.
    pub(super) has_partition_type: bool,
    /// True if a slice has as many devices as the API server accepts: 64 if one of them is advanced, 128 otherwise. By
    /// default it has at most 64, so that a taint that is added later never splits a slice.
    pub(super) fills_slices: bool,
    server: Component,
}

impl SliceLimits {
    /// Returns the limits of an API server; a profile stands for one whose gates nobody has changed.
    #[must_use]
    pub fn of(server: impl Into<Component>) -> Self {
        let server = server.into();
        let (limits, profile) = (server.rules().limits, server.profile());
        Self {
            max_devices: MAX_DEVICES,
            max_advanced_devices: limits.advanced_devices,
            counters: limits.counters,
            counts_lists: Gate::ListTypeAttributes.stage(profile).exists(),
            has_partition_type: Gate::PartitionableDevicesType.stage(profile).exists(),
            fills_slices: false,
            server,
        }
    }

    /// Returns limits that fit 1.35 to 1.37, for a server whose version is not known: the smallest ones.
    #[must_use]
    pub fn unknown() -> Self {
        Self { counts_lists: true, ..Self::of(Profile::V1_35) }
    }

    /// Returns the largest number of counter sets of a slice; `None` if only counters are limited.
    #[must_use]
    pub const fn max_counter_sets(&self) -> Option<usize> {
        match self.counters {
            CounterLimits::InTotal { .. } => None,
            CounterLimits::BySet { sets, .. } => Some(sets),
        }
    }

    /// Returns the gates whose fields the API server does not keep: they are off, or the release does not have them.
    /// [`Memory::with_gates_off`](super::Memory::with_gates_off) takes them.
    pub fn gates_off(&self) -> impl Iterator<Item = Gate> {
        let server = self.server;
        Places::gates_of_slice().filter(move |gate| !server.has(*gate))
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
