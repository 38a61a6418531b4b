//! Claims in the kubelet: the drivers to call for a pod, the calls to skip, and the checkpoint (KEP-5945, Kubelet
//! Changes).
//!
//! [`ClaimCache`] is the state of a kubelet. An operation on a pod has three steps: make a plan, call the drivers,
//! finish.
//!
//! | | before the pod starts | after it has ended |
//! |---|---|---|
//! | plan | [`ClaimCache::plan_prepare`] | [`ClaimCache::plan_unprepare`], [`ClaimCache::plan_orphans`] |
//! | call each driver of the plan | [`ClaimCache::apply_prepare`] | [`ClaimCache::apply_unprepare`] |
//! | end | [`ClaimCache::finish_prepare`] | [`ClaimCache::finish_unprepare`] |
//!
//! After each step, [`ClaimCache::take_checkpoint`] returns the text that must be written to disk before the next step,
//! if any. A step that fails ends the operation: the caller drops the plan and retries later with a new one. No
//! operation reads a `ResourceSlice`, and unprepare needs neither the API server nor the feature gate.
//!
//! ```
//! use dra_attrs::Component;
//! use dra_node::kubelet::{Responses, ClaimCache};
//! use dra_attrs::Gate;
//! use dra_attrs::{GateSet, Profile};
//! use k8s_openapi::api::core::v1::Pod;
//! use k8s_openapi::api::resource::v1::ResourceClaim;
//! use serde_json::{from_value, json};
//!
//! let pod: Pod = from_value(json!({
//!     "metadata": {"namespace": "default", "name": "train", "uid": "pod-1"},
//!     "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "big"}]},
//! }))?;
//! let claim: ResourceClaim = from_value(json!({
//!     "metadata": {"namespace": "default", "name": "big", "uid": "claim-1"},
//!     "status": {
//!         "reservedFor": [{"resource": "pods", "name": "train", "uid": "pod-1"}],
//!         "allocation": {"devices": {"results": [
//!             {"request": "r", "driver": "called.example.com", "pool": "p", "device": "d0"},
//!             {"request": "r", "driver": "skipped.example.com", "pool": "p", "device": "d1", "skipNodeOperations": ["*"]},
//!         ]}},
//!     },
//! }))?;
//!
//! let options = Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations));
//! let registered = |driver: &str| driver == "called.example.com";
//! let mut cache = ClaimCache::default();
//! let mut plan = cache.plan_prepare(&pod, &[claim], registered, options)?;
//! assert_eq!(plan.calls().keys().collect::<Vec<_>>(), ["called.example.com"]);
//! assert_eq!(plan.skipped()[0].driver, "skipped.example.com");
//!
//! let to_disk = cache.take_checkpoint(Profile::V1_37);
//! assert!(to_disk.is_some_and(|text| text.contains("claim-1")), "before any driver is called");
//!
//! let response = Responses::from([("claim-1".to_owned(), Ok(vec![]))]);
//! cache.apply_prepare(&mut plan, "called.example.com", Ok(response))?;
//! cache.finish_prepare(plan)?;
//! assert!(cache.take_checkpoint(Profile::V1_37).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What differs from kubelet
//! Order: where kubelet iterates over a Go map in random order, this module sorts, so that calls and errors are
//! deterministic. `docs/divergences.md` lists the bugs of kubelet that this module does not have.
//!
//! Source of the rules: `pkg/kubelet/cm/dra` and `dynamic-resource-allocation/resourceclaim` of Kubernetes 1.37.
//!
//! Tests: `tests/it/kubelet`, `tests/it/driver_node`.

mod checkpoint;
mod claim_info;
mod container;
mod error;
mod honored;
mod metrics;
mod operation;
mod plan;
mod pod_claims;
mod prepare;
mod unprepare;

pub use checkpoint::CheckpointError;
pub use claim_info::{ClaimCache, ClaimInfo, DriverState, PreparedDevice};
pub use container::ContainerError;
pub use error::{CallError, PrepareError, UnprepareError};
pub use metrics::SkipCounts;
pub use operation::Operation;
pub use plan::{ClaimRef, NodeOperation, Plan, Prepare, Responses, Skipped, Unprepare};
