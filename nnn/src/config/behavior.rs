//! The two behaviors of a scheduler where kube-scheduler 1.37 has a race.

/// Behavior of a scheduler where kube-scheduler 1.37 has a race: with the race or without.
///
/// | | [`Safe`](Self::Safe) | [`KubeScheduler`](Self::KubeScheduler) | the race |
/// |---|---|---|---|
/// | a pod is the one seen before | by its UID | by its name | a pod that is made anew leaves a nomination that no event ends |
/// | an update that is older than a pending PATCH | leaves memory alone | sets memory | an unrelated update restores the old nomination |
/// | a write is compared with | the status as last written or observed | the status as observed | a nomination is cleared one failure late |
/// | a cycle fails for a pod that is bound or gone | nothing is written | the status is written | `PodScheduled=False` on a bound pod misleads |
/// | the end of a nomination is seen in | memory | the status | the end of one that was never written wakes nobody |
/// | a pod group preempts | lower nominations to its nodes end | they stay | lower pods hold room that is given away |
///
/// ```
/// use nnn::{Behavior, NominatingInfo, Nominator, PodSnapshot};
/// let pod = |node| PodSnapshot::pending("default", "web").with_nomination(node);
/// let nominated_after_an_old_update = |behavior| {
///     let mut nominator = Nominator::new(behavior);
///     nominator.add(&pod("old"), &NominatingInfo::nominate("new"), Some(&pod("old")));
///     nominator.write_issued("web", Some("new"));
///     nominator.update(&pod("old"), &pod("old"), Some(&pod("old")));
///     nominator.nominated_node("web").map(str::to_owned)
/// };
/// assert_eq!(nominated_after_an_old_update(Behavior::Safe).as_deref(), Some("new"));
/// assert_eq!(nominated_after_an_old_update(Behavior::KubeScheduler).as_deref(), Some("old"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Behavior {
    /// Avoids every known race of kube-scheduler.
    Safe,
    /// Behaves as kube-scheduler 1.37, its races included.
    KubeScheduler,
}

/// The rows of the table.
impl Behavior {
    /// Returns true if a pod of the same name but another UID is another pod.
    pub(crate) const fn identifies_by_uid(self) -> bool {
        matches!(self, Self::Safe)
    }

    /// Returns true if memory follows no update that is older than a pending PATCH.
    pub(crate) const fn protects_pending_writes(self) -> bool {
        matches!(self, Self::Safe)
    }

    /// Returns true if the scheduler's own pending writes count as the current status. Otherwise only what the watch has
    /// shown does.
    pub(crate) const fn counts_own_writes(self) -> bool {
        matches!(self, Self::Safe)
    }

    /// Returns true if a failed cycle writes the status of a pod that was bound or deleted meanwhile, if that differs
    /// from the copy that came out of the scheduling queue.
    pub(crate) const fn writes_after_bind(self) -> bool {
        matches!(self, Self::KubeScheduler)
    }

    /// Returns true if pods are requeued when a nomination ends in memory, which the filters have counted. Otherwise they
    /// are when it ends in `status.nominatedNodeName`.
    pub(crate) const fn requeues_by_memory(self) -> bool {
        matches!(self, Self::Safe)
    }

    /// Returns true if the preemption of a pod group clears lower nominations, as that of a single pod does.
    ///
    /// kube-scheduler looks them up under the name of the group's placement (the whole cluster) instead of a node name,
    /// and finds none.
    pub(crate) const fn clears_for_groups(self) -> bool {
        matches!(self, Self::Safe)
    }
}
