//! Classification of pods by cluster-autoscaler: bound, nominated, in need of a node, or ignored.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::pod::{PodPhase, PodSnapshot};

/// Class of a pod, as cluster-autoscaler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PodClass {
    /// The autoscaler ignores the pod: it has ended or is being deleted, belongs to another scheduler, or is
    /// expendable.
    Dropped,
    /// The pod is bound.
    Scheduled,
    /// The pod is nominated to a node. It needs no new node, even if its node does not exist yet.
    Nominated,
    /// No node has room for the pod: a reason to add a node.
    Unschedulable,
    /// The pod's scheduler is bypassed (the autoscaler does not wait for it) and has not tried the pod: a reason to add
    /// a node.
    Unprocessed,
    /// The pod's scheduler has not tried the pod yet, and the autoscaler waits for it.
    Ignored,
}

impl PodClass {
    /// Returns true for a reason to add a node.
    #[must_use]
    pub const fn needs_node(self) -> bool {
        matches!(self, Self::Unschedulable | Self::Unprocessed)
    }
}

/// Classifies a pod. `schedulers` are the names of schedulers whose pods count (all if empty), `bypassed` those that
/// the autoscaler does not wait for.
///
/// ```
/// use nnn::PodSnapshot;
/// use nnn::view::{PodClass, classify_pod};
/// let none = Default::default();
/// let pod = PodSnapshot::pending("default", "web").with_nomination("not-there-yet");
/// assert_eq!(classify_pod(&pod, &none, &none), PodClass::Nominated);
/// ```
#[must_use]
pub fn classify_pod(pod: &PodSnapshot, schedulers: &BTreeSet<String>, bypassed: &BTreeSet<String>) -> PodClass {
    let is_allowed = schedulers.is_empty() || schedulers.contains(&pod.scheduler_name);
    let is_unseen = || match &pod.scheduled {
        None => true,
        Some(condition) => condition.status == "False" && condition.reason.is_empty(),
    };
    if pod.phase == PodPhase::Terminal || !is_allowed {
        PodClass::Dropped
    } else if pod.node.is_some() {
        PodClass::Scheduled
    } else if pod.deleting {
        PodClass::Dropped
    } else if pod.nnn.is_some() {
        PodClass::Nominated
    } else if pod.scheduled.as_ref().is_some_and(crate::pod::ScheduledCondition::is_unschedulable) {
        PodClass::Unschedulable
    } else if bypassed.contains(&pod.scheduler_name) && is_unseen() {
        PodClass::Unprocessed
    } else {
        PodClass::Ignored
    }
}
