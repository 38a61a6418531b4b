//! Eviction of pods whose devices are tainted (KEP-5055).
//!
//! A taint with the effect `NoExecute`, in a slice or by a [`DeviceTaintRule`], evicts the pods that use the device, unless
//! the allocation tolerates it, or when it no longer does. [`TaintIndex`] has the taints of a cluster, [`Evictions`] says
//! which pod goes and when, [`evict`] has the calls that evict it, [`RulePreview`] counts before a rule is written what it
//! would do, and [`RuleUpdate::of_rule`] is the condition that the controller writes into the rule. [`RuleWarning::of_rule`] finds rules
//! that probably select more than was meant.
//!
//! ```
//! use dra_alloc::eviction::{Evictions, RulePreview, TaintIndex};
//! use dra_alloc::pods::PodOptions;
//! use dra_alloc::Profile;
//! use k8s_openapi::api::core::v1::Pod;
//! use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim};
//! use serde_json::{from_value, json};
//!
//! let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "1"},
//!     "spec": {"nodeName": "n", "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
//! let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c"}, "spec": {},
//!     "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}], "allocation": {"devices": {"results": [
//!         {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "gpu-0", "tolerations": [
//!             {"key": "ill", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]}]}}}}))?;
//! let rule: DeviceTaintRule = from_value(json!({"metadata": {"name": "ill"}, "spec": {
//!     "deviceSelector": {"driver": "gpu.example.com"},
//!     "taint": {"key": "ill", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}}}))?;
//!
//! let options = PodOptions::new(Profile::V1_37);
//! let preview = RulePreview::new(&rule, &TaintIndex::new([]), [&claim], [&pod], options);
//! assert_eq!((preview.published, preview.allocated, preview.by_namespace()["ns"]), (0, 1, 1));
//!
//! let taints = TaintIndex::new([]).with_rules([&rule]);
//! let eviction = Evictions::new(&taints, [&claim], options).of_pod(&pod).ok_or("the pod goes")?;
//! assert_eq!(eviction.at.to_string(), "2026-01-01T00:01:00Z");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source of the rules: `pkg/controller/devicetainteviction` of Kubernetes 1.36.
//!
//! [`DeviceTaintRule`]: k8s_openapi::api::resource::v1::DeviceTaintRule
//!
//! Tests: `tests/it/eviction.rs`.

mod evict;
mod evictions;
mod preview;
mod reason;
mod rule_status;
mod rules;
mod taint_index;
mod time;
mod warning;

pub use evict::{EvictionCall, evict};
pub use evictions::Evictions;
pub use preview::{PendingPod, RulePreview};
pub use reason::{Eviction, EvictionReason};
pub use rule_status::RuleUpdate;
pub use taint_index::TaintIndex;
pub use warning::RuleWarning;
