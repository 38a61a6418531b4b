//! Condition types and reasons that gates use (KEP-5233).
//!
//! Tests: `tests/it/helpers.rs`.

pub(crate) mod condition_status;
mod condition_type;

pub(crate) use condition_status::{ConditionStatus, is_reset_by_boot, status_text};
pub(crate) use condition_type::{domain, is_known, is_same_or_subdomain, is_standard};

/// Type of the condition by which kubelet reports that its node is ready.
pub(crate) const READY: &str = "Ready";

/// Reason of a condition that was set to Unknown because it was not True within its gate's timeout (KEP-5233, Node
/// Readiness Timeout).
pub(crate) const TIMEOUT_EXCEEDED: &str = "TimeoutExceeded";

/// Reason of a condition that was set to Unknown after a reboot of the node (KEP-5233, Node Reboots).
pub(crate) const NODE_RESTARTED: &str = "NodeRestarted";

/// Reason that an agent reports with status False when it starts (KEP-5233, Node Reboots).
pub(crate) const INITIALIZING: &str = "Initializing";

pub(crate) const TRUE: &str = "True";
pub(crate) const FALSE: &str = "False";
pub(crate) const UNKNOWN: &str = "Unknown";
