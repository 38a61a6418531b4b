//! Handling of a failed scheduling or binding cycle: nomination in memory, status and queue.

use dra_attrs::{Gate, GateSet};

use crate::commands::NoPatchReason;
use crate::config::Behavior;
use crate::nomination::NominatingInfo;
use crate::pod::PodSnapshot;

/// Change of the pod's nomination in the scheduler's memory after a failed cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemoryUpdate {
    /// The nomination is set again, from the pod's current state and the result of the cycle.
    Renewed,
    /// The nomination is removed, because the pod is bound or deleted.
    Released,
    /// The nomination is left unchanged.
    Untouched,
}

/// Changes after a failed cycle, to be made in this order: memory, status, queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FailureDecision {
    /// Change of the nomination in the scheduler's memory.
    pub(crate) memory: MemoryUpdate,
    /// Reason that no PATCH with condition and nomination is sent; `None` if one is.
    pub(crate) no_patch: Option<NoPatchReason>,
    /// True if the pod goes back into the scheduling queue, false if it leaves the queue.
    pub(crate) requeues: bool,
}

/// Input of the decision after a failed cycle: the pod, its current status, and the result of the cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedCycle<'a> {
    /// The pod as it came out of the queue.
    pub(crate) queued_pod: &'a PodSnapshot,
    /// Latest observed pod of the same namespace and name; `None` if it was deleted.
    pub(crate) live: Option<&'a PodSnapshot>,
    /// Change of the nomination that the cycle decided.
    pub(crate) info: &'a NominatingInfo,
    /// `status.nominatedNodeName` as last written or observed; of `queued_pod` if the pod was bound or deleted.
    pub(crate) current_nnn: Option<&'a str>,
    /// True if the new condition differs from that of the current status (of `queued_pod`, if the pod was bound or deleted).
    pub(crate) is_condition_new: bool,
    /// Behavior of the scheduler.
    pub(crate) behavior: Behavior,
    /// Feature gates. Only [`Gate::InPlacePodVerticalScalingSchedulerPreemption`] is read.
    pub(crate) gates: GateSet,
}

impl FailedCycle<'_> {
    /// Decides the changes of memory, status and queue.
    pub(crate) fn decide(&self) -> FailureDecision {
        let Some(live) = self.live else { return self.too_late(NoPatchReason::PodGone) };
        let is_same = live.key.uid == self.queued_pod.key.uid;
        if live.node.is_some()
            && live.resize_deferred
            && self.gates.has(Gate::InPlacePodVerticalScalingSchedulerPreemption)
        {
            return FailureDecision {
                memory: MemoryUpdate::Untouched,
                no_patch: Some(NoPatchReason::DeferredResize),
                requeues: is_same,
            };
        }
        // Upstream asks whether the pod of that name is bound before it asks whether it is the same.
        if live.node.is_some() && (is_same || self.behavior.writes_after_bind()) {
            return self.too_late(NoPatchReason::PodBound);
        }
        if !is_same {
            return FailureDecision {
                memory: MemoryUpdate::Untouched,
                no_patch: Some(NoPatchReason::PodRecreated),
                requeues: false,
            };
        }
        FailureDecision { memory: MemoryUpdate::Renewed, no_patch: self.no_patch(), requeues: true }
    }

    /// Returns the changes for a pod that was bound or deleted while its cycle ran.
    fn too_late(&self, reason: NoPatchReason) -> FailureDecision {
        let no_patch = if self.behavior.writes_after_bind() { self.no_patch() } else { Some(reason) };
        FailureDecision { memory: MemoryUpdate::Released, no_patch, requeues: false }
    }

    fn no_patch(&self) -> Option<NoPatchReason> {
        if self.is_condition_new { None } else { self.info.no_patch_reason(self.current_nnn) }
    }
}

#[cfg(test)]
mod tests {
    use super::Behavior::{KubeScheduler, Safe};
    use super::*;

    fn pod(name: &str) -> PodSnapshot {
        PodSnapshot::pending("default", name)
    }

