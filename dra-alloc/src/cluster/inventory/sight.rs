//! Choices that decide which pools a node sees: a gate, and rules of the release.

use dra_attrs::release::{PartialPools, Rules};
use dra_attrs::{Gate, GateSet, Profile};

/// Choices that decide which pools a node sees. Views with equal choices are the same, whatever the other gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sight {
    pub(super) partitions: Partitions,
    pub(super) partial: PartialPools,
}

/// Slices with counters and devices that are for nodes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Partitions {
    Read,
    Ignored,
}

impl Sight {
    pub(crate) fn new(profile: Profile, gates: GateSet) -> Self {
        let rules: &Rules = profile.rules();
        let has = gates.has(Gate::PartitionableDevices);
        let partitions = if has { Partitions::Read } else { Partitions::Ignored };
        Self { partitions, partial: rules.allocator.partial_pools }
    }

    /// Returns true if slices with counters are read.
    pub(super) fn reads_counters(self) -> bool {
        self.partitions == Partitions::Read
    }
}
