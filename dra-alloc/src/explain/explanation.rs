//! An explanation as data: a tree of reasons, and suggestions.

use std::collections::BTreeSet;

use dra_attrs::{GateName, Index, MatchError, Quantity};
use dra_device::pool::PoolProblem;
use k8s_openapi::api::resource::v1::{DeviceConstraint, DeviceSelector, DeviceTaint, DeviceToleration, ResourceClaim};
use serde::{Deserialize, Serialize};

use super::device_list::DeviceList;
use crate::search::outcome::NodeError;
use crate::search::stopped::Stopped;

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
        /// Reason why the node can't be used.
        failure: Box<NodeError>,
    },
    /// A claim is already allocated, and the node selector of its allocation excludes the node.
    AllocatedElsewhere {
        /// The allocated claim.
        claim: ClaimName,
    },
    /// The search was stopped by its budget or by the caller, or the explanation of a search was.
    Stopped {
        /// Place at which the search was stopped, and what was proved by then.
        #[serde(flatten)]
        stopped: Box<Stopped>,
    },
    /// The drivers have published no devices for this node.
    NoDevices,
    /// Devices of a pool can't be allocated: its published slices contradict each other.
    Pool {
        /// `driver/pool`.
        pool: String,
        /// Contradiction in the published slices of the pool.
        problem: PoolProblem,
    },
    /// Devices of a pool can't be allocated: the number of its slices is not the announced one.
    IncompletePool {
        /// `driver/pool`.
        pool: String,
        /// Number of slices of the latest generation that are there.
        slices: usize,
        /// Number of slices that the pool announces (`resourceSliceCount`). If it is larger, the pool is being updated;
        /// otherwise it is wrong.
        announced: i64,
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
        #[serde(skip_serializing_if = "DeviceList::is_empty")]
        devices: DeviceList,
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
        claim: ClaimName,
        /// Largest number of devices of an allocation.
        limit: usize,
    },
    /// Some subrequests of a claim can't be chosen together: they need more devices than one allocation may have.
    AtMost {
        /// Claim whose subrequests need too many devices together.
        claim: ClaimName,
        /// Largest number of devices of an allocation.
        limit: usize,
    },
}

/// A claim of the call, with its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ClaimName {
    /// Position among the claims of the call.
    pub index: Index<ResourceClaim>,
    /// Name, as `namespace/name`.
    pub name: String,
}

/// Name of a request and its claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct RequestName {
    /// Claim of the request.
    pub claim: ClaimName,
    /// Name of the request.
    pub request: String,
    /// Name of the subrequest, for one alternative of a `firstAvailable` request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subrequest: Option<String>,
}

/// Location of a constraint in a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ConstraintName {
    /// Claim of the constraint.
    pub claim: ClaimName,
    /// Position in the claim's list of constraints.
    pub index: Index<DeviceConstraint>,
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
        selector: Index<DeviceSelector>,
        /// CEL expression of the selector.
        expression: String,
        /// First term of the expression that is false for the device, if it has several ([`Selector::terms`]).
        ///
        /// [`Selector::terms`]: crate::selector::Selector::terms
        #[serde(skip_serializing_if = "Option::is_none")]
        term: Option<String>,
    },
    /// A selector of the request is false for the device.
    Selector {
        /// Position of the selector in the request.
        selector: Index<DeviceSelector>,
        /// CEL expression of the selector.
        expression: String,
        /// First term of the expression that is false for the device, if it has several ([`Selector::terms`]).
        ///
        /// [`Selector::terms`]: crate::selector::Selector::terms
        #[serde(skip_serializing_if = "Option::is_none")]
        term: Option<String>,
    },
    /// The device is restricted to other nodes.
    OtherNode,
    /// Another claim has allocated the whole device.
    Held,
    /// Several claims have allocated the device, at least one of them the whole device: the cluster is inconsistent. See
    /// [`AllocatedState::held_twice`](crate::AllocatedState::held_twice).
    HeldTwice {
        /// Number of claims, two or more.
        claims: usize,
    },
    /// A feature gate that the device needs is off.
    GateOff {
        /// The gate.
        gate: GateName,
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
        wanted: Quantity,
    },
    /// A capacity's value is below the requested amount.
    CapacityTooSmall {
        /// Name of the capacity.
        capacity: String,
        /// Value of the capacity.
        value: Quantity,
        /// Requested amount.
        wanted: Quantity,
    },
    /// Other shares of the device have used up a capacity.
    CapacityUsedUp {
        /// Name of the capacity.
        capacity: String,
        /// Remaining amount.
        left: Quantity,
        /// Requested amount.
        wanted: Quantity,
    },
    /// Other devices of the pool have used up a counter, or the counter is overcommitted.
    CounterUsedUp {
        /// Name of the counter set.
        set: String,
        /// Name of the counter in the set.
        counter: String,
        /// Remaining amount.
        left: Quantity,
        /// Amount that the device consumes.
        wanted: Quantity,
    },
    /// The compatibility groups of the device conflict with those of allocated devices on the same counter set.
    Groups,
    /// The device has a taint that the request does not tolerate.
    Tainted {
        /// The taint.
        taint: Taint,
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
        /// Reason why the device violates the constraint.
        violation: MatchError,
    },
}

