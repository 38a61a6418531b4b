//! Rules of the texts of the KEPs, with Kubernetes 1.37 where they are silent.

use super::allocator::{
    AllocatorRules, ConfigOfAll, ConvertedAttributes, CounterSlices, CountersOfAll, DistinctMemory, FullDevices,
    FurtherShare, NodeFailures, OtherEffects, PartialPools, ResultTolerations,
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

/// Rules of the texts of the KEPs, with Kubernetes 1.37 where they are silent.
pub(crate) const KEP: Rules = Rules {
    gates: GATES,
    served: SERVED,
    limits: LIMITS,
    taint_rules: Gate::DeviceTaintRules,
    node_allocatable: NodeAllocatableForm::Resources,
    validation: VALIDATION,
    skip: SKIP,
    cel: CEL,
    allocator: ALLOCATOR,
    plugin: PLUGIN,
    controller: CONTROLLER,
    kubelet: KUBELET,
    metrics: MetricNames::Kep,
    pool_status: PoolStatusForm::Kep,
    nomination: NominationAfterCycle::Cleared,
    nomination_after_failure: NominationAfterFailure::Cleared,
};

const GATES: GateRow = [
    (Gate::AdminAccess, GateStage::Stable),
    (Gate::PrioritizedList, GateStage::Stable),
    (Gate::DeviceTaints, GateStage::Stable),
    (Gate::PartitionableDevices, GateStage::BetaOn),
    (Gate::ConsumableCapacity, GateStage::BetaOn),
    (Gate::DeviceBindingConditions, GateStage::BetaOn),
    (Gate::ListTypeAttributes, GateStage::Alpha),
    (Gate::OptionalNodeOperations, GateStage::Alpha),
    (Gate::DerivedAttributes, GateStage::Alpha),
    (Gate::DeviceCompatibilityGroups, GateStage::Alpha),
    (Gate::FractionalCapacityRange, GateStage::BetaOn),
    (Gate::ResourceClaimDeviceStatus, GateStage::Stable),
    (Gate::NodeAllocatableResources, GateStage::Alpha),
    (Gate::PartitionableDevicesType, GateStage::Alpha),
    (Gate::WorkloadResourceClaims, GateStage::BetaOff),
    (Gate::ExtendedResource, GateStage::Stable),
    (Gate::DeviceTaintRules, GateStage::Stable),
    (Gate::ResourcePoolStatus, GateStage::Alpha),
    (Gate::NominatedNodeNameForExpectation, GateStage::BetaOn),
    (Gate::ClearingNominatedNodeNameAfterBinding, GateStage::BetaOn),
    (Gate::InPlacePodVerticalScalingSchedulerPreemption, GateStage::Alpha),
    (Gate::PodTopologyLabelsAdmission, GateStage::BetaOn),
];

const SERVED: ServedVersions =
    ServedVersions { objects: &["v1", "v1beta2", "v1beta1"], taint_rules: &["v1"], pool_status: &["v1alpha1"] };

const LIMITS: Limits =
    Limits { taints: 16, advanced_devices: 64, counters: CounterLimits::BySet { sets: 8, counters: 32, of_device: 2 } };

const VALIDATION: Validation = Validation {
    counter_sets: CounterSets::Apart,
    one_value: OneValue::Named,
    absent_name: AbsentValue::Invalid,
    empty_driver: EmptyDriver::Required,
    long_list: LongList::Counted,
    duplicate: DuplicatePath::Item,
    bad_key: BadKeyPath::Map,
    claim_update: SpecUpdate::Compared,
    changed_allocation: ChangedAllocation::OnceSet,
    extended_name: ExtendedNameErrors::ByRule,
    name_length: NameLength::Bytes,
    admin_access: AdminAccessErrors::Each,
    conditions: ConditionRules::Declared,
    both_kinds: BothKinds::Refused,
    stored_taints: StoredPart::Trusted,
    stored_selectors: StoredPart::Trusted,
    stored_capacities: StoredPart::Trusted,
    allocated_tolerations: Strictness::Refused,
    two_slashes: Strictness::Refused,
    none_effect: Strictness::Accepted,
    range_numbers: RangeNumbers::Guarded,
    default_path: DefaultPath::Default,
    upper_case_driver: UpperCaseDriver::Warned,
    changed_effect: ChangedEffect::Renewed,
    kept_while_off: &["status.allocation.allocationTimestamp"],
};

const SKIP: SkipRules = SkipRules {
    form: SkipForm::Bool,
    sent_while_off: SentWhileOff::Refused,
    chosen_while_off: SkipGateOff::FailClaim,
    declared_feature: "DraOptionalNodePreparation",
    inference: Inference::FromClaims,
    lost_operations: LostOperations::Called,
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
    variants: &[],
    lists_off: ListTypes::Refused,
    lists_on: ListTypes::Enabled,
    converted: ConvertedAttributes::Read,
    tolerations: ResultTolerations::Copied,
    config_of_all: ConfigOfAll::Cleared,
    other_effects: OtherEffects::Ignored,
    counter_slices: CounterSlices::WithoutDevices,
    partial_pools: PartialPools::Skipped,
    invalid_pools: NodeFailures::SkipNode,
    pools_of_all: NodeFailures::SkipNode,
    distinct: DistinctMemory::Every,
    full_devices: FullDevices::Counted,
    further_share: FurtherShare::OtherDevice,
    counters_of_all: CountersOfAll::Counted,
};
