//! Explanations for claims that are not allocated on a node: a tree of reasons, as data and as text.
//!
//! An explanation is computed after the search, by further searches (what-if questions). It finds a minimal
//! (irreducible) set of requests and constraints that can't hold together, reports for each of these requests the
//! rejected devices of the node, and for constraints the values that the requests offer. If each request could be
//! served alone, further questions find out whether counters, compatibility groups or shared capacities are the
//! bottleneck. A change is only suggested if the allocation succeeds with it.
//!
//! The search itself records nothing, so that it costs nothing extra without an explanation. The what-if questions of
//! one explanation are bounded in number and in steps.
//!
//! ```
//! use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Detail, Inventory, Profile};
//! use serde_json::{from_value, json};
//!
//! let slice: k8s_openapi::api::resource::v1::ResourceSlice = from_value(json!({
//!     "metadata": {"name": "node-1-gpus"},
//!     "spec": {
//!         "driver": "gpu.example.com", "nodeName": "node-1",
//!         "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
//!         "devices": [{"name": "gpu-0", "taints": [{"key": "health", "effect": "NoSchedule"}]}],
//!     },
//! }))?;
//! let class = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
//! let claim = from_value(json!({"metadata": {"name": "training"}, "spec": {"devices": {
//!     "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}],
//! }}}))?;
//! let node = from_value(json!({"metadata": {"name": "node-1"}}))?;
//! let (inventory, classes) = (Inventory::new([slice], []), Classes::new([&class]));
//! let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_explanation(Detail::Full);
//! let verdict = allocator.allocate(&AllocatedState::default(), &node, &[claim], Budget::default())?;
//! let explanation = verdict.explanation.unwrap();
//! assert_eq!(
//!     explanation.to_string(),
//!     "claim training, request gpu: none of 1 device of class gpu can be used: 1 has the taint health:NoSchedule; \
//!      possible if request gpu tolerated health:NoSchedule",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bottleneck;
mod cluster;
mod devices;
mod names;
mod reasons;
mod render;
mod suggest;
mod unsat_core;
mod what_if;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::{Deserialize, Serialize};

use self::reasons::reasons;
use self::suggest::{gates, suggestions};
use self::unsat_core::unsat_core;
use self::what_if::WhatIf;
use crate::budget::Budget;
use crate::context::Context;
use crate::device_id::DeviceId;
use crate::outcome::{NodeFailure, Outcome, Verdict};
use crate::search::with_table;
use crate::share::numbered_share_id;

pub use cluster::cluster_summary;

/// Level of detail of explanations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Detail {
    /// No explanation.
    #[default]
    Off,
    /// Reasons with numbers of devices.
    Summary,
    /// Reasons with the devices listed.
    Full,
}

/// Reasons that claims are not allocated on a node, with suggested changes.
///
/// `Display` prints one line, like a scheduler's event; [`Explanation::tree`] prints everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Reasons, each of which alone makes the allocation impossible.
    pub reasons: Vec<Reason>,
    /// Changes with which the allocation succeeds, as tried by a search.
    pub suggestions: Vec<Suggestion>,
}

/// Cause of a failure and the reasons behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// Cause of the failure.
    #[serde(flatten)]
    pub cause: Cause,
    /// Reasons behind the cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Self>,
}

/// Cause of a failure and its location (claim, request, pool or device).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Cause {
    /// The node can't be evaluated now.
    Node {
        /// Description of the failure.
        reason: String,
    },
    /// The budget stopped the search.
    Stopped {
        /// Number of steps that the search made.
        steps: u64,
    },
    /// The drivers have published no devices for this node.
    NoDevices,
    /// A pool can't be allocated from now.
    Pool {
        /// `driver/pool`.
        pool: String,
        /// Contradiction within the pool; `None` if the pool is being updated.
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
        /// Number of devices that could be used if nothing else were requested.
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
    /// Requests and constraints that can't hold together (minimal: without any one of them, the rest is possible).
    Together {
        /// Requests of the minimal set.
        requests: Vec<RequestName>,
        /// Constraints of the minimal set.
        constraints: Vec<ConstraintName>,
        /// Shared resources that do not suffice; empty if devices are missing.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        bottlenecks: Vec<Bottleneck>,
    },
    /// Devices for which a request competes with others.
    Wants {
        /// Request that competes.
        at: RequestName,
        /// Device class of the request.
        class: String,
        /// Number of devices that the request needs; `None` for all.
        wanted: Option<u64>,
        /// Number of devices that could be used if nothing else were requested.
        usable: usize,
    },
    /// Values that a request offers to a constraint.
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
        /// Number of usable devices whose value is a list while list types are off.
        lists_off: usize,
    },
    /// A claim would get more devices than an allocation may have, whatever alternatives are taken.
    TooManyDevices {
        /// Claim that is too large.
        claim: String,
        /// Largest number of devices of an allocation.
        limit: usize,
    },
    /// Some alternatives of a claim can't be taken together: they have more devices than an allocation may have.
    AtMost {
        /// Claim whose alternatives are too large together.
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

/// Resource that devices share and that does not suffice for using them together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Bottleneck {
    /// Counters of a counter set.
    Counters {
        /// Pool, as `driver/pool`.
        pool: String,
        /// Name of the counter set.
        set: String,
    },
    /// Compatibility groups of the devices on a counter set.
    Groups {
        /// Pool, as `driver/pool`.
        pool: String,
        /// Name of the counter set.
        set: String,
    },
    /// Capacity of shareable devices.
    Capacity {
        /// Name of the capacity.
        capacity: String,
    },
}

