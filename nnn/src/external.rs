//! An option: other components may write `nominatedNodeName` as well (KEP-5278, Alternatives).
//!
//! The shipped rules tolerate other writers and read their values as hints ([`Clearing::Always`]). The KEP's alternative
//! gives the field an owner, and keeps what another component proposed.

use serde::{Deserialize, Serialize};

use crate::nominating::NominatingInfo;
use crate::pod::PodView;
use crate::state::State;

/// The manager name under which kube-scheduler writes.
pub const SCHEDULER_MANAGER: &str = "kube-scheduler";

/// Who wrote the value that the field has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Owner {
    /// The field is unset.
    #[default]
    Nobody,
    /// The scheduler.
    Scheduler,
    /// Another component, by the name of its manager.
    External(String),
}

impl Owner {
    /// The owner that the object tells. A value without a known writer belongs to an external one without a name.
    ///
    /// ```
    /// use nnn::external::Owner;
    /// use nnn::pod::PodView;
    /// let pod = PodView::pending("default", "web");
    /// assert_eq!(Owner::of(&pod), Owner::Nobody);
    /// assert_eq!(Owner::of(&pod.nominated_to("n")), Owner::External(String::new()));
    /// ```
    #[must_use]
    pub fn of(pod: &PodView) -> Self {
        match (&pod.nnn, &pod.nnn_manager) {
            (None, _) => Self::Nobody,
            (Some(_), Some(manager)) if manager == SCHEDULER_MANAGER => Self::Scheduler,
            (Some(_), manager) => Self::External(manager.clone().unwrap_or_default()),
        }
    }
}

/// Why the scheduler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchedulerOccasion {
    /// It has found victims.
    Preemption,
    /// A binding cycle starts.
    BindingStart,
    /// Any other.
    Other,
}

/// Who wants to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Writer {
    /// The scheduler.
    Scheduler(SchedulerOccasion),
    /// A component, by the name of its manager.
    External(String),
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Write {
    /// A node.
    Set(String),
    /// Unset.
    Clear,
}

/// Whether a write is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Permission {
    /// It is.
    Allowed,
    /// It changes nothing.
    NoOp,
    /// The value belongs to somebody else.
    Denied,
    /// The value is the writer's own, but the object has changed since it was read: look again, never force.
    Conflict,
}

/// Whether a component may write, by the rules of the KEP's alternative. Writes are conditional: `read` is the version on
/// which the writer decided, `current` that of the object.
///
/// ```
/// use nnn::external::{Owner, Permission, Write, Writer, may_write};
/// let write = |owner: &Owner| may_write(&Writer::External("a".to_owned()), owner, &Write::Clear, Some(1), Some(1));
/// assert_eq!(write(&Owner::External("a".to_owned())), Permission::Allowed);
/// assert_eq!(write(&Owner::External("b".to_owned())), Permission::Denied);
/// ```
#[must_use]
pub fn may_write(writer: &Writer, owner: &Owner, write: &Write, read: Option<u64>, current: Option<u64>) -> Permission {
    let conditional = || if read == current { Permission::Allowed } else { Permission::Conflict };
    match (writer, owner, write) {
        (Writer::Scheduler(SchedulerOccasion::Other), _, Write::Set(_)) | (Writer::Scheduler(_), _, Write::Clear) => {
            Permission::Denied
        }
        (Writer::Scheduler(_), _, Write::Set(_)) => Permission::Allowed,
        (Writer::External(_), Owner::Nobody, Write::Clear) => Permission::NoOp,
        (Writer::External(_), Owner::Nobody, Write::Set(_)) => conditional(),
        (Writer::External(name), Owner::External(owner), _) if name == owner => conditional(),
        (Writer::External(_), _, _) => Permission::Denied,
    }
}

/// Which nominations of unschedulable pods are cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Clearing {
    /// All that the cycle clears, as since Kubernetes 1.35.
    #[default]
    Always,
    /// None: the scheduler only overwrites. The alpha of 1.34, and the KEP's alternative.
    Never,
    /// All but those to nodes that do not exist.
    KeepIfNodeMissing,
    /// Those that the scheduler wrote itself.
    KeepExternal,
}

/// Whether the cluster has the nominated node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it has or it has not")]
pub enum NodePresence {
    /// The cluster has the node.
    Present,
    /// The cluster does not have it.
    Missing,
}

impl Clearing {
    /// What is left of a cycle's decision: a clear becomes [`NominatingInfo::Noop`] where the policy keeps the value.
    ///
    /// ```
    /// use nnn::external::{Clearing, NodePresence, Owner};
    /// use nnn::nominating::NominatingInfo;
    /// let owner = Owner::External("autoscaler".to_owned());
    /// let decide = |policy: Clearing| policy.apply(NominatingInfo::clear(), &owner, NodePresence::Present);
    /// assert_eq!(decide(Clearing::Always), NominatingInfo::clear());
    /// assert_eq!(decide(Clearing::KeepExternal), NominatingInfo::Noop);
    /// ```
    #[must_use]
    pub fn apply(self, info: NominatingInfo, owner: &Owner, node: NodePresence) -> NominatingInfo {
        let keeps = match self {
            Self::Always => false,
            Self::Never => true,
            Self::KeepIfNodeMissing => node == NodePresence::Missing,
            Self::KeepExternal => matches!(owner, Owner::External(_)),
        };
        if keeps && info == NominatingInfo::clear() { NominatingInfo::Noop } else { info }
    }
}

/// The states of the KEP's alternative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ExternalState {
    /// Waiting, without a nomination.
    Pending,
    /// Another component has proposed a node that exists; the scheduler has not agreed.
    Proposed,
    /// The proposed node is not there yet.
    WaitingForNode,
    /// The scheduler has chosen victims.
    WaitingForPreemption,
    /// The scheduler has chosen the node and works towards the binding.
    WaitingForBinding,
    /// Bound.
    Bound,
}

/// The state of a pod in the KEP's alternative; `None` for a pod that is gone. The API alone can't tell the four in the
/// middle apart.
#[must_use]
pub fn external_state(state: &State, node: NodePresence) -> Option<ExternalState> {
    Some(match (state, node) {
        (State::Pending, _) => ExternalState::Pending,
        (State::NominatedHint { .. }, NodePresence::Missing) => ExternalState::WaitingForNode,
        (State::NominatedHint { .. }, NodePresence::Present) => ExternalState::Proposed,
        (State::NominatedPreempting { .. }, _) => ExternalState::WaitingForPreemption,
        (State::AssumedQuiet { .. } | State::AssumedAnnounced { .. }, _) => ExternalState::WaitingForBinding,
        (State::Bound { .. }, _) => ExternalState::Bound,
        (State::Gone, _) => return None,
    })
}
