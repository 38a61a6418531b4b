//! Rules of Kubernetes 1.36.

use super::allocator::{
    AllocatorRules, AllocatorVariant, ConfigOfAll, ConvertedAttributes, CounterSlices, CountersOfAll, DistinctMemory,
    FullDevices, FurtherShare, KnownConstraints, LaterAll, NodeFailures, OtherEffects, PartialPools, RefusedCounters,
    ResultTolerations,
};
use super::cel::{CelAttributes, CelRules, ListFunctions};
use super::claim_controller::{ControllerRules, LateTemplate, SpecialClaim, UnneededEntry};
use super::components::{
    Inference, LostOperations, MetricNames, NominationAfterCycle, NominationAfterFailure, PoolStatusForm, SentWhileOff,
    SkipForm, SkipGateOff, SkipRules,
};
use super::kubelet::{CheckpointShares, ExtendedMappings, KubeletRules, PreparedClaim};
use super::plugin::{BindingTexts, ClaimScores, FilterTimeout, InitRequests, MadeOwners, PluginRules};
use super::validation::{
    AbsentValue, AdminAccessErrors, BadKeyPath, BothKinds, ChangedAllocation, ChangedEffect, ConditionRules,
    CounterSets, DefaultPath, DuplicatePath, EmptyDriver, ExtendedNameErrors, LongList, NameLength, OneValue,
    RangeNumbers, SpecUpdate, StoredPart, Strictness, UpperCaseDriver, Validation,
};
use super::{CounterLimits, GateRow, GateStage, Limits, NodeAllocatableForm, Rules, ServedVersions};
use crate::gate::Gate;
use crate::matching::ListTypes;

/// Rules of Kubernetes 1.36.
pub(crate) const V1_36: Rules = Rules {
    gates: GATES,
    served: SERVED,
    limits: LIMITS,
    taint_rules: Gate::DeviceTaintRules,
    node_allocatable: NodeAllocatableForm::Mappings,
    validation: VALIDATION,
    skip: SKIP,
    cel: CEL,
    allocator: ALLOCATOR,
    plugin: PLUGIN,
    controller: CONTROLLER,
    kubelet: KUBELET,
    metrics: MetricNames::Shipped,
    pool_status: PoolStatusForm::V1alpha3,
    nomination: NominationAfterCycle::Kept,
    nomination_after_failure: NominationAfterFailure::Cleared,
};

const GATES: GateRow = [
    (Gate::AdminAccess, GateStage::Locked),
    (Gate::PrioritizedList, GateStage::Stable),
    (Gate::DeviceTaints, GateStage::BetaOn),
    (Gate::PartitionableDevices, GateStage::BetaOn),
    (Gate::ConsumableCapacity, GateStage::BetaOn),
    (Gate::DeviceBindingConditions, GateStage::BetaOn),
    (Gate::ListTypeAttributes, GateStage::Alpha),
    (Gate::OptionalNodeOperations, GateStage::Absent),
    (Gate::DerivedAttributes, GateStage::Absent),
    (Gate::DeviceCompatibilityGroups, GateStage::Absent),
    (Gate::FractionalCapacityRange, GateStage::Absent),
    (Gate::ResourceClaimDeviceStatus, GateStage::BetaOn),
    (Gate::NodeAllocatableResources, GateStage::Alpha),
    (Gate::PartitionableDevicesType, GateStage::Absent),
    (Gate::WorkloadResourceClaims, GateStage::Alpha),
    (Gate::ExtendedResource, GateStage::BetaOn),
    (Gate::DeviceTaintRules, GateStage::BetaOff),
    (Gate::ResourcePoolStatus, GateStage::Alpha),
    (Gate::NominatedNodeNameForExpectation, GateStage::BetaOn),
    (Gate::ClearingNominatedNodeNameAfterBinding, GateStage::BetaOn),
    (Gate::InPlacePodVerticalScalingSchedulerPreemption, GateStage::Absent),
    (Gate::PodTopologyLabelsAdmission, GateStage::BetaOn),
];

const SERVED: ServedVersions = ServedVersions {
    objects: &["v1", "v1beta2", "v1beta1"],
    taint_rules: &["v1beta2", "v1alpha3"],
    pool_status: &["v1alpha3"],
};

const LIMITS: Limits =
    Limits { taints: 16, advanced_devices: 64, counters: CounterLimits::BySet { sets: 8, counters: 32, of_device: 2 } };

