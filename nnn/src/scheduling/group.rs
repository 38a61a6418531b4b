//! Nominations of the members of a pod group after the group's cycle (KEP-4671, KEP-5836).

use std::collections::BTreeMap;

use crate::nomination::NominatingInfo;
use crate::pod::PodSnapshot;

/// Result of one pod in the scheduling cycle of its pod group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupMemberResult {
    /// The pod fits on this node. If other members need a preemption, it may be placed on another node later.
    Fits(String),
    /// The pod fits on this node after the eviction of victims.
    NeedsPreemption(String),
    /// The pod fits no node. The value is the change of the nomination by its own `PostFilter` plugins.
    Unschedulable(NominatingInfo),
}

impl GroupMemberResult {
    /// Returns the change of a member's nomination from its own result, used if the group's `PostFilter` does not name
    /// the member.
    fn by_itself(&self) -> NominatingInfo {
        match self {
            Self::Fits(_) => NominatingInfo::Noop,
            Self::NeedsPreemption(node) => NominatingInfo::nominate(node),
            Self::Unschedulable(own) => own.clone(),
        }
    }
}

/// Result of the scheduling cycle of a pod group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodGroupResult {
    /// A plugin or the scheduler itself failed with an error.
    Error,
    /// The group is scheduled.
    Success,
    /// The group waits for the eviction of victims. The map has the nominations chosen by the group's `PostFilter`, by
    /// UID.
    WaitingForPreemption(BTreeMap<String, NominatingInfo>),
    /// The group can't be scheduled.
    Rejected,
}

/// Decides the change of one member's nomination; `None` for a member that continues with its binding cycle.
///
/// ```
/// use nnn::NominatingInfo;
/// use nnn::scheduling::{GroupMemberResult, PodGroupResult, decide_member};
/// let fits = GroupMemberResult::Fits("node-1".to_owned());
/// let waiting = PodGroupResult::WaitingForPreemption([("uid".to_owned(), NominatingInfo::nominate("node-2"))].into());
/// assert_eq!(decide_member("uid", &fits, &waiting), Some(NominatingInfo::nominate("node-2")));
/// assert_eq!(decide_member("uid", &fits, &PodGroupResult::Success), None);
/// ```
#[must_use]
pub fn decide_member(uid: &str, member: &GroupMemberResult, group: &PodGroupResult) -> Option<NominatingInfo> {
    match (group, member) {
        (PodGroupResult::Error, _) => Some(NominatingInfo::clear()),
        (PodGroupResult::Success, GroupMemberResult::Fits(_)) => None,
        (PodGroupResult::WaitingForPreemption(by_uid), _) => {
            Some(by_uid.get(uid).cloned().unwrap_or_else(|| member.by_itself()))
        }
        (_, GroupMemberResult::Unschedulable(own)) => Some(own.clone()),
        (_, GroupMemberResult::Fits(_) | GroupMemberResult::NeedsPreemption(_)) => Some(NominatingInfo::clear()),
    }
}

/// Returns the change of a member's nomination while its group still waits for victims: the member stays nominated to
/// its node. A bound pod that waits for an in-place resize gets no nomination.
#[must_use]
pub fn decide_waiting_member(member: &PodSnapshot) -> NominatingInfo {
    if member.node.is_some() && member.resize_deferred {
        return NominatingInfo::Noop;
    }
    NominatingInfo::Override(member.nnn.clone())
}

/// Returns the nomination that a pod gets back after the scheduler has undone its simulated placement:
/// `status.nominatedNodeName`; `None` for a bound pod.
#[must_use]
pub fn restored_nomination(member: &PodSnapshot) -> Option<&str> {
    member.nnn.as_deref().filter(|_| member.node.is_none())
}
