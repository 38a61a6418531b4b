//! Warnings about gates that are valid but may not work as intended.

use std::fmt;

use serde::Serialize;

/// Warning about a gate that is valid but may not work as intended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GateWarning {
    /// Path of the field, such as `spec.readinessGates[0].timeoutSeconds`.
    pub field: String,
    /// Problem that the warning reports.
    #[serde(flatten)]
    pub kind: GateWarningKind,
}

/// Problem that a [`GateWarning`] reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[non_exhaustive]
pub enum GateWarningKind {
    /// The timeout is shorter than two syncs of the node's status, so kubelet may miss a condition that is True.
    ShortTimeout {
        /// Timeout of the gate, in seconds.
        seconds: i32,
        /// Shortest timeout that is advised, in seconds: twice the time between two syncs of the node's status.
        advised: i32,
    },
    /// The taint is ignored, since the action is not `Taint`.
    IgnoredTaint,
    /// The taint of the gate evicts running pods (`NoExecute`).
    Evicting,
    /// The taint of the gate blocks no pod (`PreferNoSchedule`).
    NotBlocking,
}

impl fmt::Display for GateWarning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.field)?;
        match self.kind {
            GateWarningKind::ShortTimeout { seconds, advised } => write!(
                formatter,
                "{seconds} seconds may pass before kubelet sees a condition that is True; at least {advised} are advised"
            ),
            GateWarningKind::IgnoredTaint => formatter.write_str("ignored, since failureAction is not Taint"),
            GateWarningKind::Evicting => {
                formatter.write_str("NoExecute evicts running pods that do not tolerate the taint")
            }
            GateWarningKind::NotBlocking => formatter.write_str("PreferNoSchedule does not block pods"),
        }
    }
}
