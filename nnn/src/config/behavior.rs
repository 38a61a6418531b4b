//! Points in which a scheduler may avoid a race of kube-scheduler: [`Behavior::SAFE`] or [`Behavior::KUBE_SCHEDULER`].

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
    /// Identity by which a pod is recognised as the one seen before: its UID or its name.
    pub identity: PodIdentity,
    /// Treatment of watch events that are older than a pending PATCH.
    pub pending_writes: PendingWrites,
    /// Pod status with which a status write is compared, so that writes without effect are not sent.
    pub current_status: CurrentStatus,
    /// Treatment of status writes that a failed scheduling or binding cycle makes to a pod that was bound or deleted
    /// meanwhile.
    pub patch_after_bind: PatchAfterBind,
    /// Place where the end of a nomination is detected, so that pods waiting for the reserved room are requeued.
    pub requeue_by: RequeueSource,
    /// Time at which preemption evicts its victims: within the scheduling cycle or in the background.
    pub eviction: EvictionTiming,
    /// Treatment of the nominations of lower-priority pods when a pod group preempts.
    pub group_preemption: GroupPreemptionPolicy,
    /// Treatment of the pod's nomination after a failed binding cycle.
    pub on_binding_failure: BindingFailurePolicy,
    /// Rule by which the scheduler clears or keeps the nominations of pods that fit no node.
    pub clearing: ClearingPolicy,
}

impl Behavior {
    /// Behavior that avoids every known race of kube-scheduler.
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

    /// Behavior of kube-scheduler 1.37, its races included.
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

/// Identity by which a pod is recognised as the one seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PodIdentity {
    /// `metadata.uid`: a pod that is deleted and created again under its name is another pod.
    Uid,
    /// Namespace and name, as in kube-scheduler: a pod deleted and created again leaves a nomination that no event
    /// removes.
    Name,
}

/// Treatment of watch events that are older than a pending PATCH of this scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingWrites {
    /// A stale event does not change the nomination in the scheduler's memory until the watch has shown the PATCH.
    Protected,
    /// A stale event overwrites the nomination in memory, as in kube-scheduler: an unrelated update of the pod restores
    /// the old nomination.
    Ignored,
}

/// Pod status with which a status write is compared, so that writes without effect are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CurrentStatus {
    /// Status that the scheduler has last written or the watch has last shown, whichever is later.
    WrittenOrObserved,
    /// Status that the watch has last shown, as in kube-scheduler: the scheduler's own pending writes do not count.
    Observed,
}

/// Treatment of status writes that a failed scheduling or binding cycle makes to a pod that was bound or deleted
/// meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PatchAfterBind {
    /// Writes nothing: a late `PodScheduled=False` on a bound pod misleads.
    Suppressed,
    /// Writes the status if it differs from the copy that came out of the scheduling queue, as in kube-scheduler.
    Sent,
}

/// Place where the end of a nomination is detected, so that pods waiting for the reserved room are requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequeueSource {
    /// The scheduler's memory, which holds the nominations that the filters have counted.
    Memory,
    /// `status.nominatedNodeName`, as in kube-scheduler: no pod is requeued when a nomination ends that was never
    /// written.
    Status,
}

/// Time at which preemption evicts its victims, relative to the scheduling cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EvictionTiming {
    /// Victims are evicted within the scheduling cycle.
    Sync,
    /// Victims are evicted in the background.
    Async,
    /// Victims are evicted in the background, and every victim of the current preemption is terminating already.
    ///
    /// kube-scheduler then returns early and clears no nominations.
    AsyncAllTerminating,
}

/// Treatment of the nominations of lower-priority pods to the nodes for which a pod group has chosen victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum GroupPreemptionPolicy {
    /// Clears the nominations of lower-priority pods, as after the preemption by a single pod.
    #[serde(rename = "cleared")]
    ClearLowerNominations,
    /// Keeps the nominations of lower-priority pods, as in kube-scheduler: for a group it looks them up under the name
    /// of the group's placement (the whole cluster) instead of a node name, and finds none.
    #[serde(rename = "left")]
    KeepLowerNominations,
}

/// Treatment of the nomination of a pod whose binding cycle failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BindingFailurePolicy {
    /// Clears the nomination, as kube-scheduler does since Kubernetes 1.35.
    Clear,
    /// Keeps the nomination if every `PreBind` plugin had succeeded, because their results are tied to the node.
    KeepAfterPreBind,
    /// Keeps the nomination in any case.
    Keep,
}

/// Rule by which the scheduler clears or keeps the nominations of pods that fit no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClearingPolicy {
    /// Clears the nomination of every pod that fits no node, as kube-scheduler does since Kubernetes 1.35.
    Always,
    /// Clears no nomination, but may overwrite it with another node: as in Kubernetes 1.34 (alpha) and in the KEP's
    /// alternative with other writers.
    Never,
    /// Clears the nomination of an unschedulable pod, unless the nominated node does not exist (yet).
    KeepIfNodeMissing,
    /// Clears nominations that the scheduler wrote itself, and keeps those of other components.
    KeepExternal,
}
