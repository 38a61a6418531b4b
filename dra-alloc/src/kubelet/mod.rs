//! The kubelet's side: which drivers to call for a pod, what to skip, what to remember (KEP-5945, Kubelet Changes).
//!
//! [`ClaimCache`] is everything that a kubelet knows about claims. An operation on a pod is a plan, calls, an end:
//!
//! | | before the pod starts | after it has ended |
//! |---|---|---|
//! | plan | [`ClaimCache::plan_prepare`] | [`ClaimCache::plan_unprepare`], [`ClaimCache::plan_orphans`] |
//! | call each driver of the plan | [`ClaimCache::apply_prepare`] | [`ClaimCache::apply_unprepare`] |
//! | end | [`ClaimCache::finish_prepare`] | [`ClaimCache::finish_unprepare`] |
//!
//! After each step [`ClaimCache::take_checkpoint`] says what must be written to disk before going on. A step that fails
//! ends the operation; the caller drops the plan and starts again with a new one later. No slice is ever looked at, and
//! unprepare needs neither the API server nor the gate.
//!
//! ```
//! use dra_alloc::kubelet::{Answers, ClaimCache, Settings};
//! use dra_alloc::kubelet::gate::Gate;
//! use dra_attrs::profile::Profile;
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
//! let settings = Settings::new(Profile::V1_37).with(Gate::OptionalNodeOperations);
//! let registered = |driver: &str| driver == "called.example.com";
//! let mut cache = ClaimCache::default();
//! let mut plan = cache.plan_prepare(&pod, &[claim], registered, settings)?;
//! assert_eq!(plan.calls().keys().collect::<Vec<_>>(), ["called.example.com"]);
//! assert_eq!(plan.skipped()[0].driver, "skipped.example.com");
//!
//! let to_disk = cache.take_checkpoint(Profile::V1_37);
//! assert!(to_disk.is_some_and(|text| text.contains("claim-1")), "before any driver is called");
//!
//! let response = Answers::from([("claim-1".to_owned(), Ok(vec![]))]);
//! cache.apply_prepare(&mut plan, "called.example.com", Ok(response))?;
//! cache.finish_prepare(plan)?;
//! assert!(cache.take_checkpoint(Profile::V1_37).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What differs from kubelet
//! Order: whatever kubelet does in the order of a Go map is sorted here, so that the same driver is called first, and the
//! same error comes out. `docs/divergences.md` lists where kubelet would fail or go wrong and this does not.
//!
//! Source of the rules: `pkg/kubelet/cm/dra` and `dynamic-resource-allocation/resourceclaim` of Kubernetes 1.37.

pub mod checkpoint;
pub mod claim_info;
pub mod gate;
pub mod metrics;
pub mod plan;
pub mod pod_claims;

mod container;
mod error;
mod prepare;
mod unprepare;

pub use claim_info::{ClaimCache, ClaimInfo, ClaimKey, DriverState, PreparedDevice};
pub use container::ContainerError;
pub use error::{CallError, PrepareError, UnprepareError};
pub use gate::Settings;
pub use plan::{Answers, ClaimRef, Operation, Plan, Prepare, Skipped, Unprepare};
pub use unprepare::Orphan;

/// Reason of the event that a kubelet writes when prepare fails.
pub const FAILED_PREPARE: &str = "FailedPrepareDynamicResources";
