//! Lines of a driver that serves: what has just happened, in words or as an object.

use std::fmt;

use dra_alloc::kubelet::{ClaimRef, PreparedDevice};
use serde::Serialize;

/// Event that is worth a line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(super) enum Line {
    /// The driver listens.
    Serves { driver: String, socket: String },
    /// A claim is prepared, perhaps since before.
    Prepared { claim: String, devices: Vec<String> },
    /// A claim is unprepared, perhaps since before.
    Unprepared { claim: String },
    /// A claim of a call has failed.
    Failed { claim: String, method: &'static str, reason: String },
}

impl Line {
    pub(super) fn prepared(claim: &ClaimRef, devices: &[PreparedDevice]) -> Self {
        let devices = devices.iter().flat_map(|device| device.cdi_ids.clone()).collect();
        Self::Prepared { claim: claim.key.to_string(), devices }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serves { driver, socket } => write!(formatter, "{driver} serves {socket}"),
            Self::Prepared { claim, devices } if devices.is_empty() => {
                write!(formatter, "{claim}: prepared: no device of this driver")
            }
            Self::Prepared { claim, devices } => write!(formatter, "{claim}: prepared: {}", devices.join(" ")),
            Self::Unprepared { claim } => write!(formatter, "{claim}: unprepared"),
            Self::Failed { claim, method, reason } => write!(formatter, "{claim}: {method}: {reason}"),
        }
    }
}
