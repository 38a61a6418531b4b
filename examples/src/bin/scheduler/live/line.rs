//! Lines of a scheduler that stays: what has just happened, in words or as an object.

use std::fmt;

use serde::Serialize;

/// Event that is worth a line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(super) enum Line {
    /// The scheduler has its lease, and begins.
    Binds { scheduler: String, server: String },
    /// A pod is bound.
    Bound { pod: String, node: String },
    /// Pods are preempted for a pod, which is nominated for the node.
    Preempted { pod: String, node: String, victims: Vec<String> },
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binds { scheduler, server } => write!(formatter, "{scheduler} binds pods of {server}"),
            Self::Bound { pod, node } => write!(formatter, "{pod}: {node}"),
            Self::Preempted { pod, node, victims } => {
                write!(formatter, "{pod}: nominated for {node}; preempted: {}", victims.join(", "))
            }
        }
    }
}
