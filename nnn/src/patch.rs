//! Writes to a pod's status: when one is needed, and how queued ones become one (KEP-5229).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::command::NoPatch;
use crate::nominating::NominatingInfo;
use crate::pod::ScheduledCondition;

/// Whether a condition differs from what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it does or it does not")]
pub enum Change {
    /// It is as it was.
    Same,
    /// It is new.
    Changed,
}

impl Change {
    /// Compares what is known with what is to be.
    #[must_use]
    pub fn between<T: PartialEq>(known: &T, new: &T) -> Self {
        if known == new { Self::Same } else { Self::Changed }
    }
}

/// Whether a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it is or it is not")]
pub enum Patch {
    /// It is.
    Needed,
    /// It is not, and why.
    None(NoPatch),
}

/// Whether a status has to be written: a condition is new, or the nomination is to be another one than is known.
///
/// ```
/// use nnn::command::NoPatch;
/// use nnn::nominating::NominatingInfo;
/// use nnn::patch::{Change, Patch, decide_patch};
/// assert_eq!(decide_patch(&NominatingInfo::clear(), Some("a"), Change::Same), Patch::Needed);
/// assert_eq!(decide_patch(&NominatingInfo::Noop, Some("a"), Change::Same), Patch::None(NoPatch::ModeNoop));
/// ```
#[must_use]
pub fn decide_patch(info: &NominatingInfo, known: Option<&str>, condition: Change) -> Patch {
    match (condition, info) {
        (Change::Same, NominatingInfo::Noop) => Patch::None(NoPatch::ModeNoop),
        (Change::Same, NominatingInfo::Override(node)) if node.as_deref() == known => Patch::None(NoPatch::AlreadySet),
        _ => Patch::Needed,
    }
}

/// A status of a pod, as far as these writes touch it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// `nominatedNodeName`
    pub nnn: Option<String>,
    /// `conditions`, by type.
    pub conditions: BTreeMap<String, ScheduledCondition>,
}

/// A write to a pod's status that waits in a queue.
///
/// ```
/// use nnn::nominating::NominatingInfo;
/// use nnn::patch::{Status, StatusPatch};
/// let set = StatusPatch::nomination(NominatingInfo::to("a"));
/// let condition = StatusPatch::condition("PodScheduled", Default::default());
/// let both = set.clone().then(condition);
/// assert_eq!(both.nnn, NominatingInfo::to("a"));
/// let mut status = Status::default();
/// both.apply(&mut status);
/// assert!(both.changes_nothing(&status));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatusPatch {
    /// The nomination.
    pub nnn: NominatingInfo,
    /// Conditions by type.
    pub conditions: BTreeMap<String, ScheduledCondition>,
}

impl StatusPatch {
    /// Writes a nomination.
    #[must_use]
    pub fn nomination(nnn: NominatingInfo) -> Self {
        Self { nnn, ..Self::default() }
    }

    /// Writes a condition.
    #[must_use]
    pub fn condition(kind: &str, condition: ScheduledCondition) -> Self {
        Self { conditions: BTreeMap::from([(kind.to_owned(), condition)]), ..Self::default() }
    }

    /// This and a newer one as one write: what the newer one says wins. Associative, and the same as both in turn.
    #[must_use]
    pub fn then(mut self, newer: Self) -> Self {
        if newer.nnn != NominatingInfo::Noop {
            self.nnn = newer.nnn;
        }
        self.conditions.extend(newer.conditions);
        self
    }

    /// Writes it.
    pub fn apply(&self, status: &mut Status) {
        if let NominatingInfo::Override(node) = &self.nnn {
            status.nnn.clone_from(node);
        }
        let conditions = self.conditions.iter().map(|(kind, condition)| (kind.clone(), condition.clone()));
        status.conditions.extend(conditions);
    }

    /// The status is as this would leave it: nothing is sent.
    #[must_use]
    pub fn changes_nothing(&self, status: &Status) -> bool {
        let condition = self.conditions.iter().all(|(kind, condition)| status.conditions.get(kind) == Some(condition));
        let condition = if condition { Change::Same } else { Change::Changed };
        decide_patch(&self.nnn, status.nnn.as_deref(), condition) != Patch::Needed
    }
}

/// The writes that wait, at most one for each pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchQueue {
    waiting: BTreeMap<String, StatusPatch>,
}

impl PatchQueue {
    /// Adds a write to the pod's status. One that waits already becomes one with it.
    pub fn push(&mut self, uid: &str, patch: StatusPatch) {
        let earlier = self.waiting.remove(uid).unwrap_or_default();
        self.waiting.insert(uid.to_owned(), earlier.then(patch));
    }

    /// Says that a binding of the pod is queued: its status will be written by that, so that no write is left. If one
    /// waited, it is dropped, and this is why: [`NoPatch::PatchSuperseded`].
    pub fn push_binding(&mut self, uid: &str) -> Option<NoPatch> {
        self.waiting.remove(uid).map(|_| NoPatch::PatchSuperseded)
    }

    /// Takes the pod's write, unless it changes nothing.
    #[must_use]
    pub fn pop(&mut self, uid: &str, status: &Status) -> Option<StatusPatch> {
        self.waiting.remove(uid).filter(|patch| !patch.changes_nothing(status))
    }

    /// How many pods have a write that waits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
