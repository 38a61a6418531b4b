//! Decides if a write of a pod's status is needed.

use super::command::NoPatchReason;
use crate::nomination::NominatingInfo;

/// Result of comparing a new condition with the one in the pod's current status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it does or it does not")]
pub enum ConditionChange {
    /// The condition is unchanged.
    Same,
    /// The condition is new or different.
    Changed,
}

impl ConditionChange {
    /// Compares a new condition with the current one.
    pub(crate) fn between<T: PartialEq>(known: &T, new: &T) -> Self {
        if known == new { Self::Same } else { Self::Changed }
    }
}

/// Decision to write a pod's status or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is or it is not")]
pub enum PatchDecision {
    /// The status is written.
    Needed,
    /// Nothing is written, for the given reason.
    None(NoPatchReason),
}

/// Decides if a status write is needed: the condition changed, or `info` sets a node other than `known`, the current
/// `status.nominatedNodeName`.
///
/// ```
/// use nnn::{ConditionChange, NoPatchReason, NominatingInfo, PatchDecision, decide_patch};
/// let decide = |info| decide_patch(&info, Some("a"), ConditionChange::Same);
/// assert_eq!(decide(NominatingInfo::clear()), PatchDecision::Needed);
/// assert_eq!(decide(NominatingInfo::Noop), PatchDecision::None(NoPatchReason::ModeNoop));
/// ```
#[must_use]
pub fn decide_patch(info: &NominatingInfo, known: Option<&str>, condition: ConditionChange) -> PatchDecision {
    match (condition, info) {
        (ConditionChange::Same, NominatingInfo::Noop) => PatchDecision::None(NoPatchReason::ModeNoop),
        (ConditionChange::Same, NominatingInfo::Override(node)) if node.as_deref() == known => {
            PatchDecision::None(NoPatchReason::AlreadySet)
        }
        _ => PatchDecision::Needed,
    }
}
