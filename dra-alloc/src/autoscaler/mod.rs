//! Decisions of a cluster autoscaler about the devices of nodes.
//!
//! | question | answer |
//! |---|---|
//! | Would one more node of this kind help, and which pods? | [`ScaleSimulator::scale_up`] |
//! | Which of several kinds helps most for its price? | [`ScaleSimulator::expansion_options`] |
//! | Which nodes can go, and where do their pods go? | [`ScaleSimulator::scale_down`], [`ScaleSimulator::remove_nodes`] |
//! | Has a new node all the pools that its node group promises? | [`PoolReadiness::of_node`] |
//! | How much of a node's devices is in use? | [`NodeUtilization::of_node`] |
//! | Which slices would one more node of this kind have? | [`NodeCopy::slices`] |
//! | Which claims would the pods on it have, those of daemon sets, say? | [`NodeCopy::claims`], [`NodeCopy::claim_names`] |
//! | What becomes free if these pods go? | [`release`] |
//! | Can this pod have all its claims? | [`reserve`] |
//!
//! ```
//! use dra_alloc::autoscaler::{NodeCopy, NodeUtilization, PoolReadiness, TemplateRules};
//! use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
//! use serde_json::{from_value, json};
//!
//! let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com",
//!     "nodeName": "node-1", "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
//!     "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}}))?;
//! let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c"}, "spec": {}, "status": {
//!     "allocation": {"devices": {"results": [
//!         {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]}}}}))?;
//!
//! let used = NodeUtilization::of_node([&slice], [&claim])?;
//! assert_eq!(used.highest().map(|(pool, used)| (pool.name.as_str(), used.billionths())), Some(("node-1", 500_000_000)));
//!
//! let template = NodeCopy::new("node-1", "template", "t").slices([&slice], TemplateRules::default())?;
//! assert_eq!(template.slices[0].spec.pool.name, "node-1-t");
//! assert!(PoolReadiness::of_node([&slice], &template.slices).is_ready());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source of the rules: `simulator/dynamicresources` and `processors/customresources` of Cluster Autoscaler.
//!
//! Tests: `tests/it/autoscaler.rs`, `tests/it/scale_up.rs`, `tests/it/scale_down.rs`.

mod cluster_snapshot;
mod copied_claims;
mod emptying;
mod leaving;
mod node_copy;
mod node_template;
mod placing;
mod ready;
mod rehearsal;
mod release;
mod removal_error;
mod scale_down;
mod scale_up;
mod simulator;
mod snapshot_fit;
mod template_slices;
mod unknown_attribute;
mod utilization;

pub use cluster_snapshot::ClusterSnapshot;
pub use copied_claims::ClaimCopyError;
pub use node_copy::NodeCopy;
pub use node_template::{NodeTemplate, NodeTemplateError};
pub use placing::PlacementError;
pub use ready::PoolReadiness;
pub use release::{ClaimRelease, Departure, ReservationError, release, reserve};
pub use removal_error::RemovalError;
pub use scale_down::{NodeRemoval, ScaleDown};
pub use scale_up::{ExpansionOption, ScaleUp, ScaleUpError};
pub use simulator::ScaleSimulator;
pub use snapshot_fit::SnapshotFit;
pub use template_slices::{TemplateRules, TemplateSlices};
pub use utilization::{NodeUtilization, PoolName, UsedShare, Utilization, UtilizationError};

pub(crate) use cluster_snapshot::{ends_with_its_node, name_of, takes_pods};
pub(crate) use copied_claims::only_node;
pub(crate) use emptying::{Emptying, Mover, NodeOrder, devices_of, free_devices};
pub(crate) use leaving::{check_stranded, delete_slices};
pub(crate) use rehearsal::Rehearsal;
pub(crate) use release::claims_of;
pub(crate) use scale_down::distinct;
pub(crate) use unknown_attribute::UnknownAttributes;
