//! Why claims are not allocated on a node: a tree of reasons, as data and as text.
//!
//! An explanation is made after the search, by asking again: it finds a smallest set of requests and constraints that
//! cannot hold together, says for each of these requests what becomes of the node's devices, and for constraints what
//! the requests have to offer. Where each request could be served alone, it asks whether counters, compatibility groups or
//! shared capacities are what does not suffice. A change that would help is only suggested if the allocation then
//! succeeds.
//!
//! The search itself records nothing, so that not explaining costs nothing. All questions together are bounded.
//!
//! ```
//! use dra_alloc::allocator::Allocator;
//! use dra_alloc::budget::Budget;
//! use dra_alloc::explain::Detail;
//! use dra_alloc::inventory::Inventory;
//! use dra_alloc::result::numbered;
//! use dra_alloc::selector::SelectorCache;
//! use dra_alloc::state::AllocatedState;
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
//! let inventory = Inventory::new([slice], []);
//! let (state, selectors) = (AllocatedState::default(), SelectorCache::default());
//! let allocator = Allocator::new(&inventory, [&class], &state, &selectors, &numbered).explaining(Detail::Full);
//! let verdict = allocator.allocate(&node, &[claim], Budget::default())?;
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
mod conflict;
mod devices;
mod names;
mod reasons;
mod render;
mod suggest;

use serde::{Deserialize, Serialize};

use crate::device_id::DeviceId;

pub use cluster::cluster_summary;
pub(crate) use conflict::explain;

/// How much is said about a "no".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Detail {
    /// Nothing is explained.
    #[default]
    Off,
    /// The reasons, devices counted.
    Summary,
    /// The reasons with their devices.
    Full,
}

/// The reasons of a "no".
///
/// `Display` gives one line, like a scheduler's event; [`Explanation::tree`] everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Each of them alone makes the allocation impossible.
    pub reasons: Vec<Reason>,
    /// Changes with which the allocation succeeds.
    pub suggestions: Vec<Suggestion>,
}

/// A reason, and what it follows from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// The reason itself.
    #[serde(flatten)]
    pub cause: Cause,
    /// What it follows from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Self>,
}

/// What is the matter, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Cause {
    /// The node can't be judged now.
    Node {
        /// The failure.
        reason: String,
    },
    /// The search was stopped.
    Stopped {
        /// Steps that it had made.
        steps: u64,
    },
    /// The drivers have published no devices for this node.
    NoDevices,
    /// A pool can't be used now.
    Pool {
        /// `driver/pool`.
        pool: String,
        /// What is wrong with it; nothing if it is being updated.
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// A request does not find enough devices.
    Request {
        /// Where.
        at: RequestName,
        /// The class of the devices.
        class: String,
        /// How many are wanted; nothing for all.
        wanted: Option<u64>,
        /// Devices that could be used if nothing else were asked for.
        usable: usize,
        /// Devices of the class.
        of_class: usize,
    },
    /// Devices that a request can't use, all for the same reason.
    Devices {
        /// How many.
        count: usize,
        /// Which ones, as far as they are listed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        devices: Vec<DeviceId>,
        /// Why.
        rejection: DeviceRejection,
    },
    /// No alternative of a request is possible.
    NoAlternative {
        /// The request.
        at: RequestName,
    },
    /// Requests and constraints that cannot hold together, although each one could without the others.
    Together {
        /// The requests.
        requests: Vec<RequestName>,
        /// The constraints.
        constraints: Vec<ConstraintName>,
        /// What there is not enough of, if it is not devices.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        bottlenecks: Vec<Bottleneck>,
    },
    /// What a request takes from others that want the same devices.
    Wants {
        /// The request.
        at: RequestName,
        /// The class of the devices.
        class: String,
        /// How many are wanted; nothing for all.
        wanted: Option<u64>,
        /// Devices that could be used if nothing else were asked for.
        usable: usize,
    },
    /// What a request offers to a constraint.
    Offer {
        /// The request.
        at: RequestName,
        /// The attribute that the constraint compares.
        attribute: String,
        /// Values of the devices that the request could use, sorted; the first ones if there are many.
        values: Vec<String>,
        /// Values that are not listed.
        left_out: usize,
        /// Devices that the request could use.
        usable: usize,
        /// Those of them whose value is a list while lists are off.
        lists_off: usize,
    },
    /// A claim would have more devices than an allocation may have, whatever alternatives are taken.
    TooManyDevices {
        /// The claim.
        claim: String,
        /// The most devices.
        limit: usize,
    },
    /// Some alternatives of a claim can't be taken together, since they have more devices than an allocation may have.
    AtMost {
        /// The claim.
        claim: String,
        /// The most devices.
        limit: usize,
    },
}

