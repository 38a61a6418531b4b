//! Classification of pods by cluster-autoscaler: bound, nominated, in need of a node, or ignored.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::pod::{PodSnapshot, ScheduledCondition};

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
pub(super) fn classify_pod(pod: &PodSnapshot, schedulers: &BTreeSet<String>, bypassed: &BTreeSet<String>) -> PodClass {
    let is_allowed = schedulers.is_empty() || schedulers.contains(&pod.scheduler_name);
    let is_unseen = || match &pod.scheduled {
        None => true,
        Some(condition) => condition.status == "False" && condition.reason.is_empty(),
    };
    if pod.has_ended || !is_allowed {
        PodClass::Dropped
    } else if pod.node.is_some() {
        PodClass::Scheduled
    } else if pod.deleting {
        PodClass::Dropped
    } else if pod.nnn.is_some() {
        PodClass::Nominated
    } else if pod.scheduled.as_ref().is_some_and(ScheduledCondition::is_unschedulable) {
        PodClass::Unschedulable
    } else if bypassed.contains(&pod.scheduler_name) && is_unseen() {
        PodClass::Unprocessed
    } else {
        PodClass::Ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of a waiting pod, its class, and the class if its scheduler is bypassed.
    type Row<'a> = (&'a dyn Fn(&mut PodSnapshot), PodClass, PodClass);

    fn waiting() -> PodSnapshot {
        PodSnapshot::pending("default", "p")
    }

    fn with(mut pod: PodSnapshot, change: impl FnOnce(&mut PodSnapshot)) -> PodSnapshot {
        change(&mut pod);
        pod
    }

    fn unschedulable() -> ScheduledCondition {
        ScheduledCondition::failed("Unschedulable", "0/3 nodes are available")
    }

    #[test]
    fn classes_in_their_order() {
        let none = BTreeSet::new();
        let bypassed = BTreeSet::from(["default-scheduler".to_owned()]);
        let of = |change: &dyn Fn(&mut PodSnapshot), bypassed: &BTreeSet<String>| {
            classify_pod(&with(waiting(), change), &none, bypassed)
        };
        let set = |field: &str| Some(field.to_owned());
        let rows: [Row<'_>; 8] = [
            (&|pod| (pod.has_ended, pod.node) = (true, set("n")), PodClass::Dropped, PodClass::Dropped),
            (&|pod| (pod.node, pod.deleting) = (set("n"), true), PodClass::Scheduled, PodClass::Scheduled),
            (&|pod| (pod.nnn, pod.deleting) = (set("n"), true), PodClass::Dropped, PodClass::Dropped),
            (
                &|pod| (pod.nnn, pod.scheduled) = (set("n"), Some(unschedulable())),
                PodClass::Nominated,
                PodClass::Nominated,
            ),
            (&|pod| pod.nnn = set("n"), PodClass::Nominated, PodClass::Nominated),
            (&|pod| pod.scheduled = Some(unschedulable()), PodClass::Unschedulable, PodClass::Unschedulable),
            (&|_| {}, PodClass::Ignored, PodClass::Unprocessed),
            (
                &|pod| pod.scheduled = Some(ScheduledCondition::failed("SchedulingGated", "")),
                PodClass::Ignored,
                PodClass::Ignored,
            ),
        ];
        for (number, (change, expected, with_bypassed)) in rows.into_iter().enumerate() {
            assert_eq!(of(change, &none), expected, "row {number}");
            assert_eq!(of(change, &bypassed), with_bypassed, "row {number}, bypassed");
        }
        let unseen: &dyn Fn(&mut PodSnapshot) = &|pod| pod.scheduled = Some(ScheduledCondition::failed("", ""));
        assert_eq!(of(unseen, &bypassed), PodClass::Unprocessed);
        assert_eq!(
            classify_pod(&waiting().with_nomination("n"), &BTreeSet::from(["another".to_owned()]), &none),
            PodClass::Dropped
        );
    }
}
