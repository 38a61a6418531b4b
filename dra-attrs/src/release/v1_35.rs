//! Rules of Kubernetes 1.35.

use super::components::{
    AllocatorRules, Inference, LostOperations, MetricNames, NominationAfterCycle, NominationAfterFailure,
    PoolStatusForm, SentWhileOff, SkipForm, SkipGateOff, SkipRules,
};
use super::validation::{
    AbsentValue, AdminAccessErrors, BadKeyPath, BothKinds, ChangedAllocation, ConditionRules, CounterSets, DefaultPath,
    DuplicatePath, EmptyDriver, ExtendedNameErrors, LongList, NameLength, OneValue, RangeNumbers, SpecUpdate,
    StoredPart, Strictness, UpperCaseDriver, Validation,
};
use super::{CounterLimits, GateRow, GateStage, Limits, NodeAllocatableForm, Rules, ServedVersions};
use crate::gate::Gate;
use crate::matching::ListTypes;

/// Rules of Kubernetes 1.35.
pub(crate) const V1_35: Rules = Rules {
    gates: GATES,
    served: SERVED,
    limits: LIMITS,
    node_allocatable: NodeAllocatableForm::Absent,
    validation: VALIDATION,
    skip: SKIP,
    allocator: ALLOCATOR,
    metrics: MetricNames::Shipped,
    pool_status: PoolStatusForm::V1alpha3,
    nomination: NominationAfterCycle::Kept,
    nomination_after_failure: NominationAfterFailure::Cleared,
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
    (Gate::DeviceTaintRules, GateStage::Alpha),
    (Gate::ResourcePoolStatus, GateStage::Absent),
    (Gate::NominatedNodeNameForExpectation, GateStage::BetaOn),
    (Gate::ClearingNominatedNodeNameAfterBinding, GateStage::BetaOn),
    (Gate::InPlacePodVerticalScalingSchedulerPreemption, GateStage::Absent),
    (Gate::PodTopologyLabelsAdmission, GateStage::BetaOn),
];

const SERVED: ServedVersions =
    ServedVersions { objects: &["v1", "v1beta2", "v1beta1"], taint_rules: &["v1alpha3"], pool_status: &[] };

const LIMITS: Limits =
    Limits { taints: 16, advanced_devices: 64, counters: CounterLimits::BySet { sets: 8, counters: 32, of_device: 2 } };

const VALIDATION: Validation = Validation {
    counter_sets: CounterSets::Apart,
    one_value: OneValue::Counted(AbsentValue::Invalid),
    absent_name: AbsentValue::Invalid,
    empty_driver: EmptyDriver::Required,
    long_list: LongList::Counted,
    duplicate: DuplicatePath::Item,
    bad_key: BadKeyPath::Entry,
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

const ALLOCATOR: AllocatorRules = AllocatorRules { lists_off: ListTypes::Disabled };
