//! Memory of one scheduler about the pods of a cluster: seen, nominated, assumed, bound, going; and what each node has in use.
//!
//! [`PodMemory`] takes what the watch shows and what the API server answers, in any order, late or twice. Cost follows the
//! change: one pod and its node. `dra_alloc::fit` judges nodes by [`NodeUsage`].
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use nnn::memory::{BindingAnswer, PodMemory, PodStage, PodUsage};
//! use serde_json::{from_value, json};
//! let pod = |version: &str, node: Option<&str>| from_value::<Pod>(json!({
//!     "metadata": {"namespace": "default", "name": "web", "uid": "u-1", "resourceVersion": version},
//!     "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}));
//!
//! let mut memory = PodMemory::default();
//! memory.observe(pod("7", None)?)?;
//! memory.assume("u-1", "node-1", PodUsage::wanted_by(&pod("7", None)?)?)?;
//! memory.answer_binding("u-1", BindingAnswer::Stored);
//! // The watch is behind: what it shows does not undo the binding.
//! memory.observe(pod("8", None)?)?;
//! assert_eq!(memory.stage("u-1"), Some(PodStage::Bound { node: "node-1" }));
//! assert_eq!(memory.usage("node-1").resources.quantity("cpu"), "2".parse()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tests: `tests/it/memory.rs`.

mod answer;
mod host_ports;
mod known_pod;
mod node_pods;
mod node_usage;
mod pod_index;
mod pod_memory;
mod pod_usage;
mod stage;

pub use answer::{AssumeError, BindingAnswer, NominationAnswer, PodChange};
pub use host_ports::{HostPort, HostPorts};
pub use node_usage::NodeUsage;
pub use pod_memory::PodMemory;
pub use pod_usage::PodUsage;
pub use stage::PodStage;
