//! Points in which a scheduler may be safer than kube-scheduler: [`Behavior::SAFE`] or [`Behavior::KUBE_SCHEDULER`].

use serde::{Deserialize, Serialize};

/// The choices of a scheduler where kube-scheduler 1.37 has a race or the KEP leaves a choice.
///
/// ```
/// use nnn::behavior::{Behavior, RequeueSource};
/// assert_eq!(Behavior::SAFE.requeue_by, RequeueSource::Memory);
/// assert_eq!(Behavior::KUBE_SCHEDULER.requeue_by, RequeueSource::Status);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Behavior {
    /// Key by which a pod found by name is recognised as the same pod.
    pub identity: PodIdentity,
    /// Treatment of watch events that are older than a pending PATCH.
    pub pending_writes: PendingWrites,
    /// Status that a write is compared with.
    pub current_status: CurrentStatus,
    /// Writes to pods that are gone or bound.
    pub patch_after_bind: PatchAfterBind,
    /// Source that shows the end of a nomination, so that waiting pods are requeued.
    pub requeue_by: RequeueSource,
    /// Timing of evictions relative to the scheduling cycle.
    pub eviction: EvictionTiming,
    /// Nominations of lower-priority pods when a pod group preempts.
    pub group_preemption: GroupPreemptionPolicy,
    /// Nomination after a failed binding cycle.
    pub on_binding_failure: BindingFailurePolicy,
    /// Nomination of an unschedulable pod.
    pub clearing: ClearingPolicy,
}

impl Behavior {
    /// The choice without a known race in every point.
    pub const SAFE: Self = Self {
        identity: PodIdentity::Uid,
        pending_writes: PendingWrites::Protected,
        current_status: CurrentStatus::WrittenOrObserved,
        patch_after_bind: PatchAfterBind::Suppressed,
        requeue_by: RequeueSource::Memory,
        eviction: EvictionTiming::Sync,
        group_preemption: GroupPreemptionPolicy::ClearLowerNominations,
        on_binding_failure: BindingFailurePolicy::Clear,
        clearing: ClearingPolicy::Always,
    };

    /// The choices of kube-scheduler 1.37, its races included.
    ///
    /// Evictions are asynchronous, as is kube-scheduler's default. The tracker does not see if all victims of a
    /// preemption are terminating already: a caller that does sets [`EvictionTiming::AsyncAllTerminating`].
    pub const KUBE_SCHEDULER: Self = Self {
        identity: PodIdentity::Name,
        pending_writes: PendingWrites::Ignored,
        current_status: CurrentStatus::Observed,
        patch_after_bind: PatchAfterBind::Sent,
        requeue_by: RequeueSource::Status,
        eviction: EvictionTiming::Async,
        group_preemption: GroupPreemptionPolicy::KeepLowerNominations,
        ..Self::SAFE
    };
}

/// Key by which a pod found by name is recognised as the same pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PodIdentity {
    /// The UID.
    Uid,
    /// The name, as in kube-scheduler: a pod that was deleted and created again leaves an entry that no event removes.
    Name,
}

/// Treatment of watch events that are older than a pending PATCH of this scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingWrites {
    /// The nomination in memory stays until the watch has shown the PATCH.
    Protected,
    /// The event overwrites memory, as in kube-scheduler: an unrelated update restores the old nomination.
    Ignored,
}

/// Status that a write is compared with, to find out if it would change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CurrentStatus {
    /// The last written or observed status: a write counts before the watch has shown it.
    WrittenOrObserved,
    /// The last observed status, as in kube-scheduler.
    Observed,
}

/// Writes of a failed cycle to a pod that is gone or bound by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PatchAfterBind {
    /// Nothing is written: a late "not scheduled" on a bound pod misleads.
    Suppressed,
    /// The status is written if it differs from the copy that came out of the queue, as in kube-scheduler.
    Sent,
}

/// Source that shows the end of a nomination, so that waiting pods are requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequeueSource {
    /// The nomination in memory, which is the one that the filters counted.
    Memory,
    /// The nomination in the status, as in kube-scheduler: the end of one that was never written requeues nobody.
    Status,
}

/// Timing of evictions relative to the scheduling cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EvictionTiming {
    /// Victims are evicted within the cycle.
    Sync,
    /// Victims are evicted in the background.
    Async,
    /// Victims are evicted in the background, and all of them are terminating already.
    ///
    /// kube-scheduler then returns early and clears no nominations.
    AsyncAllTerminating,
}

/// Nominations of lower-priority pods to the nodes for which a pod group has chosen victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum GroupPreemptionPolicy {
    /// Lower nominations are cleared, as after the preemption of a single pod.
    #[serde(rename = "cleared")]
    ClearLowerNominations,
    /// Lower nominations stay, as in kube-scheduler: it looks for nominations to a node with the name of the group's
    /// candidate, which is the whole cluster.
    #[serde(rename = "left")]
    KeepLowerNominations,
}

/// Nomination of a pod whose binding cycle failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BindingFailurePolicy {
    /// The nomination is cleared, as since Kubernetes 1.35.
    Clear,
    /// The nomination stays if every `PreBind` plugin had succeeded: their results are pinned to the node.
    KeepAfterPreBind,
    /// The nomination stays.
    Keep,
}

/// Nominations of unschedulable pods that the scheduler clears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClearingPolicy {
    /// Every nomination that the cycle clears, as since Kubernetes 1.35.
    Always,
    /// None, the scheduler only overwrites: the alpha of Kubernetes 1.34, and the KEP's alternative with other writers.
    Never,
    /// All nominations to nodes that exist.
    KeepIfNodeMissing,
    /// Nominations that the scheduler wrote itself.
    KeepExternal,
}
