//! Rules of Kubernetes 1.34.

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

/// Rules of Kubernetes 1.34.
pub(crate) const V1_34: Rules = Rules {
    gates: GATES,
    served: SERVED,
    limits: LIMITS,
    taint_rules: Gate::DeviceTaints,
    node_allocatable: NodeAllocatableForm::Absent,
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
    nomination_after_failure: NominationAfterFailure::KeptByGate,
};

const GATES: GateRow = [
    (Gate::AdminAccess, GateStage::BetaOn),
    (Gate::PrioritizedList, GateStage::BetaOn),
    (Gate::DeviceTaints, GateStage::Alpha),
    (Gate::PartitionableDevices, GateStage::Alpha),
    (Gate::ConsumableCapacity, GateStage::Alpha),
    (Gate::DeviceBindingConditions, GateStage::Alpha),
    (Gate::ListTypeAttributes, GateStage::Absent),
    (Gate::OptionalNodeOperations, GateStage::Absent),
    (Gate::DerivedAttributes, GateStage::Absent),
    (Gate::DeviceCompatibilityGroups, GateStage::Absent),
    (Gate::FractionalCapacityRange, GateStage::Absent),
    (Gate::ResourceClaimDeviceStatus, GateStage::BetaOn),
    (Gate::NodeAllocatableResources, GateStage::Absent),
    (Gate::PartitionableDevicesType, GateStage::Absent),
    (Gate::WorkloadResourceClaims, GateStage::Absent),
    (Gate::ExtendedResource, GateStage::Alpha),
    (Gate::DeviceTaintRules, GateStage::Absent),
    (Gate::ResourcePoolStatus, GateStage::Absent),
    (Gate::NominatedNodeNameForExpectation, GateStage::Alpha),
    (Gate::ClearingNominatedNodeNameAfterBinding, GateStage::Alpha),
    (Gate::InPlacePodVerticalScalingSchedulerPreemption, GateStage::Absent),
    (Gate::PodTopologyLabelsAdmission, GateStage::Alpha),
];

const SERVED: ServedVersions =
    ServedVersions { objects: &["v1", "v1beta2", "v1beta1"], taint_rules: &["v1alpha3"], pool_status: &[] };

const LIMITS: Limits = Limits {
    taints: 4,
    advanced_devices: 128,
    counters: CounterLimits::InTotal { shared: 32, of_device: 32, consumed: 1_024 },
};

const VALIDATION: Validation = Validation {
    counter_sets: CounterSets::WithDevices,
    one_value: OneValue::Counted(AbsentValue::Required),
    absent_name: AbsentValue::Required,
    empty_driver: EmptyDriver::RequiredAndInvalid,
    long_list: LongList::Checked,
    duplicate: DuplicatePath::Key,
    bad_key: BadKeyPath::Entry,
    claim_update: SpecUpdate::ValidatedAndCompared,
    changed_allocation: ChangedAllocation::Immutable,
    extended_name: ExtendedNameErrors::One,
    name_length: NameLength::Characters,
    admin_access: AdminAccessErrors::First,
    conditions: ConditionRules::Written,
    both_kinds: BothKinds::Validated,
    stored_taints: StoredPart::Validated,
    stored_selectors: StoredPart::Validated,
    stored_capacities: StoredPart::Validated,
    allocated_tolerations: Strictness::Accepted,
    two_slashes: Strictness::Accepted,
    none_effect: Strictness::Refused,
    range_numbers: RangeNumbers::Unguarded,
    default_path: DefaultPath::Bound,
    upper_case_driver: UpperCaseDriver::Silent,
    changed_effect: ChangedEffect::Kept,
    kept_while_off: &[
        "spec.devices.requests[*].exactly.tolerations",
        "spec.devices.requests[*].firstAvailable[*].tolerations",
        "spec.devices.constraints[*].distinctAttribute",
    ],
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
    filter_timeout: FilterTimeout::SkipNode,
    owners: MadeOwners::Blocking,
    binding_texts: BindingTexts::Claim,
    scores: ClaimScores::Never,
    init_requests: InitRequests::Own,
};

const CONTROLLER: ControllerRules = ControllerRules {
    unneeded_entry: UnneededEntry::EndsTheLook,
    special_claim: SpecialClaim::StaysWithPod,
    late_template: LateTemplate::WaitsForRetry,
};

const KUBELET: KubeletRules = KubeletRules {
    prepared_claim: PreparedClaim::EndsPreparation,
    extended_mappings: ExtendedMappings::First,
    checkpoint_shares: CheckpointShares::Absent,
};

const CEL: CelRules = CelRules { attributes: CelAttributes::Values, new_functions: ListFunctions::Basic };

const ALLOCATOR: AllocatorRules = AllocatorRules {
    variants: VARIANTS,
    lists_off: ListTypes::Disabled,
    lists_on: ListTypes::Disabled,
    converted: ConvertedAttributes::All,
    tolerations: ResultTolerations::Absent,
    config_of_all: ConfigOfAll::Kept,
    other_effects: OtherEffects::Prevent,
    counter_slices: CounterSlices::WithDevices,
    partial_pools: PartialPools::Used,
    invalid_pools: NodeFailures::EndAttempt,
    pools_of_all: NodeFailures::EndAttempt,
    distinct: DistinctMemory::LastOfRequest,
    full_devices: FullDevices::Counted,
    further_share: FurtherShare::SameDevice,
    counters_of_all: CountersOfAll::Counted,
};

const VARIANTS: &[AllocatorVariant] = &[
    AllocatorVariant {
        name: "stable",
        knows: &[],
        constraints: KnownConstraints::Match,
        later_all: LaterAll::Lost,
        refused_counters: RefusedCounters::Reserved,
    },
    AllocatorVariant {
        name: "incubating",
        knows: &[&[Gate::AdminAccess], &[Gate::PrioritizedList], &[Gate::PartitionableDevices], &[Gate::DeviceTaints]],
        constraints: KnownConstraints::Match,
        later_all: LaterAll::Lost,
        refused_counters: RefusedCounters::Reserved,
    },
    AllocatorVariant {
        name: "experimental",
        knows: &[
            &[Gate::AdminAccess],
            &[Gate::PrioritizedList],
            &[Gate::PartitionableDevices],
            &[Gate::DeviceTaints],
            &[Gate::ConsumableCapacity],
            &[Gate::DeviceBindingConditions],
            &[Gate::ResourceClaimDeviceStatus],
        ],
        constraints: KnownConstraints::MatchAndDistinct,
        later_all: LaterAll::Kept,
        refused_counters: RefusedCounters::Reserved,
    },
];
