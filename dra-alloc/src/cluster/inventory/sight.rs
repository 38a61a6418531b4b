//! Choices that decide which pools a node sees: a gate, and rules of the release.

use dra_attrs::internal::release::{CounterSlices, PartialPools};
use dra_attrs::{Gate, GateSet, Profile};

/// Choices that decide which pools a node sees. Views with equal choices are the same, whatever the other gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sight {
    /// Slices with counters, and devices that are for nodes of their own, are read.
    pub(super) reads_counters: bool,
    /// Devices of a pool that lacks slices may be chosen.
    pub(super) uses_partial_pools: bool,
    /// Devices of slices that define counter sets are read.
    pub(super) has_devices_with_counters: bool,
}

impl Sight {
    pub(crate) fn new(profile: Profile, gates: GateSet) -> Self {
        let rules = &profile.rules().allocator;
        let uses_partial_pools = match rules.partial_pools {
            PartialPools::Used => true,
            PartialPools::Skipped => false,
        };
        let has_devices_with_counters = match rules.counter_slices {
            CounterSlices::WithDevices => true,
            CounterSlices::WithoutDevices => false,
        };
        Self { reads_counters: gates.has(Gate::PartitionableDevices), uses_partial_pools, has_devices_with_counters }
    }
}
