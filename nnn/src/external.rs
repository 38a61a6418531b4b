//! Optional rules for other writers of `nominatedNodeName` (KEP-5278, Alternatives).
//!
//! Kubernetes as released tolerates other writers and reads their values as hints ([`ClearingPolicy::Always`]). The
//! KEP's alternative gives the field an owner, and keeps a node that another component proposed.

use serde::Serialize;

use crate::behavior::ClearingPolicy;
use crate::nominating_info::NominatingInfo;
use crate::nomination_state::NominationState;
use crate::pod::PodSnapshot;

/// Field manager name of kube-scheduler.
pub const SCHEDULER_MANAGER: &str = "kube-scheduler";

/// Owner of the present value of `nominatedNodeName`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum NominationOwner {
    /// The field is unset.
    #[default]
    Nobody,
    /// The scheduler wrote the value.
    Scheduler,
    /// Another component wrote the value; the name of its field manager.
    External(String),
}

impl NominationOwner {
    /// Reads the owner from the pod's managed fields. A value without a known manager belongs to an external component
    /// without a name.
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

/// Reason for which the scheduler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchedulerWriteReason {
    /// A preemption has chosen victims.
    Preemption,
    /// A binding cycle starts.
    BindingStart,
    /// Any other reason.
    Other,
}

/// Component that wants to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominationWriter {
    /// The scheduler.
    Scheduler(SchedulerWriteReason),
    /// Another component, by the name of its field manager.
    External(String),
}

/// Value to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominationWrite {
    /// Sets the field to a node.
    Set(String),
    /// Clears the field.
    Clear,
}

/// Answer to a component that wants to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum WritePermission {
    /// The write is allowed.
    Allowed,
    /// The write would change nothing.
    NoOp,
    /// The value belongs to another component.
    Denied,
    /// The value belongs to the writer, but the object has changed since it was read. The writer reads it again; it
    /// never forces the write.
    Conflict,
}

/// Decides if a component may write, by the rules of the KEP's alternative.
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
    /// Applies the policy to the decision of a cycle: a clear becomes [`NominatingInfo::Noop`] if the policy keeps the
    /// value.
    ///
    /// ```
    /// use nnn::NominatingInfo;
    /// use nnn::behavior::ClearingPolicy;
    /// use nnn::external::{NodePresence, NominationOwner};
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

/// State of a pod in the KEP's alternative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ExternalNominationState {
    /// The pod waits without a nomination.
    Pending,
    /// Another component has proposed a node that exists, and the scheduler has not agreed yet.
    Proposed,
    /// The proposed node does not exist yet.
    WaitingForNode,
    /// The scheduler has chosen victims on the node.
    WaitingForPreemption,
    /// The scheduler has chosen the node, and the binding cycle runs.
    WaitingForBinding,
    /// The pod is bound.
    Bound,
}

impl ExternalNominationState {
    /// Converts a state of the tracker; `None` for a pod that is gone. `node` is the presence of the nominated node.
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
