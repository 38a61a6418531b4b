//! Decisions about Dynamic Resource Allocation, as kube-scheduler, the API server and the kubelet make them.
//!
//! [`Allocator::allocate`] answers the question of kube-scheduler's DRA plugin: which devices do these claims get on this
//! node, and if none, why?
//!
//! ```
//! use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Outcome, Profile};
//! # let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
//! # let slice = json(r#"{"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com", "nodeName": "node-1",
//! #     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0"}]}}"#);
//! # let class = json(r#"{"metadata": {"name": "gpu"}, "spec": {}}"#);
//! # let claim = json(r#"{"metadata": {"name": "training"}, "spec": {"devices": {"requests": [
//! #     {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}"#);
//! # let node = json(r#"{"metadata": {"name": "node-1"}}"#);
//! use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
//!
//! let slice: ResourceSlice = serde_json::from_value(slice)?;
//! let class: DeviceClass = serde_json::from_value(class)?;
//! let claim: ResourceClaim = serde_json::from_value(claim)?;
//! let node = serde_json::from_value(node)?;
//!
//! let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
//! let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
//! let verdict = allocator.allocate(&AllocatedState::default(), &node, &[claim], Budget::default())?;
//! assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contents
//!
//! - **Allocation** (KEP-4381 and its successors, KEP-6072): [`Allocator`] with [`Inventory`] (slices and taint rules),
//!   [`Classes`], [`AllocatedState`] (devices in use), [`Budget`]; the answer is a [`Verdict`]. Module [`explain`] has the
//!   reasons of a "no".
//! - **Pods**: [`pods`] decides about a pod with claims at each extension point of a scheduler, from its queue to its binding,
//!   alone or in a gang; [`claims`] names the claims of a pod.
//! - **Node rules**: [`fit`] judges nodes for a pod apart from its devices: resources, taints, labels, ports.
//! - **Queue**: [`queue`] decides which pod is tried next, and which event lets a refused one be tried again.
//! - **Preemption**: [`preemption`] decides which pods give up their devices for a pod, by kube-scheduler's rule or with the
//!   least harm (KEP-5690).
//! - **Moves**: [`consolidation`] empties and replaces nodes, and finds the least moves after which pods fit.
//! - **A node that may become one of several**: [`superposition`] says which instance types serve pods, and in which zones.
//! - **Many nodes**: [`Allocator::attempt`] asks node after node, [`NodeVerdicts`] leaves out those that would refuse again.
//! - **Parts of it**: [`selector`] (CEL), [`capacity`] (request policies), [`taint`] (tolerations), [`pool`] (the slices of
//!   a pool that count).
//! - **Optional node operations** (KEP-5945): [`skip`] is `skipNodeOperations` in both wire forms, [`kubelet`] decides which
//!   drivers are called, [`declared_features`] keeps pods off nodes that can't skip.
//! - **API server**: [`validate`] says what is accepted and stored of slices, claims, templates, classes and taint rules.
//! - **Drivers**: [`driver`] plans the slices of a driver's devices and keeps the stored slices so.
//! - **Controllers**: [`claim_controller`] makes claims and takes them back, [`eviction`] says which pods taints evict
//!   (KEP-5055), [`autoscaler`] says which pods one more node would take and which nodes can go.
//!
//! # Guarantees
//!
//! - **Parsing is not validating.** Objects are read as they are; the allocator checks what it relies on when the search
//!   reaches it, and an error names the field. [`validate`] checks the rest.
//! - **Objects come decoded.** Those of a cluster are decoded after [`dra_attrs::saturate_times`]: k8s-openapi can't hold
//!   times after 9999-12-30T22:00Z, which an API server stores.
//! - **A "no" is an answer.** `Err` is for input that no node can make good ([`AllocateError`]).
//! - **Bounded.** Each step of a search counts against the caller's budget, each evaluation of a selector has a cost limit of
//!   its own, and explanations have bounds beside the budget.
//! - **Deterministic.** The same input gives the same output, byte for byte; IDs of shares are the caller's.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the types of [`skip`] and to device IDs. The crate needs the Kubernetes types of 1.37.
//!
//! Tests: `tests/it`.

pub mod autoscaler;
pub mod claim_controller;
pub mod consolidation;
pub mod eviction;
pub mod explain;
pub mod fit;
pub mod objective;
pub mod pods;
pub mod preemption;
pub mod queue;
pub mod superposition;

mod allocator;
mod cluster;
mod search;

// The second allocator of the tests, which calls the crate by its name.
#[cfg(test)]
extern crate self as dra_alloc;
#[cfg(test)]
#[path = "../tests/oracle/mod.rs"]
mod oracle;

pub use allocator::{
    Allocator, Attempt, AttemptByState, ExplainError, FollowedNodes, NodePool, NodeVerdicts, NodeVersion, Nodes,
    StateFit, Verdict, cluster_summary,
};
pub use cluster::capacity;
pub use cluster::classes::Classes;
pub use cluster::inventory::{Inventory, InventoryEvent, InventoryLayer};
pub use cluster::state::{AllocatedState, AssumeOutcome, ClaimId, DeviceUsage, Layer, StateError};
#[doc(no_inline)]
pub use dra_attrs::{Component, DroppedField, Gate, GateName, GateSet, Index, Profile};
pub use dra_device::{
    ApplyOutcome, DeviceId, DeviceIdError, InventoryError, MAX_DEVICES_PER_CLAIM, allocated_devices, claims, pool,
    skip, taint,
};
pub use dra_node::{declared_features, driver, kubelet};
pub use search::allocate_error::{AllocateError, RequestError};
pub use search::budget::Budget;
pub use search::outcome::{Fit, NodeError, Outcome};
pub use search::share::{Share, ShareIds, share_id};
pub use search::stopped::{Limit, Stopped};
pub use {dra_selector as selector, dra_validate as validate};
