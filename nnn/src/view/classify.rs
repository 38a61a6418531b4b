//! Which pods an autoscaler looks at, and as what (the order of cluster-autoscaler).

use std::collections::BTreeSet;

use serde::Serialize;

use crate::pod::{Phase, PodView};

/// What a pod is to an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Class {
    /// It does not matter: it has ended, is about to, is another scheduler's, or may be evicted at no cost.
    Dropped,
    /// It is bound.
    Scheduled,
    /// It is expected on a node. It needs no new one, even if that node does not exist.
    Nominated,
    /// No node has room for it: a reason to add one.
    Unschedulable,
    /// A scheduler that is not waited for has not seen it yet.
    Unprocessed,
    /// Nothing can be said yet.
    Ignored,
}

/// The class of a pod. `schedulers` are those whose pods count, all if there are none; `bypassed` those that are not
/// waited for.
///
/// ```
/// use nnn::pod::PodView;
/// use nnn::view::classify::{Class, classify};
/// let none = Default::default();
/// let pod = PodView::pending("default", "web").nominated_to("not-there-yet");
/// assert_eq!(classify(&pod, &none, &none), Class::Nominated);
/// ```
#[must_use]
pub fn classify(pod: &PodView, schedulers: &BTreeSet<String>, bypassed: &BTreeSet<String>) -> Class {
    let is_allowed = schedulers.is_empty() || schedulers.contains(&pod.scheduler_name);
    let is_unseen = || match &pod.scheduled {
        None => true,
        Some(condition) => condition.status == "False" && condition.reason.is_empty(),
    };
    if pod.phase == Phase::Terminal || !is_allowed {
        Class::Dropped
    } else if pod.node.is_some() {
        Class::Scheduled
    } else if pod.deleting {
        Class::Dropped
    } else if pod.nnn.is_some() {
        Class::Nominated
    } else if pod.scheduled.as_ref().is_some_and(crate::pod::ScheduledCondition::is_unschedulable) {
        Class::Unschedulable
    } else if bypassed.contains(&pod.scheduler_name) && is_unseen() {
        Class::Unprocessed
    } else {
        Class::Ignored
    }
}
