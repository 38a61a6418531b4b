//! What the result of a scheduling cycle says about the nomination (KEP-5278, The scheduler clears
//! `NominatedNodeName` after scheduling failure).

use serde::{Deserialize, Serialize};

use crate::nominating::NominatingInfo;
use crate::profile::{Decisions, Nomination, Profile};

/// How a scheduling cycle ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CycleOutcome {
    /// The snapshot of the cluster could not be refreshed.
    SnapshotFailed,
    /// There are no nodes.
    NoNodes,
    /// Something failed that is no "does not fit".
    Error,
    /// The pod does not fit; it was judged as a member of its group, which decides.
    NoFitInPodGroup,
    /// The pod does not fit, and no plugin looks for victims.
    NoFitNoPostFilter,
    /// The pod does not fit, but will on this node once victims are gone.
    Nominated {
        /// The node.
        node: String,
    },
    /// The pod does not fit, and no victims would help.
    NoCandidates,
    /// The pod does not fit and must not preempt.
    PolicyNever,
    /// The pod does not fit yet: victims on its nominated node are still terminating.
    VictimsTerminating,
    /// The pod does not fit, and extenders accepted none of the nodes on which victims would help.
    ExtendersLeftNone,
    /// The pod does not fit, and looking for victims failed, in a plugin or in an extender.
    PostFilterError,
    /// The pod fits, but could not be assumed.
    AssumeFailed,
    /// The pod fits, but a `Reserve` plugin said no or failed.
    ReserveFailed,
    /// The pod fits, but a `Permit` plugin said no or failed.
    PermitFailed,
    /// The pod goes to this node.
    Scheduled {
        /// The node.
        node: String,
    },
}

/// The class of status that a cycle ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum StatusClass {
    /// The pod has a node.
    Success,
    /// A cluster event may help.
    Unschedulable,
    /// No eviction helps.
    UnschedulableAndUnresolvable,
    /// Something failed.
    Error,
}

impl CycleOutcome {
    /// The class of its status. The plugins' refusals after a fit count as unschedulable here; a plugin may also fail.
    #[must_use]
    pub const fn status_class(&self) -> StatusClass {
        match self {
            Self::SnapshotFailed | Self::Error | Self::AssumeFailed => StatusClass::Error,
            Self::NoNodes => StatusClass::UnschedulableAndUnresolvable,
            Self::Scheduled { .. } => StatusClass::Success,
            _ => StatusClass::Unschedulable,
        }
    }
}

/// What the cycle says about the pod's nomination.
///
/// The texts differ about pods that must not preempt, about a failed search for victims and one whose result extenders
/// refused: the KEP clears, 1.37 keeps.
///
/// ```
/// use nnn::nominating::NominatingInfo;
/// use nnn::profile::Profile;
/// use nnn::scheduling::cycle::{CycleOutcome, decide_cycle};
/// assert_eq!(decide_cycle(&CycleOutcome::NoCandidates, Profile::V1_37), NominatingInfo::clear());
/// assert_eq!(decide_cycle(&CycleOutcome::PolicyNever, Profile::V1_37), NominatingInfo::Noop);
/// assert_eq!(decide_cycle(&CycleOutcome::PolicyNever, Profile::Kep), NominatingInfo::clear());
/// ```
#[must_use]
pub fn decide_cycle(outcome: &CycleOutcome, profile: Profile) -> NominatingInfo {
    let decisions = Decisions::of(profile);
    let by = |nomination| match nomination {
        Nomination::Kept => NominatingInfo::Noop,
        Nomination::Cleared => NominatingInfo::clear(),
    };
    match outcome {
        CycleOutcome::Nominated { node } => NominatingInfo::to(node),
        CycleOutcome::PolicyNever => by(decisions.policy_never),
        CycleOutcome::ExtendersLeftNone => by(decisions.extenders_left_none),
        CycleOutcome::PostFilterError => by(decisions.post_filter_error),
        CycleOutcome::NoFitInPodGroup | CycleOutcome::VictimsTerminating | CycleOutcome::Scheduled { .. } => {
            NominatingInfo::Noop
        }
        CycleOutcome::SnapshotFailed
        | CycleOutcome::NoNodes
        | CycleOutcome::Error
        | CycleOutcome::NoFitNoPostFilter
        | CycleOutcome::NoCandidates
        | CycleOutcome::AssumeFailed
        | CycleOutcome::ReserveFailed
        | CycleOutcome::PermitFailed => NominatingInfo::clear(),
    }
}

/// The status of one `PostFilter` plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PostFilterStatus {
    /// It made the pod schedulable.
    Success,
    /// It did not.
    Unschedulable,
    /// It did not, and no other could.
    UnschedulableAndUnresolvable,
    /// It failed.
    Error,
}

/// What several `PostFilter` plugins say together: the first that succeeds or rules out success decides, a failure says
/// nothing, and otherwise the last that says something.
///
/// ```
/// use nnn::nominating::NominatingInfo;
/// use nnn::scheduling::cycle::{PostFilterStatus, combine_post_filters};
/// let results = [(PostFilterStatus::Unschedulable, NominatingInfo::clear()), (PostFilterStatus::Success, NominatingInfo::to("n"))];
/// assert_eq!(combine_post_filters(&results), NominatingInfo::to("n"));
/// ```
#[must_use]
pub fn combine_post_filters(results: &[(PostFilterStatus, NominatingInfo)]) -> NominatingInfo {
    let mut said = NominatingInfo::Noop;
    for (status, info) in results {
        match status {
            PostFilterStatus::Success | PostFilterStatus::UnschedulableAndUnresolvable => return info.clone(),
            PostFilterStatus::Error => return NominatingInfo::Noop,
            PostFilterStatus::Unschedulable if *info != NominatingInfo::Noop => said.clone_from(info),
            PostFilterStatus::Unschedulable => {}
        }
    }
    said
}
