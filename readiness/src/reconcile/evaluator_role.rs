//! Components that may run the reconciler.

use serde::{Deserialize, Serialize};

use super::node_write::WriteActor;

/// Component that runs the reconciler, which determines the writes that it may request.
///
/// In the KEP, kubelet runs the timers and writes conditions, and the node lifecycle controller (NLC) manages taints and
/// events. A single controller can do both ([`EvaluatorRole::Combined`]).
///
/// Apart, the two components share only the conditions, so the controller does not learn of a timeout that kubelet can't
/// write: over a True from before a reboot whose reset was lost, or over a report that is kept
/// ([`Policy::keeps_reported_false`](crate::Policy::keeps_reported_false)). Neither does it learn of a timeout that the
/// owner of the condition overwrote before the controller's step, which matters to
/// [`Policy::ignores_late_reports`](crate::Policy::ignores_late_reports).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EvaluatorRole {
    /// One component that does the work of both kubelet and the node lifecycle controller, and makes every write.
    #[default]
    Combined,
    /// kubelet: runs the timeouts, writes conditions, and sets the labels that a kubelet may set. Never writes taints.
    Kubelet,
    /// Node lifecycle controller (NLC): writes taints, events, and the labels that a kubelet may not set. It acts on
    /// the timeouts that kubelet has written, and never writes conditions.
    Nlc,
}

impl EvaluatorRole {
    /// Returns true if a component in this role makes the writes of `actor`.
    pub(super) const fn plays(self, actor: WriteActor) -> bool {
        matches!(
            (self, actor),
            (Self::Combined, _) | (Self::Kubelet, WriteActor::Kubelet) | (Self::Nlc, WriteActor::Nlc)
        )
    }

    /// Returns true if a component in this role runs the timeouts of gates.
    pub(super) const fn keeps_time(self) -> bool {
        !matches!(self, Self::Nlc)
    }
}