const VALIDATION: Validation = Validation {
    counter_sets: CounterSets::Apart,
    one_value: OneValue::Counted(AbsentValue::Invalid),
    absent_name: AbsentValue::Invalid,
    empty_driver: EmptyDriver::Required,
    long_list: LongList::Counted,
    duplicate: DuplicatePath::Item,
    bad_key: BadKeyPath::Map,
    claim_update: SpecUpdate::Compared,
    changed_allocation: ChangedAllocation::Immutable,
    extended_name: ExtendedNameErrors::One,
    name_length: NameLength::Bytes,
    admin_access: AdminAccessErrors::First,
    conditions: ConditionRules::Written,
    both_kinds: BothKinds::Refused,
    stored_taints: StoredPart::Trusted,
    stored_selectors: StoredPart::Validated,
    stored_capacities: StoredPart::Validated,
    allocated_tolerations: Strictness::Accepted,
    two_slashes: Strictness::Accepted,
    none_effect: Strictness::Accepted,
    range_numbers: RangeNumbers::Unguarded,
    default_path: DefaultPath::Bound,
    upper_case_driver: UpperCaseDriver::Warned,
    changed_effect: ChangedEffect::Renewed,
    kept_while_off: &["status.allocation.allocationTimestamp"],
};

const SKIP: SkipRules = SkipRules {
    form: SkipForm::List,
    sent_while_off: SentWhileOff::Dropped,
    chosen_while_off: SkipGateOff::PassOver,
    declared_feature: "DRAOptionalNodeOperations",
    inference: Inference::Never,
    lost_operations: LostOperations::ReadAgain,
};

const PLUGIN: PluginRules = PluginRules {
    filter_timeout: FilterTimeout::EndAttempt,
    owners: MadeOwners::Controller,
    binding_texts: BindingTexts::Device,
    scores: ClaimScores::WithPrioritizedList,
    init_requests: InitRequests::Shared,
};

const CONTROLLER: ControllerRules = ControllerRules {
    unneeded_entry: UnneededEntry::PassedOver,
    special_claim: SpecialClaim::CleanedUp,
    late_template: LateTemplate::WakesPods,
};

const KUBELET: KubeletRules = KubeletRules {
    prepared_claim: PreparedClaim::PassedOver,
    extended_mappings: ExtendedMappings::All,
    checkpoint_shares: CheckpointShares::Written,
};

const CEL: CelRules = CelRules { attributes: CelAttributes::ValuesAndLists, new_functions: ListFunctions::All };

const ALLOCATOR: AllocatorRules = AllocatorRules {
    variants: VARIANTS,
    lists_off: ListTypes::Disabled,
    lists_on: ListTypes::Disabled,
    converted: ConvertedAttributes::All,
    tolerations: ResultTolerations::Copied,
    config_of_all: ConfigOfAll::Kept,
    other_effects: OtherEffects::Ignored,
    counter_slices: CounterSlices::WithoutDevices,
    partial_pools: PartialPools::Skipped,
    invalid_pools: NodeFailures::SkipNode,
    pools_of_all: NodeFailures::EndAttempt,
    distinct: DistinctMemory::LastOfRequest,
    full_devices: FullDevices::LeftOut,
    further_share: FurtherShare::OtherDevice,
    counters_of_all: CountersOfAll::Counted,
};

const VARIANTS: &[AllocatorVariant] = &[
    AllocatorVariant {
        name: "stable",
        knows: &[&[Gate::AdminAccess], &[Gate::PrioritizedList], &[Gate::PartitionableDevices], &[Gate::DeviceTaints]],
        constraints: KnownConstraints::Match,
        later_all: LaterAll::Kept,
        refused_counters: RefusedCounters::Reserved,
    },
    AllocatorVariant {
        name: "incubating",
        knows: &[
            &[Gate::AdminAccess],
            &[Gate::PrioritizedList],
            &[Gate::PartitionableDevices],
            &[Gate::DeviceTaints],
            &[Gate::ConsumableCapacity],
            &[Gate::DeviceBindingConditions, Gate::ResourceClaimDeviceStatus],
        ],
        constraints: KnownConstraints::MatchAndDistinct,
        later_all: LaterAll::Kept,
        refused_counters: RefusedCounters::Released,
    },
];
