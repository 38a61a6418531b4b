//! Rules of the scheduler's allocator, as far as they differ between releases.

use super::behaviours::behaviours;
use crate::gate::Gate;
use crate::gates::GateSet;
use crate::matching::ListTypes;

/// Decides how the allocator of a release searches.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct AllocatorRules {
    /// Variants of the allocator. The first one that knows all gates that are on is used; the last one if none does; without any,
    /// [`AllocatorVariant::COMPLETE`].
    pub variants: &'static [AllocatorVariant],
    /// List-typed attributes in constraints while their gate is off.
    pub lists_off: ListTypes,
    /// List-typed attributes in constraints while their gate is on.
    pub lists_on: ListTypes,
    /// Attributes that a selector makes values of.
    pub converted: ConvertedAttributes,
    /// Tolerations of a request in its results.
    pub tolerations: ResultTolerations,
    /// Configuration that names every request of a claim.
    pub config_of_all: ConfigOfAll,
    /// Taints whose effect is `None` or unknown.
    pub other_effects: OtherEffects,
    /// Slices that define counter sets.
    pub counter_slices: CounterSlices,
    /// Pools of which the node sees only some of the slices.
    pub partial_pools: PartialPools,
    /// Invalid pools, where the other devices of the node do not suffice.
    pub invalid_pools: NodeFailures,
    /// Invalid pools and pools in an update, of a node from which a request asks for all devices.
    pub pools_of_all: NodeFailures,
    /// Devices of which `distinctAttribute` remembers the values.
    pub distinct: DistinctMemory,
    /// Devices without room for a further share, in requests for all devices.
    pub full_devices: FullDevices,
    /// Shared device that a request got, when it needs a further one.
    pub further_share: FurtherShare,
    /// Devices that consume counters, in requests for all devices.
    pub counters_of_all: CountersOfAll,
}

/// One of the allocators of a release, which know different features.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct AllocatorVariant {
    /// Name of the variant: the more it knows, the less it is tried.
    pub name: &'static str,
    /// Sets of gates of the features that it knows. A feature is on if all gates of its set are.
    pub knows: &'static [&'static [Gate]],
    /// Constraints that it knows.
    pub constraints: KnownConstraints,
    /// Requests for all devices that are not the first of a list of alternatives.
    pub later_all: LaterAll,
    /// Counters of a device that is refused because of a taint or a constraint.
    pub refused_counters: RefusedCounters,
}

impl AllocatorRules {
    /// Returns the variant that is used while some gates are on: the first that knows every feature of the others that is
    /// on.
    #[must_use]
    pub fn variant(&self, gates: GateSet) -> &'static AllocatorVariant {
        let is_on = |feature: &&&[Gate]| feature.iter().all(|gate| gates.has(*gate));
        let asked = || self.variants.iter().flat_map(|variant| variant.knows).filter(is_on);
        let knows_all = |variant: &&AllocatorVariant| asked().all(|feature| variant.knows.contains(feature));
        self.variants.iter().find(knows_all).or_else(|| self.variants.last()).unwrap_or(&AllocatorVariant::COMPLETE)
    }
}

impl AllocatorVariant {
    /// Variant that knows everything, as which a release is modelled whose variants give the same answers.
    pub const COMPLETE: Self = Self {
        name: "complete",
        knows: &[],
        constraints: KnownConstraints::MatchAndDistinct,
        later_all: LaterAll::Kept,
        refused_counters: RefusedCounters::Released,
    };
}

behaviours! {
    /// Constraints that a variant of the allocator knows. A claim with another one is an error.
    KnownConstraints {
        /// `matchAttribute`.
        Match,
        /// `matchAttribute` and `distinctAttribute`.
        MatchAndDistinct,
    }
    /// Attributes of a device that the evaluation of a selector makes values of. One that can't be, such as a list while
    /// the gate of lists is off, makes the evaluation fail.
    ConvertedAttributes {
        /// All of the device: a defect that 1.37 mended.
        All,
        /// Those that the expression reads.
        Read,
    }
    /// Tolerations of a request in its results.
    ResultTolerations {
        /// They are not written.
        Absent,
        /// They are copied.
        Copied,
    }
    /// Names of requests in configuration that names every request of a claim.
    ConfigOfAll {
        /// They are kept.
        Kept,
        /// They are cleared: no name stands for all requests.
        Cleared,
    }
    /// Slices that define counter sets (KEP-4815).
    CounterSlices {
        /// Their devices are not read.
        WithoutDevices,
        /// Their devices are read, as those of other slices.
        WithDevices,
    }
    /// Taints whose effect is `None` or unknown.
    OtherEffects {
        /// They prevent allocation.
        Prevent,
        /// They do not matter.
        Ignored,
    }
    /// Failures that concern one node.
    NodeFailures {
        /// They end the attempt on all nodes: a defect that 1.35 mended.
        EndAttempt,
        /// Other nodes are tried.
        SkipNode,
    }
    /// Devices of a pool of whose latest generation the node sees too few or too many slices.
    PartialPools {
        /// Requests for a number of devices may get them, even if the other slices are for other nodes: a defect that 1.35
        /// mended.
        Used,
        /// If the slices on all nodes are not the announced number either, no request gets them.
        Skipped,
    }
    /// Devices of which `distinctAttribute` remembers the values.
    DistinctMemory {
        /// The last device of each request: a defect that 1.37 mended.
        LastOfRequest,
        /// Every device.
        Every,
    }
    /// Shared device that a request got, when it needs a further one.
    FurtherShare {
        /// The device is tried again: a defect that 1.36 mended.
        SameDevice,
        /// Devices after it are tried.
        OtherDevice,
    }
    /// Request for all devices that is not the first of a list of alternatives.
    LaterAll {
        /// After its first device, the first alternative is gone on with, so that mostly there is no solution: a defect that 1.36
        /// mended.
        Lost,
        /// It gets its devices.
        Kept,
    }
    /// Counters of a device that is refused because of a taint or a constraint.
    RefusedCounters {
        /// They stay reserved for the rest of the search: a defect that later variants mended.
        Reserved,
        /// They are free again.
        Released,
    }
    /// Devices that consume counters, in requests for all devices.
    CountersOfAll {
        /// The scheduler crashes: a defect that 1.36 mended.
        Crash,
        /// They are counted.
        Counted,
    }
    /// Devices without room for a further share, in requests for all devices.
    FullDevices {
        /// They are left out.
        LeftOut,
        /// They belong to all devices, so that the request fails.
        Counted,
    }
}
