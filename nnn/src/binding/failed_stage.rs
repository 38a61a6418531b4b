//! Stage at which a binding cycle failed.

use serde::{Deserialize, Serialize};

/// Stage at which a binding cycle failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailedStage {
    /// A plugin's `PreBindPreFlight` failed.
    PreFlight,
    /// A `Permit` plugin rejected the pod, or its wait timed out.
    Permit,
    /// A `PreBind` plugin failed.
    PreBind,
    /// The API server refused the binding, or the request failed.
    Bind,
}
