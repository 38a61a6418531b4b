//! The reconciler's answer for a node, gate by gate.

use std::fmt;

use k8s_openapi::jiff::Timestamp;

use super::timeout::Sighting;

/// Why a gate blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Why {
    /// The condition is not True.
    Condition(Sighting),
    /// The timeout was written, and the owner reported something else than True since.
    LateReport(Sighting),
    /// The taint that takes over is not on the node.
    AwaitingTaint,
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(sighting) => sighting.fmt(formatter),
            Self::LateReport(sighting) => write!(formatter, "LateReport ({sighting})"),
            Self::AwaitingTaint => formatter.write_str("AwaitingTaint"),
        }
    }
}

/// What one gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// Its condition is True.
    Satisfied,
    /// It timed out, and lets pods pass with a warning.
    Bypass,
    /// It timed out, and its taint keeps pods away that do not tolerate it.
    TaintHandoff,
    /// It keeps pods away.
    Blocked {
        /// Why.
        why: Why,
        /// When the failure action comes, if a timer runs.
        deadline: Option<Timestamp>,
    },
}

impl Decision {
    /// The name of the state.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Satisfied => "Satisfied",
            Self::Bypass => "Bypass",
            Self::TaintHandoff => "TaintHandoff",
            Self::Blocked { .. } => "Blocked",
        }
    }

    /// The reason in a word or two.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Satisfied => crate::condition::TRUE.to_owned(),
            Self::Bypass | Self::TaintHandoff => crate::condition::TIMEOUT_EXCEEDED.to_owned(),
            Self::Blocked { why, .. } => why.to_string(),
        }
    }

    /// Whether the gate keeps pods away.
    #[must_use]
    pub const fn is_blocking(&self) -> bool {
        matches!(self, Self::Blocked { .. })
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked { why, deadline: Some(deadline) } => write!(formatter, "Blocked: {why}, until {deadline}"),
            Self::Blocked { why, deadline: None } => write!(formatter, "Blocked: {why}"),
            other => formatter.write_str(other.name()),
        }
    }
}

/// One gate and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateVerdict<'a> {
    /// The gate.
    pub condition_type: &'a str,
    /// What it says.
    pub decision: Decision,
}

/// Whether the node is open for pods. Its taints, other than those that a gate waits for, are not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeVerdict<'a> {
    /// Whether the node is ready and no gate blocks. On a partial view, a node that was closed stays closed.
    pub schedulable: bool,
    /// Each gate, in the order of the list.
    pub gates: Vec<GateVerdict<'a>>,
}
