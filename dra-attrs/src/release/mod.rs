//! Rules in which the KEPs and the releases of Kubernetes differ: one row for each, and no other place.
//!
//! A row is written in full, so that a release which lacks one decision does not build. The rest of the family reads the
//! fields of a row, or matches on its small enums without a wildcard: a new behaviour stops every place that must decide,
//! and a new release with known behaviours changes this module alone.
//!
//! Tests: `../examples/tests/release_rows.rs`, `../examples/tests/release_tables.rs`.

mod allocator;
mod behaviours;
mod cel;
mod claim_controller;
mod components;
mod gates;
mod kep;
mod kubelet;
mod limits;
mod plugin;
mod served;
mod v1_34;
mod v1_35;
mod v1_36;
mod v1_37;
mod validation;

pub use allocator::{
    AllocatorRules, AllocatorVariant, ConfigOfAll, ConvertedAttributes, CounterSlices, CountersOfAll, DistinctMemory,
    FullDevices, FurtherShare, KnownConstraints, LaterAll, NodeFailures, OtherEffects, PartialPools, RefusedCounters,
    ResultTolerations,
};
pub use cel::{CelAttributes, CelRules, ListFunctions};
pub use claim_controller::{ControllerRules, LateTemplate, SpecialClaim, UnneededEntry};
pub use components::{
    Inference, LostOperations, MetricNames, NominationAfterCycle, NominationAfterFailure, PoolStatusForm, SentWhileOff,
    SkipForm, SkipGateOff, SkipRules,
};
pub use gates::{GateRow, GateStage};
pub use kubelet::{CheckpointShares, ExtendedMappings, KubeletRules, PreparedClaim};
pub use limits::{CounterLimits, Limits};
pub use plugin::{BindingTexts, ClaimScores, FilterTimeout, InitRequests, MadeOwners, PluginRules};
pub use served::ServedVersions;
pub use validation::{
    AbsentValue, AdminAccessErrors, BadKeyPath, BothKinds, ChangedAllocation, ChangedEffect, ConditionRules,
    CounterSets, DefaultPath, DuplicatePath, EmptyDriver, ExtendedNameErrors, LongList, NameLength, OneValue,
    RangeNumbers, SpecUpdate, StoredPart, Strictness, UpperCaseDriver, Validation,
};

use behaviours::behaviours;

use crate::gate::Gate;

pub(crate) use kep::KEP;
pub(crate) use v1_34::V1_34;
pub(crate) use v1_35::V1_35;
pub(crate) use v1_36::V1_36;
pub(crate) use v1_37::V1_37;

/// Rules of one release, or of the texts of the KEPs.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct Rules {
    /// Feature gates, in the order of the enum.
    pub gates: GateRow,
    /// Versions in which the API server has objects.
    pub served: ServedVersions,
    /// Size limits of objects.
    pub limits: Limits,
    /// Gate with which the scheduler and the controller of evictions read rules for taints.
    pub taint_rules: Gate,
    /// Form in which a device accounts for resources of its node.
    pub node_allocatable: NodeAllocatableForm,
    /// Rules of the API server for written objects.
    pub validation: Validation,
    /// Node operations that drivers do not need.
    pub skip: SkipRules,
    /// Environment of CEL expressions.
    pub cel: CelRules,
    /// Search for devices.
    pub allocator: AllocatorRules,
    /// Scheduler's plugin for claims.
    pub plugin: PluginRules,
    /// Claim controller.
    pub controller: ControllerRules,
    /// Kubelet.
    pub kubelet: KubeletRules,
    /// Names of metrics.
    pub metrics: MetricNames,
    /// Form and counts of the status of pools.
    pub pool_status: PoolStatusForm,
    /// Nomination after a cycle that finds no node.
    pub nomination: NominationAfterCycle,
    /// Nomination after an error, or a failure after a node was found.
    pub nomination_after_failure: NominationAfterFailure,
}

behaviours! {
    /// Form in which a device accounts for resources of its node (KEP-5517).
    NodeAllocatableForm {
        /// Devices do not.
        Absent,
        /// `nodeAllocatableResourceMappings`: a multiplier for each resource.
        Mappings,
        /// `nodeAllocatableResources`: a mapping and an overhead for each resource.
        Resources,
    }
}