/// A request of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct RequestName {
    /// Namespace and name of the claim.
    pub claim: String,
    /// The request, or `request/subrequest`.
    pub request: String,
}

/// A constraint of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ConstraintName {
    /// Namespace and name of the claim.
    pub claim: String,
    /// Position in the claim.
    pub index: usize,
    /// `matchAttribute` or `distinctAttribute`.
    pub field: &'static str,
    /// The attribute.
    pub attribute: String,
}

/// What devices share, so that they can't all be used together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Bottleneck {
    /// The counters of a counter set.
    Counters {
        /// `driver/pool`.
        pool: String,
        /// The counter set.
        set: String,
    },
    /// The compatibility groups of the devices on a counter set.
    Groups {
        /// `driver/pool`.
        pool: String,
        /// The counter set.
        set: String,
    },
    /// A capacity of devices that are shared.
    Capacity {
        /// The capacity.
        capacity: String,
    },
}

/// Why a request can't use a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum DeviceRejection {
    /// A selector of the class is false.
    Class {
        /// Position of the selector in the class.
        selector: usize,
        /// The expression.
        expression: String,
    },
    /// A selector of the request is false.
    Selector {
        /// Position of the selector in the request.
        selector: usize,
        /// The expression.
        expression: String,
    },
    /// The device is for other nodes.
    OtherNode,
    /// Another claim holds the device.
    Held,
    /// A gate that the device needs is off.
    GateOff {
        /// The gate.
        gate: &'static str,
    },
    /// The slice skips node operations, and the node does not declare that it can.
    NodeDoesNotDeclare {
        /// The feature.
        feature: &'static str,
    },
    /// The device does not have a capacity that is asked for.
    NoCapacity {
        /// The capacity.
        capacity: String,
    },
    /// The request policy of a capacity does not permit the amount.
    CapacityPolicy {
        /// The capacity.
        capacity: String,
        /// The amount.
        wanted: String,
    },
    /// A capacity is smaller than the amount.
    CapacityTooSmall {
        /// The capacity.
        capacity: String,
        /// What the device has.
        value: String,
        /// The amount.
        wanted: String,
    },
    /// Shares have used up a capacity.
    CapacityUsedUp {
        /// The capacity.
        capacity: String,
        /// What is left of it.
        left: String,
        /// The amount.
        wanted: String,
    },
    /// Other devices of the pool have used up a counter, or the counter is overcommitted.
    CounterUsedUp {
        /// `counter set/counter`
        counter: String,
        /// What is left of it.
        left: String,
        /// What the device consumes.
        wanted: String,
    },
    /// The compatibility groups do not go with those of the devices in use on a counter set.
    Groups,
    /// The device has a taint that is not tolerated.
    Tainted {
        /// `key[=value]:effect`.
        taint: String,
    },
    /// The request can't be evaluated on the device. kube-scheduler does not come to it.
    Error {
        /// What is wrong.
        error: String,
    },
    /// The device alone breaks a constraint.
    Constraint {
        /// The attribute.
        attribute: String,
        /// How.
        violation: String,
    },
}

/// A change with which the allocation succeeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Suggestion {
    /// Gates are switched on.
    Gates {
        /// The gates.
        gates: &'static [&'static str],
    },
    /// A request tolerates a taint.
    Tolerate {
        /// The request.
        at: RequestName,
        /// `key[=value]:effect`.
        taint: String,
    },
    /// A request asks for fewer devices.
    Fewer {
        /// The request.
        at: RequestName,
        /// How many.
        count: usize,
    },
    /// A constraint is left out.
    WithoutConstraint {
        /// The constraint.
        at: ConstraintName,
    },
    /// Other claims give back what they hold.
    Release,
}

impl Reason {
    pub(crate) const fn leaf(cause: Cause) -> Self {
        Self { cause, because: Vec::new() }
    }
}
