//! Optional rules for other writers of `nominatedNodeName` (KEP-5278, Alternatives).
//!
//! Kubernetes as released tolerates other writers and reads their values as hints ([`ClearingPolicy::Always`]). The
//! KEP's alternative gives the field an owner, and keeps a node that another component proposed.

use serde::Serialize;

pub use crate::config::ClearingPolicy;
use crate::nomination::{NominatingInfo, NominationState};
use crate::pod::PodSnapshot;

/// Field manager name of kube-scheduler.
pub const SCHEDULER_MANAGER: &str = "kube-scheduler";

/// Component that wrote the current value of `nominatedNodeName`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum NominationOwner {
    /// The field is unset.
    #[default]
    Nobody,
    /// The scheduler wrote the value.
    Scheduler,
    /// Another component wrote the value. The text is the name of its field manager.
    External(String),
}

impl NominationOwner {
    /// Reads the owner from `metadata.managedFields` of the pod. A value without a recorded manager has an external
    /// owner with an empty name.
    ///
    /// ```
    /// use nnn::PodSnapshot;
    /// use nnn::external::NominationOwner;
    /// let pod = PodSnapshot::pending("default", "web");
    /// assert_eq!(NominationOwner::from_pod(&pod), NominationOwner::Nobody);
    /// assert_eq!(NominationOwner::from_pod(&pod.with_nomination("n")), NominationOwner::External(String::new()));
    /// ```
    #[must_use]
    pub fn from_pod(pod: &PodSnapshot) -> Self {
        match (&pod.nnn, &pod.nnn_manager) {
            (None, _) => Self::Nobody,
            (Some(_), Some(manager)) if manager == SCHEDULER_MANAGER => Self::Scheduler,
            (Some(_), manager) => Self::External(manager.clone().unwrap_or_default()),
        }
    }
}

/// Reason why the scheduler writes `nominatedNodeName`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchedulerWriteReason {
    /// Preemption has chosen victims on the node.
    Preemption,
    /// A binding cycle starts.
    BindingStart,
    /// Any reason other than preemption and the start of a binding cycle.
    Other,
}

/// Component that asks to write `nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominationWriter {
    /// The scheduler itself, for the given reason.
    Scheduler(SchedulerWriteReason),
    /// A component other than the scheduler. The text is the name of its field manager.
    External(String),
}

/// Wanted change of `nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominationWrite {
    /// Sets the field to the name of a node.
    Set(String),
    /// Clears the field.
    Clear,
}

/// Permission to change `nominatedNodeName`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum WritePermission {
    /// The write is allowed.
    Allowed,
    /// The write would change nothing.
    NoOp,
    /// The write is refused, because another component wrote the current value of `nominatedNodeName`.
    Denied,
    /// The pod has changed since the writer read it. The writer reads the pod again and never forces the write.
    Conflict,
}

/// Decides if a component may change `nominatedNodeName`, by the rules in the KEP's section Alternatives.
///
/// Writes are conditional: `read` is the resource version on which the writer decided, `current` the present one.
///
/// ```
/// use nnn::external::{NominationOwner, NominationWrite, NominationWriter, WritePermission, may_write};
/// let writer = NominationWriter::External("a".to_owned());
/// let write = |owner: &NominationOwner| may_write(&writer, owner, &NominationWrite::Clear, Some(1), Some(1));
/// assert_eq!(write(&NominationOwner::External("a".to_owned())), WritePermission::Allowed);
/// assert_eq!(write(&NominationOwner::External("b".to_owned())), WritePermission::Denied);
/// ```
#[must_use]
pub fn may_write(
    writer: &NominationWriter,
    owner: &NominationOwner,
    write: &NominationWrite,
    read: Option<u64>,
    current: Option<u64>,
) -> WritePermission {
    let conditional = || if read == current { WritePermission::Allowed } else { WritePermission::Conflict };
    match (writer, owner, write) {
        (NominationWriter::Scheduler(SchedulerWriteReason::Other), _, NominationWrite::Set(_))
        | (NominationWriter::Scheduler(_), _, NominationWrite::Clear) => WritePermission::Denied,
        (NominationWriter::Scheduler(_), _, NominationWrite::Set(_)) => WritePermission::Allowed,
        (NominationWriter::External(_), NominationOwner::Nobody, NominationWrite::Clear) => WritePermission::NoOp,
        (NominationWriter::External(_), NominationOwner::Nobody, NominationWrite::Set(_)) => conditional(),
        (NominationWriter::External(name), NominationOwner::External(owner), _) if name == owner => conditional(),
        (NominationWriter::External(_), _, _) => WritePermission::Denied,
    }
}

/// Presence of the nominated node in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it has or it has not")]
pub enum NodePresence {
    /// The cluster has the node.
    Present,
    /// The cluster does not have the node.
    Missing,
}

impl ClearingPolicy {
    /// Returns the change of a nomination under this policy: `info`, or [`NominatingInfo::Noop`] if `info` clears a
    /// nomination that the policy keeps.
    ///
    /// ```
    /// use nnn::NominatingInfo;
    /// use nnn::external::{ClearingPolicy, NodePresence, NominationOwner};
    /// let owner = NominationOwner::External("autoscaler".to_owned());
    /// let decide = |policy: ClearingPolicy| policy.apply(NominatingInfo::clear(), &owner, NodePresence::Present);
    /// assert_eq!(decide(ClearingPolicy::Always), NominatingInfo::clear());
    /// assert_eq!(decide(ClearingPolicy::KeepExternal), NominatingInfo::Noop);
    /// ```
    #[must_use]
    pub fn apply(self, info: NominatingInfo, owner: &NominationOwner, node: NodePresence) -> NominatingInfo {
        let keeps = match self {
            Self::Always => false,
            Self::Never => true,
            Self::KeepIfNodeMissing => node == NodePresence::Missing,
            Self::KeepExternal => matches!(owner, NominationOwner::External(_)),
        };
        if keeps && info == NominatingInfo::clear() { NominatingInfo::Noop } else { info }
    }
}

/// State of a pod in the KEP's alternative, in which other components may nominate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ExternalNominationState {
    /// The pod waits without a nomination.
    Pending,
    /// Another component has proposed a node that exists, and the scheduler has not agreed yet.
    Proposed,
    /// Another component has proposed a node that does not exist yet.
    WaitingForNode,
    /// The scheduler has chosen victims on the node.
    WaitingForPreemption,
    /// The scheduler has chosen the node, and the binding cycle runs.
    WaitingForBinding,
    /// The pod is bound.
    Bound,
}

impl ExternalNominationState {
    /// Converts a state of the tracker; `None` for a deleted pod. `node` is the presence of the nominated node.
    ///
    /// The API alone can't tell the four states between `Pending` and `Bound` apart.
    #[must_use]
    pub fn from_state(state: &NominationState, node: NodePresence) -> Option<Self> {
        Some(match (state, node) {
            (NominationState::Pending, _) => Self::Pending,
            (NominationState::NominatedHint { .. }, NodePresence::Missing) => Self::WaitingForNode,
            (NominationState::NominatedHint { .. }, NodePresence::Present) => Self::Proposed,
            (NominationState::NominatedPreempting { .. }, _) => Self::WaitingForPreemption,
            (NominationState::AssumedQuiet { .. } | NominationState::AssumedAnnounced { .. }, _) => {
                Self::WaitingForBinding
            }
            (NominationState::Bound { .. }, _) => Self::Bound,
            (NominationState::Gone, _) => return None,
        })
    }
}