    fn with<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
        change(&mut value);
        value
    }

    /// Builds the input for a pod that is unchanged since it came out of the queue.
    fn failed_cycle<'a>(
        queued_pod: &'a PodSnapshot,
        info: &'a NominatingInfo,
        is_condition_new: bool,
    ) -> FailedCycle<'a> {
        FailedCycle {
            queued_pod,
            live: Some(queued_pod),
            info,
            current_nnn: queued_pod.nnn.as_deref(),
            is_condition_new,
            behavior: Safe,
            gates: GateSet::of(dra_attrs::Profile::V1_37),
        }
    }

    #[test]
    fn the_failure_handler() {
        let queued_pod = pod("p");
        let recreated = pod("p").with_uid("another");
        let bound = queued_pod.clone().with_node("n");
        let bound_other = recreated.clone().with_node("n");
        let mut deferred = bound.clone();
        deferred.resize_deferred = true;
        let deferred_other = with(deferred.clone(), |pod| pod.key = recreated.key.clone());
        let decide = |live: Option<&PodSnapshot>, behavior| {
            let info = NominatingInfo::clear();
            let mut failed = failed_cycle(&queued_pod, &info, true);
            (failed.live, failed.behavior) = (live, behavior);
            failed.gates = failed.gates.with(Gate::InPlacePodVerticalScalingSchedulerPreemption);
            let failure = failed.decide();
            (failure.memory, failure.no_patch, failure.requeues)
        };
        let rows = [
            (None, Safe, (MemoryUpdate::Released, Some(NoPatchReason::PodGone), false)),
            (None, KubeScheduler, (MemoryUpdate::Released, None, false)),
            (Some(&bound), Safe, (MemoryUpdate::Released, Some(NoPatchReason::PodBound), false)),
            (Some(&bound), KubeScheduler, (MemoryUpdate::Released, None, false)),
            (Some(&recreated), KubeScheduler, (MemoryUpdate::Untouched, Some(NoPatchReason::PodRecreated), false)),
            (Some(&bound_other), Safe, (MemoryUpdate::Untouched, Some(NoPatchReason::PodRecreated), false)),
            (Some(&bound_other), KubeScheduler, (MemoryUpdate::Released, None, false)),
            (Some(&queued_pod), KubeScheduler, (MemoryUpdate::Renewed, None, true)),
            (Some(&deferred), KubeScheduler, (MemoryUpdate::Untouched, Some(NoPatchReason::DeferredResize), true)),
            (
                Some(&deferred_other),
                KubeScheduler,
                (MemoryUpdate::Untouched, Some(NoPatchReason::DeferredResize), false),
            ),
        ];
        for (live, late, expected) in rows {
            assert_eq!(decide(live, late), expected, "{live:?} {late:?}");
        }
    }

    #[test]
    fn a_deferred_resize_is_looked_at_only_with_its_gate() {
        let queued_pod = pod("p");
        let deferred = with(queued_pod.clone().with_node("n"), |pod| pod.resize_deferred = true);
        let info = NominatingInfo::clear();
        let mut failed = failed_cycle(&queued_pod, &info, true);
        (failed.live, failed.behavior) = (Some(&deferred), KubeScheduler);
        let off = failed.decide();
        assert_eq!(
            (off.memory, off.no_patch, off.requeues),
            (MemoryUpdate::Released, None, false),
            "a bound pod like any"
        );
        failed.gates = GateSet::NONE.with(Gate::InPlacePodVerticalScalingSchedulerPreemption);
        let on = failed.decide();
        assert_eq!(
            (on.memory, on.no_patch, on.requeues),
            (MemoryUpdate::Untouched, Some(NoPatchReason::DeferredResize), true)
        );
    }

    #[test]
    fn a_late_write_too_has_to_change_something() {
        let queued_pod = pod("p").with_nomination("a");
        let bound = queued_pod.clone().with_node("n");
        let rows = [
            (NominatingInfo::Noop, false, Some(NoPatchReason::ModeNoop)),
            (NominatingInfo::nominate("a"), false, Some(NoPatchReason::AlreadySet)),
            (NominatingInfo::clear(), false, None),
            (NominatingInfo::Noop, true, None),
        ];
        for (info, condition, expected) in rows {
            for live in [None, Some(&bound)] {
                let mut failed = failed_cycle(&queued_pod, &info, condition);
                (failed.live, failed.behavior) = (live, KubeScheduler);
                assert_eq!(failed.decide().no_patch, expected, "{info:?} {condition:?} {live:?}");
            }
        }
    }

    #[test]
    fn a_failure_writes_only_what_is_new() {
        let rows = [
            (NominatingInfo::Noop, Some("a"), false, Some(NoPatchReason::ModeNoop)),
            (NominatingInfo::Noop, Some("a"), true, None),
            (NominatingInfo::nominate("a"), Some("a"), false, Some(NoPatchReason::AlreadySet)),
            (NominatingInfo::nominate("a"), None, false, None),
            (NominatingInfo::clear(), None, false, Some(NoPatchReason::AlreadySet)),
            (NominatingInfo::clear(), Some("a"), false, None),
        ];
        let queued_pod = pod("p");
        for (info, known, condition, expected) in rows {
            let mut failed = failed_cycle(&queued_pod, &info, condition);
            failed.current_nnn = known;
            assert_eq!(failed.decide().no_patch, expected, "{info:?} over {known:?}");
        }
    }
}
