//! Readiness of a node's network from several gates, and kubelet's admission of pods by it (KEP-5233, Standardized Condition
//! Patterns and Node Admission Control).
//!
//! [`aggregate()`] combines gates, [`HoldDown`] waits until the result is stable, [`admit_pod`] decides about one pod.

mod aggregate;
mod hold_down;
mod pod_admission;

pub use aggregate::{Aggregate, aggregate};
pub use hold_down::{HoldDown, NetworkCondition};
pub use pod_admission::{LocalNetwork, PodAge, PodNetwork, PodNetworkAdmission, admit_pod};

/// Type of the condition for the network as a whole.
pub const NETWORK_READY: &str = "node.kubernetes.io/NetworkReady";

/// Type of the condition that kubelet sets when it starts pods without a ready network.
pub const NETWORK_TIMEOUT: &str = "KubeletNetworkPrerequisiteTimeout";

/// Default time that kubelet waits for the network, in seconds after Ready.
pub const ADMISSION_TIMEOUT_SECONDS: i64 = 120;