/// Reason that a request can't use a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum DeviceRejection {
    /// A selector of the class is false.
    Class {
        /// Position of the selector in the class.
        selector: usize,
        /// CEL expression of the selector.
        expression: String,
    },
    /// A selector of the request is false.
    Selector {
        /// Position of the selector in the request.
        selector: usize,
        /// CEL expression of the selector.
        expression: String,
    },
    /// The device is restricted to other nodes.
    OtherNode,
    /// Another claim holds the device.
    Held,
    /// A feature gate that the device needs is off.
    GateOff {
        /// Name of the gate.
        gate: &'static str,
    },
    /// The slice has `skipNodeOperations`, and the node does not declare the feature that it needs.
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
    /// Shares have used up a capacity.
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
    /// The device's compatibility groups conflict with those of the devices in use on a counter set.
    Groups,
    /// The device has a taint that is not tolerated.
    Tainted {
        /// Taint, as `key[=value]:effect`.
        taint: String,
    },
    /// The request can't be evaluated on the device. The search of kube-scheduler does not reach the device.
    Error {
        /// Text of the error.
        error: String,
    },
    /// The device alone breaks a constraint.
    Constraint {
        /// Attribute that the constraint compares.
        attribute: String,
        /// Text of the violation.
        violation: String,
    },
}

/// Change with which the allocation succeeds.
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
    /// Remove a constraint.
    WithoutConstraint {
        /// Constraint to remove.
        at: ConstraintName,
    },
    /// Let other claims release their devices.
    Release,
}

impl Reason {
    pub(crate) const fn leaf(cause: Cause) -> Self {
        Self { cause, because: Vec::new() }
    }
}

/// Explains the outcome of claims on a node; `None` if they are allocated. The stop function of the caller's budget is
/// called in every what-if question as well.
pub(crate) fn explain(
    context: &Context<'_>,
    detail: Detail,
    claims: &[ResourceClaim],
    node: &Node,
    verdict: &Verdict,
    budget: Budget<'_>,
) -> Option<Explanation> {
    let alone = |cause| Some(Explanation { reasons: vec![Reason::leaf(cause)], suggestions: Vec::new() });
    // The results of what-if questions are discarded, so that share IDs need not be unique.
    let context = Context { share_ids: Some(&numbered_share_id), ..*context };
    let what_if = || WhatIf::new(context, node, budget);
    match &verdict.outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped => alone(Cause::Stopped { steps: verdict.steps }),
        Outcome::FailedOnNode(NodeFailure::InvalidPools { .. }) | Outcome::Unsatisfied => {
            let mut what_if = what_if();
            let core = unsat_core(&mut what_if, claims);
            let reasons = with_table(&context, &core.claims, node, |table| reasons(&mut what_if, table, &core, detail));
            let reasons = reasons.ok()?;
            let suggestions = suggestions(&mut what_if, claims, &reasons);
            Some(Explanation { reasons, suggestions })
        }
        Outcome::FailedOnNode(failure) => {
            let reasons = vec![Reason::leaf(Cause::Node { reason: failure.to_string() })];
            let suggestions = match failure {
                NodeFailure::SkipNodeOperationsOff { .. } => gates(&mut what_if(), claims),
                _ => Vec::new(),
            };
            Some(Explanation { reasons, suggestions })
        }
    }
}
