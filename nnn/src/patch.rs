//! Writes to the status of a pod: the decision to write, and the merging of queued writes (KEP-5229).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::command::NoPatchReason;
use crate::nominating_info::NominatingInfo;
use crate::pod::ScheduledCondition;

/// Change of a condition relative to the current status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it does or it does not")]
pub enum ConditionChange {
    /// The condition is unchanged.
    Same,
    /// The condition is new or different.
    Changed,
}

impl ConditionChange {
    /// Compares the current condition with the new one.
    #[must_use]
    pub fn between<T: PartialEq>(known: &T, new: &T) -> Self {
        if known == new { Self::Same } else { Self::Changed }
    }
}

/// Decision about a write to the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is or it is not")]
pub enum PatchDecision {
    /// The status is written.
    Needed,
    /// Nothing is written, for this reason.
    None(NoPatchReason),
}

/// Decides if the status has to be written: it has to if the condition changed, or if `info` sets a nomination other
/// than `known`.
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

/// The fields of a pod's status that these writes touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodStatusFields {
    /// `nominatedNodeName`
    pub nnn: Option<String>,
    /// `conditions`, by type
    pub conditions: BTreeMap<String, ScheduledCondition>,
}

/// A queued write to a pod's status.
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
    /// Builds a write of the nomination.
    #[must_use]
    pub fn from_nomination(nnn: NominatingInfo) -> Self {
        Self { nnn, ..Self::default() }
    }

    /// Builds a write of one condition.
    #[must_use]
    pub fn from_condition(kind: &str, condition: ScheduledCondition) -> Self {
        Self { conditions: BTreeMap::from([(kind.to_owned(), condition)]), ..Self::default() }
    }

    /// Merges a newer write into this one: the newer values win. Associative; applying the result equals applying both
    /// in turn.
    #[must_use]
    pub fn then(mut self, newer: Self) -> Self {
        if newer.nnn != NominatingInfo::Noop {
            self.nnn = newer.nnn;
        }
        self.conditions.extend(newer.conditions);
        self
    }

    /// Applies the write to a status.
    pub fn apply(&self, status: &mut PodStatusFields) {
        if let NominatingInfo::Override(node) = &self.nnn {
            status.nnn.clone_from(node);
        }
        let conditions = self.conditions.iter().map(|(kind, condition)| (kind.clone(), condition.clone()));
        status.conditions.extend(conditions);
    }

    /// Returns true if the write would leave `status` unchanged, so that nothing is sent.
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
    /// Adds a write to the pod's status, merged with one that is queued already.
    pub fn push(&mut self, uid: &str, patch: StatusPatch) {
        let earlier = self.waiting.remove(uid).unwrap_or_default();
        self.waiting.insert(uid.to_owned(), earlier.then(patch));
    }

    /// Removes the queued write of a pod whose binding is queued, since the binding writes the status.
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
