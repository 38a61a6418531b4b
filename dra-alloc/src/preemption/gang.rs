//! Gangs that preempt: pods that get their devices all at once, over several nodes, or not at all.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

/// Pods that preempt together: [`Preemption::make_room_for_gang`](super::Preemption::make_room_for_gang).
///
/// ```
/// use dra_alloc::preemption::{PreemptingGang, PreemptingMember};
/// use k8s_openapi::api::core::v1::Pod;
/// let (leader, worker) = (Pod::default(), Pod::default());
/// let members = [PreemptingMember::new(&leader).on_nodes(["rack-1-a"]), PreemptingMember::new(&worker)];
/// let gang = PreemptingGang::new(members);
/// assert_eq!(gang.members().len(), 2);
/// ```
#[derive(Clone)]
pub struct PreemptingGang<'g> {
    members: Vec<PreemptingMember<'g>>,
    quorum: Option<NonZeroUsize>,
    pub(super) group: Option<&'g PodGroup>,
}

/// Pod of a gang, with the nodes that it may use.
#[derive(Clone)]
pub struct PreemptingMember<'g> {
    pub(super) pod: &'g Pod,
    /// Names of the nodes; `None` for all.
    pub(super) nodes: Option<BTreeSet<&'g str>>,
}

impl<'g> PreemptingGang<'g> {
    /// Builds a gang of pods, all of which have to fit.
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = PreemptingMember<'g>>) -> Self {
        Self { members: members.into_iter().collect(), quorum: None, group: None }
    }

    /// Sets the number of members that have to fit; all of them by default. Others get a place if there is one.
    #[must_use]
    pub fn with_quorum(self, members: NonZeroUsize) -> Self {
        Self { quorum: Some(members), ..self }
    }

    /// Sets the group of the pods. Its priority, its preemption policy and its `minCount` count where they are set. Pods of the group
    /// that run already are no members: then the quorum is the caller's.
    #[must_use]
    pub fn with_group(self, group: &'g PodGroup) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Returns the members.
    #[must_use]
    pub fn members(&self) -> &[PreemptingMember<'g>] {
        &self.members
    }

    /// Returns the number of members that have to fit.
    #[must_use]
    pub fn quorum(&self) -> usize {
        let of_group = || {
            let policy = &self.group?.spec.scheduling_policy;
            usize::try_from(policy.gang.as_ref()?.min_count).ok().filter(|count| *count > 0)
        };
        self.quorum.map(NonZeroUsize::get).or_else(of_group).unwrap_or(self.members.len())
    }

    /// Returns the priority of the gang: that of its group, or else the lowest of its members.
    pub(super) fn priority(&self) -> i32 {
        let of_pod = |member: &PreemptingMember<'_>| member.pod.spec.as_ref().and_then(|spec| spec.priority);
        let of_pods = || self.members.iter().map(|member| of_pod(member).unwrap_or_default()).min();
        self.group.and_then(|group| group.spec.priority).or_else(of_pods).unwrap_or_default()
    }

    /// Returns true if the group may not preempt others.
    pub(super) fn never_preempts(&self) -> bool {
        self.group.is_some_and(|group| group.spec.preemption_policy.as_deref() == Some("Never"))
    }
}

impl<'g> PreemptingMember<'g> {
    /// Builds a member that may use all nodes.
    #[must_use]
    pub const fn new(pod: &'g Pod) -> Self {
        Self { pod, nodes: None }
    }

    /// Sets the nodes that the pod may use, by their names: those of a rack, or those that its node selector admits.
    #[must_use]
    pub fn on_nodes(self, nodes: impl IntoIterator<Item = &'g str>) -> Self {
        Self { nodes: Some(nodes.into_iter().collect()), ..self }
    }
}

impl fmt::Debug for PreemptingGang<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreemptingGang").field("members", &self.members).field("quorum", &self.quorum()).finish()
    }
}

impl fmt::Debug for PreemptingMember<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PreemptingMember").field(&self.pod.metadata.name).finish()
    }
}
