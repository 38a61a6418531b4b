//! What the result of a pod group's cycle says about its members' nominations (KEP-4671, KEP-5836).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::nominating::NominatingInfo;
use crate::pod::PodView;

/// How one member fared in the group's cycle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberResult {
    /// It fits on this node. If the group needs victims, it may have to be elsewhere.
    Fits(String),
    /// It fits once victims are gone, on this node.
    NeedsPreemption(String),
    /// It does not fit; what its own `PostFilter` says.
    Unschedulable(NominatingInfo),
}

impl MemberResult {
    /// What the member is told when the group's `PostFilter` says nothing about it.
    fn by_itself(&self) -> NominatingInfo {
        match self {
            Self::Fits(_) => NominatingInfo::Noop,
            Self::NeedsPreemption(node) => NominatingInfo::to(node),
            Self::Unschedulable(own) => own.clone(),
        }
    }
}

/// How the group fared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupResult {
    /// Something failed.
    Error,
    /// The group is placed.
    Success,
    /// The group waits for victims. The map has what the group's own `PostFilter` says about members, by UID.
    WaitingForPreemption(BTreeMap<String, NominatingInfo>),
    /// The group is not placed.
    Rejected,
}

/// What becomes of lower nominations to the nodes for which a group has chosen victims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LowerNominations {
    /// They are cleared, as by the preemption of a single pod.
    #[default]
    Cleared,
    /// They stay, as upstream: it looks for nominations to a node with the name of the group's candidate, the whole cluster.
    Left,
}

/// What a member's failure handler is told; `None` for a member that goes on to its binding cycle.
///
/// ```
/// use nnn::nominating::NominatingInfo;
/// use nnn::scheduling::group::{GroupResult, MemberResult, decide_member};
/// let fits = MemberResult::Fits("node-1".to_owned());
/// let waiting = GroupResult::WaitingForPreemption([("uid".to_owned(), NominatingInfo::to("node-2"))].into());
/// assert_eq!(decide_member("uid", &fits, &waiting), Some(NominatingInfo::to("node-2")));
/// assert_eq!(decide_member("uid", &fits, &GroupResult::Success), None);
/// ```
#[must_use]
pub fn decide_member(uid: &str, member: &MemberResult, group: &GroupResult) -> Option<NominatingInfo> {
    match (group, member) {
        (GroupResult::Error, _) => Some(NominatingInfo::clear()),
        (GroupResult::Success, MemberResult::Fits(_)) => None,
        (GroupResult::WaitingForPreemption(by_uid), _) => {
            Some(by_uid.get(uid).cloned().unwrap_or_else(|| member.by_itself()))
        }
        (_, MemberResult::Unschedulable(own)) => Some(own.clone()),
        (_, MemberResult::Fits(_) | MemberResult::NeedsPreemption(_)) => Some(NominatingInfo::clear()),
    }
}

/// What each member is told while the group still waits for victims: its nomination again. A pod that is bound and waits
/// for a resize in place never gets one.
#[must_use]
pub fn decide_still_waiting(member: &PodView) -> NominatingInfo {
    if member.node.is_some() && member.resize_deferred {
        return NominatingInfo::Noop;
    }
    NominatingInfo::Override(member.nnn.clone())
}

/// The nomination that a simulated assumption has to give back when it is undone: that of the status, if it has one.
#[must_use]
pub fn restored_after_simulation(member: &PodView) -> Option<&str> {
    member.nnn.as_deref().filter(|_| member.node.is_none())
}
