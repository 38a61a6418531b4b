//! Writes of a pod's status: decides if one is needed, and merges queued ones (KEP-5229).

use std::collections::BTreeMap;

use serde::Serialize;

use super::command::NoPatchReason;
use crate::nomination::NominatingInfo;
use crate::pod::ScheduledCondition;

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
    #[must_use]
    pub fn between<T: PartialEq>(known: &T, new: &T) -> Self {
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

/// Fields of a pod's status that the scheduler writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodStatusFields {
    /// Value of `status.nominatedNodeName`.
    pub nnn: Option<String>,
    /// Conditions in `status.conditions`, by type.
    pub conditions: BTreeMap<String, ScheduledCondition>,
}

/// A queued write of a pod's status.
///
/// ```
/// use nnn::{NominatingInfo, PodStatusFields, StatusPatch};
/// let set = StatusPatch::from_nomination(NominatingInfo::nominate("a"));
/// let condition = StatusPatch::from_condition("PodScheduled", Default::default());
/// let both = set.clone().then(condition);
/// assert_eq!(both.nnn, NominatingInfo::nominate("a"));
/// let mut status = PodStatusFields::default();
/// both.apply(&mut status);
/// assert!(both.is_noop(&status));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatusPatch {
    /// Change of the nomination.
    pub nnn: NominatingInfo,
    /// Conditions to write, by type.
    pub conditions: BTreeMap<String, ScheduledCondition>,
}

impl StatusPatch {
    /// Builds a write that changes only the nomination.
    #[must_use]
    pub fn from_nomination(nnn: NominatingInfo) -> Self {
        Self { nnn, ..Self::default() }
    }

    /// Builds a write that changes only one condition.
    #[must_use]
    pub fn from_condition(kind: &str, condition: ScheduledCondition) -> Self {
        Self { conditions: BTreeMap::from([(kind.to_owned(), condition)]), ..Self::default() }
    }

    /// Merges a newer write into this one; the newer values win. Applying the result equals applying both in turn.
    #[must_use]
    pub fn then(mut self, newer: Self) -> Self {
        if newer.nnn != NominatingInfo::Noop {
            self.nnn = newer.nnn;
        }
        self.conditions.extend(newer.conditions);
        self
    }

    /// Applies the write to the fields of a pod's status.
    pub fn apply(&self, status: &mut PodStatusFields) {
        if let NominatingInfo::Override(node) = &self.nnn {
            status.nnn.clone_from(node);
        }
        let conditions = self.conditions.iter().map(|(kind, condition)| (kind.clone(), condition.clone()));
        status.conditions.extend(conditions);
    }

    /// Returns true if the write would leave `status` unchanged.
    #[must_use]
    pub fn is_noop(&self, status: &PodStatusFields) -> bool {
        let condition = self.conditions.iter().all(|(kind, condition)| status.conditions.get(kind) == Some(condition));
        let condition = if condition { ConditionChange::Same } else { ConditionChange::Changed };
        decide_patch(&self.nnn, status.nnn.as_deref(), condition) != PatchDecision::Needed
    }
}

/// Queue of status writes, at most one for each pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchQueue {
    waiting: BTreeMap<String, StatusPatch>,
}

impl PatchQueue {
    /// Adds a write of the pod's status to the queue. Merges it with a queued write of the same pod.
    pub fn push(&mut self, uid: &str, patch: StatusPatch) {
        let earlier = self.waiting.remove(uid).unwrap_or_default();
        self.waiting.insert(uid.to_owned(), earlier.then(patch));
    }

    /// Removes the pod's queued write when its binding is queued, because the binding writes the status.
    ///
    /// Returns [`NoPatchReason::PatchSuperseded`] if there was one.
    pub fn push_binding(&mut self, uid: &str) -> Option<NoPatchReason> {
        self.waiting.remove(uid).map(|_| NoPatchReason::PatchSuperseded)
    }

    /// Takes the pod's write from the queue; `None` if it would leave `status` unchanged.
    #[must_use]
    pub fn pop(&mut self, uid: &str, status: &PodStatusFields) -> Option<StatusPatch> {
        self.waiting.remove(uid).filter(|patch| !patch.is_noop(status))
    }

    /// Returns the number of pods with a queued write.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no write is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
