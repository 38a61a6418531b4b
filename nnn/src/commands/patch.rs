//! Decides if a write of a pod's status is needed.

use super::command::NoPatchReason;
use crate::nomination::NominatingInfo;

impl NominatingInfo {
    /// Returns the reason that a status write is not needed, `None` if it is. `known` is the current
    /// `status.nominatedNodeName`. A write of another condition than the stored one is always needed; this is for a condition
    /// that is unchanged.
    ///
    /// ```
    /// use nnn::{NoPatchReason, NominatingInfo};
    /// assert_eq!(NominatingInfo::clear().no_patch_reason(Some("a")), None);
    /// assert_eq!(NominatingInfo::Noop.no_patch_reason(Some("a")), Some(NoPatchReason::ModeNoop));
    /// ```
    #[must_use]
    pub fn no_patch_reason(&self, known: Option<&str>) -> Option<NoPatchReason> {
        match self {
            Self::Noop => Some(NoPatchReason::ModeNoop),
            Self::Override(node) => (node.as_deref() == known).then_some(NoPatchReason::AlreadySet),
        }
    }
}
