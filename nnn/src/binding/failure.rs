//! Treatment of the pod's nomination after a failed binding cycle.

use serde::{Deserialize, Serialize};

use crate::config::behavior::BindingFailurePolicy;
use crate::nomination::NominatingInfo;

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

impl BindingFailurePolicy {
    /// Decides if a pod keeps its nomination to the node `host` after its binding cycle failed at `stage`.
    ///
    /// ```
    /// use nnn::behavior::BindingFailurePolicy;
    /// use nnn::{FailedStage, NominatingInfo};
    /// let policy = BindingFailurePolicy::KeepAfterPreBind;
    /// assert_eq!(policy.decide(FailedStage::PreBind, "node-1"), NominatingInfo::clear());
    /// assert_eq!(policy.decide(FailedStage::Bind, "node-1"), NominatingInfo::nominate("node-1"));
    /// ```
    #[must_use]
    pub fn decide(self, stage: FailedStage, host: &str) -> NominatingInfo {
        match (self, stage) {
            (Self::Keep, _) | (Self::KeepAfterPreBind, FailedStage::Bind) => NominatingInfo::nominate(host),
            _ => NominatingInfo::clear(),
        }
    }
}
