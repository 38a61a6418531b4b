//! Nomination after a scheduling cycle (KEP-5278, The scheduler clears `NominatedNodeName` after scheduling failure).

use dra_attrs::Profile;
use serde::{Deserialize, Serialize};

use crate::nominating_info::NominatingInfo;

/// Result of a scheduling cycle.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CycleOutcome {
    /// The snapshot of the cluster could not be refreshed.
    SnapshotFailed,
    /// There are no nodes.
    NoNodes,
    /// A plugin or the scheduler failed.
    Error,
    /// The pod does not fit. It was judged as a member of its pod group, which decides.
    NoFitInPodGroup,
    /// The pod does not fit, and no plugin looks for victims.
    NoFitNoPostFilter,
    /// The pod does not fit now, but will on this node once victims are gone.
    Nominated {
        /// The node.
        node: String,
    },
    /// The pod does not fit, and evicting victims would not help.
    NoCandidates,
    /// The pod does not fit and must not preempt.
    PolicyNever,
    /// The pod does not fit yet: victims on its nominated node are still terminating.
    VictimsTerminating,
    /// The pod does not fit, and extenders accepted none of the nodes on which victims would help.
    ExtendersLeftNone,
    /// The pod does not fit, and the search for victims failed, in a plugin or in an extender.
    PostFilterError,
    /// The pod fits, but could not be assumed.
    AssumeFailed,
    /// The pod fits, but a `Reserve` plugin rejected it or failed.
    ReserveFailed,
    /// The pod fits, but a `Permit` plugin rejected it or failed.
    PermitFailed,
    /// The pod was scheduled to this node.
    Scheduled {
        /// The node.
        node: String,
    },
}

/// Class of the status with which a cycle ends, as in the scheduler framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum CycleStatusClass {
    /// The pod has a node.
    Success,
    /// The pod is unschedulable; a cluster event may help.
    Unschedulable,
    /// The pod is unschedulable, and no eviction helps.
    UnschedulableAndUnresolvable,
    /// A plugin or the scheduler failed.
    Error,
}

impl CycleOutcome {
    /// Returns the class of the cycle's status. Failures of `Reserve` and `Permit` count as rejections.
    #[must_use]
    pub const fn status_class(&self) -> CycleStatusClass {
        match self {
            Self::SnapshotFailed | Self::Error | Self::AssumeFailed => CycleStatusClass::Error,
            Self::NoNodes => CycleStatusClass::UnschedulableAndUnresolvable,
            Self::Scheduled { .. } => CycleStatusClass::Success,
            _ => CycleStatusClass::Unschedulable,
        }
    }
}

/// Decides about the pod's nomination after a cycle.
///
/// The profiles differ in three results: a pod that must not preempt, a failed search for victims, and victims that
/// extenders refused. The KEP clears the nomination, Kubernetes 1.37 keeps it.
///
/// ```
/// use dra_attrs::Profile;
/// use nnn::scheduling::decide_cycle;
/// use nnn::{CycleOutcome, NominatingInfo};
/// assert_eq!(decide_cycle(&CycleOutcome::NoCandidates, Profile::V1_37), NominatingInfo::clear());
/// assert_eq!(decide_cycle(&CycleOutcome::PolicyNever, Profile::V1_37), NominatingInfo::Noop);
/// assert_eq!(decide_cycle(&CycleOutcome::PolicyNever, Profile::Kep), NominatingInfo::clear());
/// ```
#[must_use]
pub fn decide_cycle(outcome: &CycleOutcome, profile: Profile) -> NominatingInfo {
    let decisions = ProfileDecisions::from_profile(profile);
    let by = |nomination| match nomination {
        NominationAfterCycle::Kept => NominatingInfo::Noop,
        NominationAfterCycle::Cleared => NominatingInfo::clear(),
    };
    match outcome {
        CycleOutcome::Nominated { node } => NominatingInfo::nominate(node),
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

/// Nomination after a cycle whose result the profiles judge differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NominationAfterCycle {
    Kept,
    Cleared,
}

/// Nominations of unschedulable pods for the three results that the profiles judge differently.
#[derive(Clone, Copy, Debug)]
struct ProfileDecisions {
    /// Pod that must not preempt.
    policy_never: NominationAfterCycle,
    /// Pod for which extenders refused every node with victims.
    extenders_left_none: NominationAfterCycle,
    /// Pod whose `PostFilter` failed.
    post_filter_error: NominationAfterCycle,
}

const KEP: ProfileDecisions = ProfileDecisions::uniform(NominationAfterCycle::Cleared);
const V1_37: ProfileDecisions = ProfileDecisions::uniform(NominationAfterCycle::Kept);

impl ProfileDecisions {
    const fn uniform(nomination: NominationAfterCycle) -> Self {
        Self { policy_never: nomination, extenders_left_none: nomination, post_filter_error: nomination }
    }

    fn from_profile(profile: Profile) -> Self {
        match profile {
            Profile::Kep => KEP,
            _ => V1_37,
        }
    }
}

/// Status of one `PostFilter` plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PostFilterStatus {
    /// The plugin made the pod schedulable.
    Success,
    /// The plugin did not make the pod schedulable.
    Unschedulable,
    /// The plugin did not make the pod schedulable, and no other plugin can.
    UnschedulableAndUnresolvable,
    /// The plugin failed.
    Error,
}

/// Combines the results of several `PostFilter` plugins.
///
/// The first plugin that succeeds or rules out success decides. A failed plugin gives [`NominatingInfo::Noop`].
/// Otherwise the last result that is not a [`NominatingInfo::Noop`] counts.
///
/// ```
/// use nnn::NominatingInfo;
/// use nnn::scheduling::{PostFilterStatus, combine_post_filters};
/// let unschedulable = (PostFilterStatus::Unschedulable, NominatingInfo::clear());
/// let results = [unschedulable, (PostFilterStatus::Success, NominatingInfo::nominate("n"))];
/// assert_eq!(combine_post_filters(&results), NominatingInfo::nominate("n"));
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
