//! What others may conclude from the API: which nodes are in use, which are promised, which could go.
//!
//! [`ClusterView::new`] reads nodes, pods, claims and slices as the API server has them. Each pod and each claim is counted
//! once, at the node where it is or is expected ([`crate::pod::PodView::placement`]), whoever wrote the nomination.
//! A nomination reserves node resources only; the devices come from the claims' allocations.
//!
//! ```
//! use k8s_openapi::api::core::v1::{Node, Pod};
//! use nnn::view::{ClusterView, Inputs, Mode, Settings};
//! use serde_json::{from_value, json};
//! let node: Node = from_value(json!({"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4"}}}))?;
//! let pod: Pod = from_value(json!({
//!     "metadata": {"namespace": "default", "name": "p", "uid": "1", "ownerReferences":
//!         [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true}]},
//!     "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
//!     "status": {"nominatedNodeName": "node-1"},
//! }))?;
//! let view = ClusterView::new(Inputs::new(&[node], &[pod]), &Settings::default())?;
//! let node = view.node("node-1").ok_or("no such node")?;
//! assert!(!node.removable(Mode::Strict).is_removable());
//! assert!(node.removable(Mode::Lenient).is_removable());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod claims;
pub mod classify;
mod cluster;
pub mod node;
mod selector;

pub use cluster::{ClusterView, Inputs, Settings, ViewError};
pub use node::{DeviceUse, Finding, Holder, Mode, NodeView, PodUse, Presence, Reason, Removability};
