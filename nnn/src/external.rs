//! Optional rules for other writers of `nominatedNodeName` (KEP-5278, Alternatives).
//!
//! Kubernetes as released tolerates other writers and reads their values as hints ([`ClearingPolicy::Always`]). The
//! KEP's alternative gives the field an owner, and keeps a node that another component proposed.

use serde::Serialize;

pub use crate::config::ClearingPolicy;
use crate::nomination::{NominatingInfo, NominationState};
use crate::pod::PodSnapshot;

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
    /// Field manager name of kube-scheduler.
    pub const SCHEDULER_MANAGER: &'static str = "kube-scheduler";

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
            (Some(_), Some(manager)) if manager == Self::SCHEDULER_MANAGER => Self::Scheduler,
            (Some(_), manager) => Self::External(manager.clone().unwrap_or_default()),
        }
    }
}

/// Component that asks to write `nominatedNodeName`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominationWriter {
    /// The scheduler: preemption has chosen victims on the node.
    Preemption,
    /// The scheduler: a binding cycle starts.
    BindingStart,
    /// The scheduler, for any reason other than preemption and the start of a binding cycle.
    OtherScheduling,
    /// A component other than the scheduler. The text is the name of its field manager.
    External(String),
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

impl NominationWriter {
    /// Decides if the component may set `nominatedNodeName` to a node, or clear it (`None`), by the rules in the KEP's section
    /// Alternatives.
    ///
    /// Writes are conditional: `read` is the resource version on which the writer decided, `current` the present one.
    ///
    /// ```
    /// use nnn::external::{NominationOwner, NominationWriter, WritePermission};
    /// let writer = NominationWriter::External("a".to_owned());
    /// let clears = |owner: &NominationOwner| writer.may_write(owner, None, Some(1), Some(1));
    /// assert_eq!(clears(&NominationOwner::External("a".to_owned())), WritePermission::Allowed);
    /// assert_eq!(clears(&NominationOwner::External("b".to_owned())), WritePermission::Denied);
    /// ```
    #[must_use]
    pub fn may_write(
        &self,
        owner: &NominationOwner,
        node: Option<&str>,
        read: Option<u64>,
        current: Option<u64>,
    ) -> WritePermission {
        let conditional = || if read == current { WritePermission::Allowed } else { WritePermission::Conflict };
        match (self, owner, node) {
            (Self::Preemption | Self::BindingStart, _, Some(_)) => WritePermission::Allowed,
            (Self::External(_), NominationOwner::Nobody, None) => WritePermission::NoOp,
            (Self::External(_), NominationOwner::Nobody, Some(_)) => conditional(),
            (Self::External(name), NominationOwner::External(owner), _) if name == owner => conditional(),
            _ => WritePermission::Denied,
        }
    }
}

impl ClearingPolicy {
    /// Returns the change of a nomination under this policy: `info`, or [`NominatingInfo::Noop`] if `info` clears a
    /// nomination that the policy keeps.
    pub(crate) fn apply(self, info: NominatingInfo, owner: &NominationOwner, has_node: bool) -> NominatingInfo {
        let keeps = match self {
            Self::Always => false,
            Self::Never => true,
            Self::KeepIfNodeMissing => !has_node,
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
    /// Converts a state of the tracker, for a nominated node that exists; `None` for a deleted pod.
    ///
    /// The API alone can't tell the four states between `Pending` and `Bound` apart.
    #[must_use]
    pub fn from_state(state: &NominationState) -> Option<Self> {
        Some(match state {
            NominationState::Pending => Self::Pending,
            NominationState::NominatedHint { .. } => Self::Proposed,
            NominationState::NominatedPreempting { .. } => Self::WaitingForPreemption,
            NominationState::AssumedQuiet { .. } | NominationState::AssumedAnnounced { .. } => Self::WaitingForBinding,
            NominationState::Bound { .. } => Self::Bound,
            NominationState::Gone => return None,
        })
    }

    /// Returns the state for a nominated node that does not exist yet.
    #[must_use]
    pub fn without_node(self) -> Self {
        if self == Self::Proposed { Self::WaitingForNode } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClearingPolicy, NominationOwner};
    use crate::nomination::NominatingInfo;

    #[test]
    fn what_is_cleared_by_which_policy() {
        use ClearingPolicy::{Always, KeepExternal, KeepIfNodeMissing, Never};
        let foreign = || NominationOwner::External("a".to_owned());
        let clears = |policy: ClearingPolicy, owner: &NominationOwner, has_node| {
            policy.apply(NominatingInfo::clear(), owner, has_node) == NominatingInfo::clear()
        };
        for (policy, own_here, own_gone, foreign_here, foreign_gone) in [
            (Always, true, true, true, true),
            (Never, false, false, false, false),
            (KeepIfNodeMissing, true, false, true, false),
            (KeepExternal, true, true, false, false),
        ] {
            let owners = [NominationOwner::Scheduler, foreign()];
            let found = owners.each_ref().map(|owner| [true, false].map(|has_node| clears(policy, owner, has_node)));
            assert_eq!(found, [[own_here, own_gone], [foreign_here, foreign_gone]], "{policy:?}");
            for info in [NominatingInfo::Noop, NominatingInfo::nominate("n")] {
                assert_eq!(policy.apply(info.clone(), &foreign(), false), info, "only a clear is held back");
            }
        }
    }
}
