//! Choices that decide which pools a node sees: a gate, and rules of the release.

use dra_attrs::internal::release::PartialPools;
use dra_attrs::{Gate, GateSet, Profile};

/// Choices that decide which pools a node sees. Views with equal choices are the same, whatever the other gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sight {
    /// Slices with counters, and devices that are for nodes of their own, are read.
    pub(super) reads_counters: bool,
    /// Devices of a pool that lacks slices may be chosen.
    pub(super) uses_partial_pools: bool,
}

impl Sight {
    pub(crate) fn new(profile: Profile, gates: GateSet) -> Self {
        let uses_partial_pools = match profile.rules().allocator.partial_pools {
            PartialPools::Used => true,
            PartialPools::Skipped => false,
        };
        Self { reads_counters: gates.has(Gate::PartitionableDevices), uses_partial_pools }
    }
}
