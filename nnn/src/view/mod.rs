//! Nodes and pods as an autoscaler sees them through the API: used, reserved by nominations, or removable.
//!
//! [`ClusterView::new`] reads nodes, pods, claims and slices as the API server has them. Each pod and each claim counts
//! once, at the node where the pod is bound or nominated,
//! whoever wrote the nomination. A nomination reserves node resources only; devices come from the allocations of
//! claims.
//!
//! ```
//! use k8s_openapi::api::core::v1::{Node, Pod};
//! use nnn::view::{ClusterObjects, ClusterView, ClusterViewOptions};
//! use serde_json::{from_value, json};
//! let node: Node = from_value(json!({"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4"}}}))?;
//! let pod: Pod = from_value(json!({
//!     "metadata": {"namespace": "default", "name": "p", "uid": "1", "ownerReferences":
//!         [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true}]},
//!     "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
//!     "status": {"nominatedNodeName": "node-1"},
//! }))?;
//! let view = ClusterView::new(ClusterObjects::new(&[node], &[pod]), &ClusterViewOptions::default())?;
//! let node = view.node("node-1").ok_or("no such node")?;
//! assert!(!node.unremovable_reasons().is_empty());
//! assert!(node.unremovable_reasons_without_nominations().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tests: `tests/it/view.rs`.

mod claims;
mod classify;
mod cluster;
mod node;

pub use classify::PodClass;
pub use cluster::{ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions};
pub use node::{
    AutoscalerNode, AutoscalerNodePresence, BlockingPodReason, DeviceUse, NodeWarning, PodUse, ReservedBy,
    UnremovableReason,
};
