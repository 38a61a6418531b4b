//! Warnings about gates that are valid.

use std::fmt;

use serde::Serialize;

/// Warning about a gate that is valid but may not work as intended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GateWarning {
    /// Path of the field.
    pub field: String,
    /// Kind of the warning.
    #[serde(flatten)]
    pub kind: GateWarningKind,
}

/// Kinds of [`GateWarning`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[non_exhaustive]
pub enum GateWarningKind {
    /// The timeout is shorter than two syncs of the node's status, so kubelet may miss a condition that is True.
    ShortTimeout {
        /// Timeout in seconds.
        seconds: i32,
        /// Shortest advised timeout: twice the time between two syncs, in seconds.
        advised: i32,
    },
    /// The taint is ignored, since the action is not `Taint`.
    IgnoredTaint,
    /// The taint evicts running pods (`NoExecute`).
    Evicting,
    /// The taint blocks no pod (`PreferNoSchedule`).
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
