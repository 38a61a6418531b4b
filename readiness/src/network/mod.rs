//! Network readiness of a node: several gates combined into one condition, and kubelet's admission of pods by the
//! network's state (KEP-5233, Standardized Condition Patterns and Node Admission Control).
//!
//! [`aggregate()`] combines gates, [`HoldDown`] waits until the result is stable, [`admit_pod`] decides about one pod.

mod aggregate;
mod hold_down;
mod pod_admission;

pub use aggregate::{Aggregate, aggregate};
pub use hold_down::{HoldDown, NetworkCondition};
pub use pod_admission::{LocalNetwork, PodAge, PodNetwork, PodNetworkAdmission, admit_pod};

/// Type of the condition that combines all network gates of a node.
pub const NETWORK_READY: &str = "node.kubernetes.io/NetworkReady";

/// Type of the condition that kubelet sets to True when it starts pods although the network is not ready.
const NETWORK_TIMEOUT: &str = "KubeletNetworkPrerequisiteTimeout";

/// Default time for which kubelet waits for the network after the node is Ready, in seconds.
pub const ADMISSION_TIMEOUT_SECONDS: i64 = 120;
