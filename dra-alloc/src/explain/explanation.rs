//! An explanation as data: a tree of reasons, and suggestions.

use serde::{Deserialize, Serialize};

use crate::device::device_id::DeviceId;

/// Level of detail of an [`Explanation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Detail {
    /// No explanation is computed.
    #[default]
    Off,
    /// Reasons with the number of affected devices.
    Summary,
    /// Reasons with the names of affected devices.
    Full,
}

/// Reasons that claims are not allocated on a node, with suggested changes.
///
/// `Display` prints one line, like a scheduler's event; [`Explanation::tree`] prints everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Reasons, each of which alone prevents the allocation.
    pub reasons: Vec<Reason>,
    /// Changes of the input with which the allocation succeeds, each verified by a search.
    pub suggestions: Vec<Suggestion>,
}

/// Cause of a failure, with the reasons behind it as a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// Cause of the failure.
    #[serde(flatten)]
    pub cause: Cause,
    /// Reasons behind the cause, such as the rejected devices behind a failed request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Self>,
}

/// Cause of a failure and its location (claim, request, pool or device).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Cause {
    /// The node can't be used at the moment, although the claims are valid.
    Node {
        /// Description of the failure.
        reason: String,
    },
    /// A claim is already allocated, and the node selector of its allocation excludes the node.
    AllocatedElsewhere {
        /// Namespace and name of the claim.
        claim: String,
    },
    /// The search was stopped because its budget was exhausted.
    Stopped {
        /// Number of steps that the search made.
        steps: u64,
    },
    /// The drivers have published no devices for this node.
    NoDevices,
    /// Devices of a pool can't be allocated at the moment.
    Pool {
        /// `driver/pool`.
        pool: String,
        /// Contradiction in the published slices of the pool; `None` if the pool is being updated.
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// Too few devices are usable for a request.
    Request {
        /// Request that failed.
        at: RequestName,
        /// Device class of the request.
        class: String,
        /// Number of devices that the request needs; `None` for all.
        wanted: Option<u64>,
        /// Number of devices that the request could use if nothing else were requested.
        usable: usize,
        /// Number of devices of the class.
        of_class: usize,
    },
    /// Devices that a request can't use, all for one reason.
    Devices {
        /// Number of devices.
        count: usize,
        /// Rejected devices; empty at level `Summary`, cut to a limit at level `Full`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        devices: Vec<DeviceId>,
        /// Reason that the devices are rejected.
        rejection: DeviceRejection,
    },
    /// No alternative of a `firstAvailable` request is possible.
    NoAlternative {
        /// Request that failed.
        at: RequestName,
    },
    /// Requests and constraints that can't be satisfied together. The set is minimal: without any one of them, the rest
    /// can.
    Together {
        /// Requests of the minimal set.
        requests: Vec<RequestName>,
        /// Constraints of the minimal set.
        constraints: Vec<ConstraintName>,
        /// Shared counters, groups or capacities that do not suffice; empty if too few devices exist.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        bottlenecks: Vec<Bottleneck>,
    },
    /// Number of devices for which a request competes with other requests.
    Wants {
        /// Request that competes.
        at: RequestName,
        /// Device class of the request.
        class: String,
        /// Number of devices that the request needs; `None` for all.
        wanted: Option<u64>,
        /// Number of devices that the request could use if nothing else were requested.
        usable: usize,
    },
    /// Attribute values of a request's usable devices, among which a constraint must choose.
    Offer {
        /// Request that the constraint applies to.
        at: RequestName,
        /// Attribute that the constraint compares.
        attribute: String,
        /// Values of the devices that the request could use, sorted; cut to a limit.
        values: Vec<String>,
        /// Number of values that are not listed.
        left_out: usize,
        /// Number of devices that the request could use.
        usable: usize,
        /// Number of usable devices whose value is a list while `DRAListTypeAttributes` is off.
        lists_off: usize,
    },
    /// A claim would get more devices than one allocation may have, with any choice of subrequests.
    TooManyDevices {
        /// Claim that is too large.
        claim: String,
        /// Largest number of devices of an allocation.
        limit: usize,
    },
    /// Some subrequests of a claim can't be chosen together: they need more devices than one allocation may have.
    AtMost {
        /// Claim whose subrequests need too many devices together.
        claim: String,
        /// Largest number of devices of an allocation.
        limit: usize,
    },
}

