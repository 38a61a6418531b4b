//! Fields of objects that the API server reads or fills in alike.

/// Amounts that are zero when absent.
pub(super) const AMOUNTS: &[&str] = &[
    "spec.sharedCounters[*].counters[*].value",
    "spec.devices[*].capacity[*].value",
    "spec.devices[*].consumesCounters[*].counters[*].value",
    "spec.devices.requests[*].exactly.capacity.requests[*]",
    "spec.devices.requests[*].firstAvailable[*].capacity.requests[*]",
    "status.allocation.devices.results[*].consumedCapacity[*]",
];

/// Amounts that may be absent.
pub(super) const OPTIONAL_AMOUNTS: &[&str] = &[
    "spec.devices[*].capacity[*].requestPolicy.default",
    "spec.devices[*].capacity[*].requestPolicy.validValues[*]",
    "spec.devices[*].capacity[*].requestPolicy.validRange.min",
    "spec.devices[*].capacity[*].requestPolicy.validRange.max",
    "spec.devices[*].capacity[*].requestPolicy.validRange.step",
    "spec.devices[*].nodeAllocatableResources[*].mapping.capacityMultiplier",
    "spec.devices[*].nodeAllocatableResources[*].mapping.deviceMultiplier",
    "spec.devices[*].nodeAllocatableResources[*].overhead.perPod",
    "spec.devices[*].nodeAllocatableResources[*].overhead.perContainer",
];

/// Requests with an allocation mode and a count.
pub(super) const REQUESTS: &[&str] =
    &["spec.devices.requests[*].exactly", "spec.devices.requests[*].firstAvailable[*]"];

pub(super) const TOLERATIONS: &[&str] = &[
    "spec.devices.requests[*].exactly.tolerations[*]",
    "spec.devices.requests[*].firstAvailable[*].tolerations[*]",
    "status.allocation.devices.results[*].tolerations[*]",
];

pub(super) const TAINTS: &[&str] = &["spec.devices[*].taints[*]", "spec.taint"];

/// Times of an allocation.
pub(super) const ALLOCATION_TIMES: &[&str] = &["status.allocation.allocationTimestamp"];

/// Conditions, which have the time of their last transition.
pub(super) const CONDITIONS: &[&str] = &["status.conditions[*]", "status.devices[*].conditions[*]"];

/// Times of an object.
pub(super) const TIMES: &[&str] = &[
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "spec.devices[*].taints[*].timeAdded",
    "spec.taint.timeAdded",
    "status.allocation.allocationTimestamp",
    "status.conditions[*].lastTransitionTime",
    "status.devices[*].conditions[*].lastTransitionTime",
];
