//! Rule by which nominations are cleared or kept, a choice of KEP-5278 (Alternatives).

use serde::Deserialize;

/// Rule by which the scheduler clears or keeps the nominations of pods that fit no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClearingPolicy {
    /// Clears the nomination of every pod that fits no node, as kube-scheduler does since Kubernetes 1.35.
    #[default]
    Always,
    /// Clears no nomination, but may overwrite it with another node: as in Kubernetes 1.34 (alpha) and in the KEP's
    /// alternative with other writers.
    Never,
    /// Clears the nomination of an unschedulable pod, unless the nominated node does not exist (yet).
    KeepIfNodeMissing,
    /// Clears nominations that the scheduler wrote itself, and keeps those of other components.
    KeepExternal,
}
