//! Nodes for a pod apart from its devices: resources, taints, labels and ports, as kube-scheduler filters them.
//!
//! [`PodNeeds`] is read once for a pod and [`Allocatable`] once for a node; [`PodNeeds::misfits`] judges one by the other, beside
//! what the pods on the node have in use already ([`NodeUsage`](nnn::memory::NodeUsage)). Devices are not judged here:
//! [`pods`](crate::pods) does so. The page `docs/scheduling-rules.md` has each rule with its source and with numbers.
//!
//! ```
//! use dra_alloc::Classes;
//! use dra_alloc::fit::{Allocatable, PodNeeds};
//! use k8s_openapi::api::core::v1::{Node, Pod};
//! use nnn::memory::{NodeUsage, PodUsage};
//! use serde_json::{from_value, json};
//! let node: Node = from_value(json!({"metadata": {"name": "node-1"},
//!     "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}))?;
//! let pod = |cpu: &str| from_value::<Pod>(json!({"metadata": {"name": "p"},
//!     "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}));
//! let (small, large) = (pod("1500m")?, pod("3")?);
//!
//! let allocatable = Allocatable::new(&node)?;
//! let mut usage = NodeUsage::default();
//! let misfits = |usage: &NodeUsage| PodNeeds::new(&large).map(|needs| needs.misfits(&node, &allocatable, usage, &Classes::default()));
//! assert!(misfits(&usage)?.is_empty());
//! usage.add(&PodUsage::wanted_by(&small)?);
//! assert_eq!(misfits(&usage)?[0].to_string(), "Insufficient cpu");
//! assert!(!misfits(&usage)?[0].is_unresolvable());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tests: `tests/it/fit.rs`, `../examples/tests/scheduling_rules.rs`.

mod allocatable;
mod gates;
mod misfit;
mod pod_needs;
mod pod_rules;
mod unjudged;

pub use allocatable::{Allocatable, AllocatableError};
pub use gates::{SchedulingGatesError, check_scheduling_gates};
pub use misfit::Misfit;
pub use pod_needs::PodNeeds;
pub use pod_rules::PodRules;
pub use unjudged::UnjudgedRule;
