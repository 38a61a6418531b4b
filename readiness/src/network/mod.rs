//! Network readiness of a node: several gates combined into one condition, and kubelet's admission of pods by the
//! network's state (KEP-5233, Standardized Condition Patterns and Node Admission Control).
//!
//! [`Aggregate`] combines gates, [`HoldDown`] waits until the result is stable, [`LocalNetwork`] decides about one pod.
//!
//! Tests: `tests/it/helpers.rs`.

mod aggregate;
mod hold_down;
mod pod_admission;

pub use aggregate::Aggregate;
pub use hold_down::{HoldDown, NetworkCondition};
pub use pod_admission::{LocalNetwork, PodNetworkAdmission};

/// Type of the condition that kubelet sets to True when it starts pods although the network is not ready.
const NETWORK_TIMEOUT: &str = "KubeletNetworkPrerequisiteTimeout";
