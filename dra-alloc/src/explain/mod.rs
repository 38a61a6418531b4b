//! Explanations for claims that are not allocated on a node: a tree of reasons, as data and as text.
//!
//! An explanation is computed after the search, by further searches (what-if questions). It finds a minimal
//! (irreducible) set of requests and constraints that can't hold together, reports for each of these requests the
//! rejected devices of the node, and for constraints the values that the requests offer. If each request could be
//! served alone, further questions find out whether counters, compatibility groups or shared capacities are the
//! bottleneck. A change is only suggested if the allocation succeeds with it.
//!
//! The search itself records nothing, so that it costs nothing extra without an explanation. The what-if questions of
//! one explanation are bounded in number and in work, which counts against the limit of the budget for the call.
//!
//! ```
//! use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Profile};
//! use dra_alloc::explain::Detail;
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
//! let class: k8s_openapi::api::resource::v1::DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
//! let claim: k8s_openapi::api::resource::v1::ResourceClaim = from_value(json!({"metadata": {"name": "training"}, "spec": {"devices": {
//!     "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}],
//! }}}))?;
//! let node = from_value(json!({"metadata": {"name": "node-1"}}))?;
//! let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
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
//!
//! Tests: `tests/it/explain.rs`, `tests/it/explain_laws.rs`, `tests/it/headlines.rs`.

mod bottleneck;
mod device_list;
mod devices;
mod explain_outcome;
mod explained_states;
mod explanation;
mod headline;
mod names;
mod reasons;
mod refused;
mod render;
mod stage;
mod suggest;
mod unsat_core;
mod what_if;

pub use device_list::DeviceList;
pub(crate) use explain_outcome::explain;
pub(crate) use explained_states::ExplainedStates;
pub use explanation::{
    Bottleneck, Cause, ClaimName, ConstraintName, Detail, DeviceRejection, Explanation, Reason, RequestName,
    Suggestion, Taint,
};
pub(crate) use refused::Refused;
