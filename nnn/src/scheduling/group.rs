//! Nominations of the members of a pod group after the group's cycle (KEP-4671, KEP-5836).

use std::collections::BTreeMap;

use crate::nominating_info::NominatingInfo;
use crate::pod::PodSnapshot;

/// Result of one member in the cycle of its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupMemberResult {
    /// The member fits on this node. If the group needs victims, it may have to go elsewhere.
    Fits(String),
    /// The member fits on this node once victims are gone.
    NeedsPreemption(String),
    /// The member does not fit; the result of its own `PostFilter`.
    Unschedulable(NominatingInfo),
}

impl GroupMemberResult {
    /// Returns the nomination of a member about which the group's `PostFilter` says nothing.
    fn by_itself(&self) -> NominatingInfo {
        match self {
            Self::Fits(_) => NominatingInfo::Noop,
            Self::NeedsPreemption(node) => NominatingInfo::nominate(node),
            Self::Unschedulable(own) => own.clone(),
        }
    }
}

/// Result of the cycle of a pod group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodGroupResult {
    /// A plugin or the scheduler failed.
    Error,
    /// The group is placed.
    Success,
    /// The group waits for victims. The map has the nominations that the group's own `PostFilter` decided, by UID.
    WaitingForPreemption(BTreeMap<String, NominatingInfo>),
    /// The group is not placed.
    Rejected,
}

/// Decides about the nomination of one member; `None` for a member that goes on to its binding cycle.
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

/// Decides about the nomination of a member while the group still waits for victims: it keeps its node. A bound pod
/// that waits for an in-place resize is never nominated.
#[must_use]
pub fn decide_waiting_member(member: &PodSnapshot) -> NominatingInfo {
    if member.node.is_some() && member.resize_deferred {
        return NominatingInfo::Noop;
    }
    NominatingInfo::Override(member.nnn.clone())
}

/// Returns the nomination to restore after a simulated assumption is undone: that of the status, if the pod is not
/// bound.
#[must_use]
pub fn restored_nomination(member: &PodSnapshot) -> Option<&str> {
    member.nnn.as_deref().filter(|_| member.node.is_none())
}