/// Name of a request and its claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct RequestName {
    /// Claim, as `namespace/name`.
    pub claim: String,
    /// Request, as `request` or `request/subrequest`.
    pub request: String,
}

/// Location of a constraint in a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ConstraintName {
    /// Claim, as `namespace/name`.
    pub claim: String,
    /// Position in the claim's list of constraints.
    pub index: usize,
    /// Field of the constraint: `matchAttribute` or `distinctAttribute`.
    pub field: &'static str,
    /// Attribute that the constraint compares.
    pub attribute: String,
}

/// Resource that devices share and that does not suffice to use all of them together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Bottleneck {
    /// Counters of a counter set that devices of a pool share.
    Counters {
        /// Pool, as `driver/pool`.
        pool: String,
        /// Name of the counter set.
        set: String,
    },
    /// Compatibility groups of devices on one counter set that do not match.
    Groups {
        /// Pool, as `driver/pool`.
        pool: String,
        /// Name of the counter set.
        set: String,
    },
    /// Capacity of shareable devices that is used up.
    Capacity {
        /// Name of the capacity.
        capacity: String,
    },
}

/// Reason why a request can't use a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum DeviceRejection {
    /// A selector of the device class is false for the device.
    Class {
        /// Position of the selector in the class.
        selector: usize,
        /// CEL expression of the selector.
        expression: String,
    },
    /// A selector of the request is false for the device.
    Selector {
        /// Position of the selector in the request.
        selector: usize,
        /// CEL expression of the selector.
        expression: String,
    },
    /// The device is restricted to other nodes.
    OtherNode,
    /// Another claim has allocated the whole device.
    Held,
    /// A feature gate that the device needs is off.
    GateOff {
        /// Name of the gate.
        gate: &'static str,
    },
    /// The slice has `skipNodeOperations`, and the node does not declare the feature that such slices need.
    NodeDoesNotDeclare {
        /// Name of the feature in `Node.status.declaredFeatures`.
        feature: &'static str,
    },
    /// The device does not have a requested capacity.
    NoCapacity {
        /// Name of the capacity.
        capacity: String,
    },
    /// The request policy of a capacity does not permit the requested amount.
    CapacityPolicy {
        /// Name of the capacity.
        capacity: String,
        /// Requested amount.
        wanted: String,
    },
    /// A capacity's value is below the requested amount.
    CapacityTooSmall {
        /// Name of the capacity.
        capacity: String,
        /// Value of the capacity.
        value: String,
        /// Requested amount.
        wanted: String,
    },
    /// Other shares of the device have used up a capacity.
    CapacityUsedUp {
        /// Name of the capacity.
        capacity: String,
        /// Remaining amount.
        left: String,
        /// Requested amount.
        wanted: String,
    },
    /// Other devices of the pool have used up a counter, or the counter is overcommitted.
    CounterUsedUp {
        /// Counter, as `counter set/counter`.
        counter: String,
        /// Remaining amount.
        left: String,
        /// Amount that the device consumes.
        wanted: String,
    },
    /// The compatibility groups of the device conflict with those of allocated devices on the same counter set.
    Groups,
    /// The device has a taint that the request does not tolerate.
    Tainted {
        /// Taint, as `key[=value]:effect`.
        taint: String,
    },
    /// Evaluation of the request on the device fails. The search of kube-scheduler does not reach the device.
    Error {
        /// Text of the error.
        error: String,
    },
    /// The device can't satisfy a constraint, whatever other devices are chosen.
    Constraint {
        /// Attribute that the constraint compares.
        attribute: String,
        /// Description of the violated constraint.
        violation: String,
    },
}

/// Change of the input with which the allocation succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Suggestion {
    /// Switch on feature gates.
    Gates {
        /// Names of the gates.
        gates: Vec<&'static str>,
    },
    /// Let a request tolerate a taint.
    Tolerate {
        /// Request to change.
        at: RequestName,
        /// Taint, as `key[=value]:effect`.
        taint: String,
    },
    /// Let a request ask for fewer devices.
    Fewer {
        /// Request to change.
        at: RequestName,
        /// Number of devices to ask for.
        count: usize,
    },
    /// Remove a constraint from a claim.
    WithoutConstraint {
        /// Constraint to remove.
        at: ConstraintName,
    },
    /// Let other claims release devices on the node.
    Release,
}

impl Reason {
    pub(crate) const fn leaf(cause: Cause) -> Self {
        Self { cause, because: Vec::new() }
    }
}