/// Taint of a device that prevents allocation, without the time at which it was added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Taint {
    /// Key of the taint.
    pub key: String,
    /// Value of the taint; `None` if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect of the taint: `NoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Change of the input with which the allocation succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Suggestion {
    /// Switch on feature gates.
    Gates {
        /// A gate, followed by the gates that it requires.
        gates: Vec<GateName>,
    },
    /// Let a request tolerate a taint.
    Tolerate {
        /// Request to change.
        at: RequestName,
        /// The taint.
        taint: Taint,
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

impl From<&DeviceTaint> for Taint {
    fn from(taint: &DeviceTaint) -> Self {
        let value = taint.value.clone().filter(|value| !value.is_empty());
        Self { key: taint.key.clone(), value, effect: taint.effect.clone() }
    }
}

impl Taint {
    /// Returns the toleration that [`Suggestion::Tolerate`] adds to the request: of the taint's key and effect, with any
    /// value.
    ///
    /// ```
    /// use dra_alloc::explain::Taint;
    /// use dra_alloc::taint::tolerates;
    /// use k8s_openapi::api::resource::v1::DeviceTaint;
    ///
    /// let taint = DeviceTaint { key: "health".into(), effect: "NoSchedule".into(), ..Default::default() };
    /// assert!(tolerates(&Taint::from(&taint).toleration(), &taint));
    /// ```
    #[must_use]
    pub fn toleration(&self) -> DeviceToleration {
        DeviceToleration {
            key: Some(self.key.clone()),
            operator: Some("Exists".to_owned()),
            effect: Some(self.effect.clone()),
            ..DeviceToleration::default()
        }
    }
}

impl Explanation {
    /// Returns the feature gates that are off and that devices need, or with which the allocation succeeds.
    pub(crate) fn gates_off(&self) -> BTreeSet<GateName> {
        let mut gates: BTreeSet<GateName> = self.reasons.iter().flat_map(Reason::gates_off).collect();
        for suggestion in &self.suggestions {
            if let Suggestion::Gates { gates: helpful } = suggestion {
                gates.extend(helpful);
            }
        }
        gates
    }
}

impl Reason {
    fn gates_off(&self) -> BTreeSet<GateName> {
        let mut gates: BTreeSet<GateName> = self.because.iter().flat_map(Self::gates_off).collect();
        match &self.cause {
            Cause::Devices { rejection: DeviceRejection::GateOff { gate }, .. } => drop(gates.insert(*gate)),
            Cause::Node { failure } => gates.extend(failure.gate_off()),
            _ => {}
        }
        gates
    }

    pub(crate) const fn leaf(cause: Cause) -> Self {
        Self { cause, because: Vec::new() }
    }
}
