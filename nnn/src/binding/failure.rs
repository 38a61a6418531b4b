//! What becomes of the nomination when a binding cycle fails.

use serde::{Deserialize, Serialize};

use crate::nominating::NominatingInfo;

/// What to do with the nomination of a pod whose binding cycle failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnBindingFailure {
    /// Clear it, as Kubernetes 1.35 and later.
    #[default]
    Clear,
    /// Keep it if every `PreBind` plugin had succeeded: what they did is pinned to the node.
    KeepAfterPreBind,
    /// Keep it.
    Keep,
}

/// How far a binding cycle came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailedStage {
    /// A pre-flight failed.
    PreFlight,
    /// A `Permit` plugin rejected, or its time was over.
    Permit,
    /// A `PreBind` plugin failed.
    PreBind,
    /// The binding itself failed.
    Bind,
}

impl OnBindingFailure {
    /// What the failure handler is told.
    ///
    /// ```
    /// use nnn::binding::failure::{FailedStage, OnBindingFailure};
    /// use nnn::nominating::NominatingInfo;
    /// let policy = OnBindingFailure::KeepAfterPreBind;
    /// assert_eq!(policy.decide(FailedStage::PreBind, "node-1"), NominatingInfo::clear());
    /// assert_eq!(policy.decide(FailedStage::Bind, "node-1"), NominatingInfo::to("node-1"));
    /// ```
    #[must_use]
    pub fn decide(self, stage: FailedStage, host: &str) -> NominatingInfo {
        match (self, stage) {
            (Self::Keep, _) | (Self::KeepAfterPreBind, FailedStage::Bind) => NominatingInfo::to(host),
            _ => NominatingInfo::clear(),
        }
    }
}
