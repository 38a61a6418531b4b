//! Lines of the program: what has just happened, in words or as an object.

use std::fmt;

use serde::Serialize;

use super::agent::Done;

/// Event that is worth a line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(crate) enum Line {
    /// The node is registered with a cluster.
    #[cfg(feature = "live")]
    Registered { node: String, server: String },
    /// A driver was called.
    Called { driver: String, claims: Vec<String> },
    /// A call was left out, because the devices skip it.
    Skipped { driver: String, operation: &'static str },
    /// The claims of a pod are prepared, and it was said to run.
    #[cfg(feature = "live")]
    Runs { pod: String, devices: Vec<String> },
    /// The claims of a pod are unprepared, and it was let go.
    #[cfg(feature = "live")]
    Gone { pod: String },
}

impl Line {
    /// Returns the calls of an operation.
    pub(crate) fn of_calls(done: &Done) -> impl Iterator<Item = Self> {
        let called = done.called.iter().map(|(driver, claims)| Self::Called {
            driver: driver.clone(),
            claims: claims.iter().map(|claim| claim.key.to_string()).collect(),
        });
        let skipped = done.skipped.iter();
        called.chain(
            skipped.map(|skip| Self::Skipped { driver: skip.driver.clone(), operation: skip.operation.method() }),
        )
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "live")]
            Self::Registered { node, server } => write!(formatter, "{node} is a node of {server}"),
            Self::Called { driver, claims } => write!(formatter, "called {driver} for {}", claims.join(", ")),
            Self::Skipped { driver, operation } => write!(formatter, "skipped {operation} of {driver}"),
            #[cfg(feature = "live")]
            Self::Runs { pod, devices } if devices.is_empty() => write!(formatter, "{pod}: runs with no device"),
            #[cfg(feature = "live")]
            Self::Runs { pod, devices } => {
                write!(formatter, "{pod}: runs with {}", examples::output::one_line(&devices.join(" ")))
            }
            #[cfg(feature = "live")]
            Self::Gone { pod } => write!(formatter, "{pod}: gone"),
        }
    }
}
