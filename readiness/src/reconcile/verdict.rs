//! Decisions of the reconciler: if a node is schedulable, and if each gate lets pods onto it.

use std::fmt;

use k8s_openapi::jiff::Timestamp;

use super::effective_status::EffectiveStatus;

/// Reason why a gate blocks pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BlockReason {
    /// The effective status of the gate's condition is not True. Holds that status.
    Condition(EffectiveStatus),
    /// The gate has timed out, but its agent has reported a status other than True since.
    LateReport(EffectiveStatus),
    /// The gate has timed out, but its taint is not on the node yet.
    AwaitingTaint,
}

impl fmt::Display for BlockReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(effective) => effective.fmt(formatter),
            Self::LateReport(effective) => write!(formatter, "LateReport ({effective})"),
            Self::AwaitingTaint => formatter.write_str("AwaitingTaint"),
        }
    }
}

/// Decision of one gate: if it lets pods onto the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GateDecision {
    /// Allows pods: the condition is True.
    Satisfied,
    /// Allows pods with a warning: the gate timed out.
    Bypass,
    /// Allows pods that tolerate the taint of the gate: the gate timed out, and the taint keeps other pods away.
    TaintHandoff,
    /// Keeps pods off the node.
    Blocked {
        /// Reason that the gate blocks pods.
        reason: BlockReason,
        /// Time at which the gate times out; `None` if no timeout runs.
        deadline: Option<Timestamp>,
    },
}

impl GateDecision {
    /// Returns the name of the decision: `Satisfied`, `Bypass`, `TaintHandoff` or `Blocked`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Satisfied => "Satisfied",
            Self::Bypass => "Bypass",
            Self::TaintHandoff => "TaintHandoff",
            Self::Blocked { .. } => "Blocked",
        }
    }

    /// Returns the reason for the decision in one or two words, such as `TimeoutExceeded` or `LateReport (False)`.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Satisfied => crate::condition::TRUE.to_owned(),
            Self::Bypass | Self::TaintHandoff => crate::condition::TIMEOUT_EXCEEDED.to_owned(),
            Self::Blocked { reason, .. } => reason.to_string(),
        }
    }

    /// Returns true if the gate keeps pods off the node.
    #[must_use]
    pub const fn is_blocking(&self) -> bool {
        matches!(self, Self::Blocked { .. })
    }
}

impl fmt::Display for GateDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked { reason, deadline: Some(deadline) } => {
                write!(formatter, "Blocked: {reason}, until {deadline}")
            }
            Self::Blocked { reason, deadline: None } => write!(formatter, "Blocked: {reason}"),
            other => formatter.write_str(other.name()),
        }
    }
}

/// Decision on a node: if it is schedulable, with the decision of each gate. The node's taints are not considered,
/// except that a timed-out gate may wait for its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeVerdict<'a> {
    /// True if the node is ready and no gate blocks pods. While the cache is not synced, a blocked node stays blocked.
    pub schedulable: bool,
    /// Condition type and decision of each gate, in the order of `spec.readinessGates`.
    pub gates: Vec<(&'a str, GateDecision)>,
}
