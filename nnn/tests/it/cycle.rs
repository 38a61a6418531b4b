use dra_attrs::{GateSet, Profile};
use nnn::behavior::{EvictionTiming, PatchAfterBind, RequeueSource};
use nnn::scheduling::{
    CycleStatusClass, FailedCycle, MemoryUpdate, NominatedNodeStatus, PodRequeueEvent, PostFilterStatus, QueueAction,
    clear_lower_nominations, combine_post_filters, decide_cycle, decide_requeue, may_preempt,
};
use nnn::{
    Behavior, Command, ConditionChange, CycleOutcome, NoPatchReason, NominatingInfo, Nomination, NominationGate,
    Nominator, Options, PatchDecision, PodSnapshot, PreemptionPolicy, TrackerInput,
};

use super::common::{fails, handle, kube_scheduler, nominated, pod, safe, tracker, version, with, written};

/// Lists each outcome with its class and the nominations of both profiles.
fn outcomes() -> Vec<(CycleOutcome, CycleStatusClass, NominatingInfo, NominatingInfo)> {
    use CycleOutcome as O;
    use CycleStatusClass as C;
    let (clear, keep, to) = (NominatingInfo::clear, || NominatingInfo::Noop, || NominatingInfo::nominate("n"));
    vec![
        (O::SnapshotFailed, C::Error, clear(), clear()),
        (O::NoNodes, C::UnschedulableAndUnresolvable, clear(), clear()),
        (O::Error, C::Error, clear(), clear()),
        (O::NoFitInPodGroup, C::Unschedulable, keep(), keep()),
        (O::NoFitNoPostFilter, C::Unschedulable, clear(), clear()),
        (nominated("n"), C::Unschedulable, to(), to()),
        (O::NoCandidates, C::Unschedulable, clear(), clear()),
        (O::PolicyNever, C::Unschedulable, clear(), keep()),
        (O::VictimsTerminating, C::Unschedulable, keep(), keep()),
        (O::ExtendersLeftNone, C::Unschedulable, clear(), keep()),
        (O::PostFilterError, C::Unschedulable, clear(), keep()),
        (O::AssumeFailed, C::Error, clear(), clear()),
        (O::ReserveFailed, C::Unschedulable, clear(), clear()),
        (O::PermitFailed, C::Unschedulable, clear(), clear()),
        (O::Scheduled { node: "n".to_owned() }, C::Success, keep(), keep()),
    ]
}

#[test]
fn what_each_result_says_about_the_nomination_in_both_texts() {
    // req: 5278-CLEAR-1, 5278-SET-7
    for (outcome, class, kep, shipped) in outcomes() {
        assert_eq!(outcome.status_class(), class, "{outcome:?}");
        assert_eq!(decide_cycle(&outcome, Profile::Kep), kep, "{outcome:?} by the KEP");
        assert_eq!(decide_cycle(&outcome, Profile::V1_37), shipped, "{outcome:?} in 1.37");
    }
}

#[test]
fn several_post_filters() {
    use PostFilterStatus as P;
    let (keep, clear, to) = (NominatingInfo::Noop, NominatingInfo::clear(), NominatingInfo::nominate("n"));
    let cases = [
        (vec![], keep.clone()),
        (vec![(P::Success, to.clone()), (P::Unschedulable, clear.clone())], to.clone()),
        (vec![(P::Unschedulable, clear.clone()), (P::UnschedulableAndUnresolvable, keep.clone())], keep.clone()),
        (vec![(P::Unschedulable, to.clone()), (P::Error, clear.clone())], keep.clone()),
        (vec![(P::Unschedulable, to), (P::Unschedulable, clear.clone())], clear.clone()),
        (vec![(P::Unschedulable, clear.clone()), (P::Unschedulable, keep)], clear),
    ];
    for (results, expected) in cases {
        assert_eq!(combine_post_filters(&results), expected, "{results:?}");
    }
}

#[test]
fn who_may_preempt() {
    let mut never = pod("never", 10).with_nomination("n");
    never.preemption_policy = PreemptionPolicy::Never;
    assert_eq!(may_preempt(&never, NominatedNodeStatus::Unresolvable, &[]), Err(CycleOutcome::PolicyNever));

    let preemptor = pod("p", 10).with_nomination("n");
    let victim = |priority: i32, deleting: bool, preempted: bool| {
        let mut victim = pod("v", priority).with_node("n");
        (victim.deleting, victim.preempted) = (deleting, preempted);
        vec![victim]
    };
    let waiting = Err(CycleOutcome::VictimsTerminating);
    for (nominated, on_node, expected) in [
        (NominatedNodeStatus::Unschedulable, victim(9, true, true), waiting),
        (NominatedNodeStatus::Unschedulable, victim(10, true, true), Ok(())),
        (NominatedNodeStatus::Unschedulable, victim(9, true, false), Ok(())),
        (NominatedNodeStatus::Unschedulable, victim(9, false, true), Ok(())),
        (NominatedNodeStatus::Unresolvable, victim(9, true, true), Ok(())),
        (NominatedNodeStatus::Absent, victim(9, true, true), Ok(())),
    ] {
        assert_eq!(may_preempt(&preemptor, nominated, &on_node), expected, "{nominated:?} {on_node:?}");
    }
    let unnominated = pod("p", 10);
    assert_eq!(may_preempt(&unnominated, NominatedNodeStatus::Unschedulable, &victim(9, true, true)), Ok(()));
}

#[test]
fn a_preemption_clears_strictly_lower_nominations_of_its_node_alone() {
    let mut nominator = Nominator::new(Behavior::SAFE);
    for (name, priority, node) in [("low", 1, "n"), ("equal", 5, "n"), ("high", 9, "n"), ("elsewhere", 1, "m")] {
        nominator.insert(Nomination::new(&pod(name, priority), node));
    }
    let cleared = clear_lower_nominations(&nominator, 5, "n", EvictionTiming::Sync);
    assert_eq!(cleared, [Command::ClearNnn { pod: pod("low", 1).key }]);
    assert_eq!(clear_lower_nominations(&nominator, 5, "n", EvictionTiming::Async), cleared);
    assert_eq!(clear_lower_nominations(&nominator, 5, "n", EvictionTiming::AsyncAllTerminating), []);
    assert_eq!(nominator.len(), 4, "memory waits for the update");
}

#[test]
fn a_preemptor_that_is_gone_has_chosen_its_victims_all_the_same() {
    let (lower, higher) = (pod("lower", 1).with_nomination("n"), pod("higher", 9));
    let mut it = tracker(safe(), &[lower.clone(), higher.clone()]);
    handle(&mut it, TrackerInput::PodDeleted { uid: "higher".to_owned() });
    let cleared = Command::ClearNnn { pod: lower.key };
    assert!(handle(&mut it, fails(&higher, nominated("n"))).commands.contains(&cleared));
    assert_eq!(it.nominator().unseen_write("lower"), Some(None), "the clearing is on its way");
}

#[test]
fn who_loses_a_nomination_in_its_own_cycle_wakes_others_once() {
    let hinted = version(pod("p", 5).with_nomination("x"), 1);
    let wakes = |options, outcome: CycleOutcome, then: Option<&str>| {
        let mut it = tracker(options, std::slice::from_ref(&hinted));
        let shown = with(version(pod("p", 5), 2), |pod| pod.nnn = then.map(str::to_owned));
        let inputs = [
            fails(&hinted, outcome),
            TrackerInput::PatchAnswered { uid: "p".to_owned(), version: Some(2) },
            TrackerInput::PodObserved(shown),
        ];
        inputs.map(|input| {
            let commands = handle(&mut it, input).commands;
            commands
                .iter()
                .filter(|command| matches!(command, Command::RequeueLowerOrEqual { priority: 5, .. }))
                .count()
        })
    };
    for (outcome, then, lost) in [
        (CycleOutcome::NoCandidates, None, 1),
        (nominated("y"), Some("y"), 1),
        (nominated("x"), Some("x"), 0),
        (CycleOutcome::VictimsTerminating, Some("x"), 0),
    ] {
        assert_eq!(wakes(safe(), outcome.clone(), then), [lost, 0, 0], "{outcome:?}");
        assert_eq!(wakes(kube_scheduler(), outcome.clone(), then), [0, 0, lost], "{outcome:?}");
    }
}

#[test]
fn the_failure_handler() {
    let queued_pod = pod("p", 0);
    let recreated = pod("p", 0).with_uid("another");
    let bound = queued_pod.clone().with_node("n");
    let bound_other = recreated.clone().with_node("n");
    let mut deferred = bound.clone();
    deferred.resize_deferred = true;
    let deferred_other = with(deferred.clone(), |pod| pod.key = recreated.key.clone());
    let decide = |live: Option<&PodSnapshot>, patch_after_bind| {
        let info = NominatingInfo::clear();
        let mut failed = FailedCycle::new(&queued_pod, &info, ConditionChange::Changed);
        (failed.live, failed.patch_after_bind) = (live, patch_after_bind);
        failed.gates = failed.gates.with(NominationGate::ResizePreemption);
        let failure = failed.decide();
        (failure.memory, failure.patch, failure.queue)
    };
    use PatchAfterBind::{Sent, Suppressed};
    let rows = [
        (None, Suppressed, (MemoryUpdate::Released, PatchDecision::None(NoPatchReason::PodGone), QueueAction::Done)),
        (None, Sent, (MemoryUpdate::Released, PatchDecision::Needed, QueueAction::Done)),
        (
            Some(&bound),
            Suppressed,
            (MemoryUpdate::Released, PatchDecision::None(NoPatchReason::PodBound), QueueAction::Done),
        ),
        (Some(&bound), Sent, (MemoryUpdate::Released, PatchDecision::Needed, QueueAction::Done)),
        (
            Some(&recreated),
            Sent,
            (MemoryUpdate::Untouched, PatchDecision::None(NoPatchReason::PodRecreated), QueueAction::Done),
        ),
        (
            Some(&bound_other),
            Suppressed,
            (MemoryUpdate::Untouched, PatchDecision::None(NoPatchReason::PodRecreated), QueueAction::Done),
        ),
        (Some(&bound_other), Sent, (MemoryUpdate::Released, PatchDecision::Needed, QueueAction::Done)),
        (Some(&queued_pod), Sent, (MemoryUpdate::Renewed, PatchDecision::Needed, QueueAction::Requeue)),
        (
            Some(&deferred),
            Sent,
            (MemoryUpdate::Untouched, PatchDecision::None(NoPatchReason::DeferredResize), QueueAction::Requeue),
        ),
        (
            Some(&deferred_other),
            Sent,
            (MemoryUpdate::Untouched, PatchDecision::None(NoPatchReason::DeferredResize), QueueAction::Done),
        ),
    ];
    for (live, late, expected) in rows {
        assert_eq!(decide(live, late), expected, "{live:?} {late:?}");
    }
}

#[test]
fn a_deferred_resize_is_looked_at_only_with_its_gate() {
    let queued_pod = pod("p", 0);
    let deferred = with(queued_pod.clone().with_node("n"), |pod| pod.resize_deferred = true);
    let info = NominatingInfo::clear();
    let mut failed = FailedCycle::new(&queued_pod, &info, ConditionChange::Changed);
    (failed.live, failed.patch_after_bind) = (Some(&deferred), PatchAfterBind::Sent);
    let off = failed.decide();
    assert_eq!(
        (off.memory, off.patch, off.queue),
        (MemoryUpdate::Released, PatchDecision::Needed, QueueAction::Done),
        "a bound pod like any"
    );
    failed.gates = GateSet::NONE.with(NominationGate::ResizePreemption);
    let on = failed.decide();
    assert_eq!(
        (on.memory, on.patch, on.queue),
        (MemoryUpdate::Untouched, PatchDecision::None(NoPatchReason::DeferredResize), QueueAction::Requeue)
    );
}

#[test]
fn a_late_write_too_has_to_change_something() {
    let queued_pod = pod("p", 0).with_nomination("a");
    let bound = queued_pod.clone().with_node("n");
    let rows = [
        (NominatingInfo::Noop, ConditionChange::Same, PatchDecision::None(NoPatchReason::ModeNoop)),
        (NominatingInfo::nominate("a"), ConditionChange::Same, PatchDecision::None(NoPatchReason::AlreadySet)),
        (NominatingInfo::clear(), ConditionChange::Same, PatchDecision::Needed),
        (NominatingInfo::Noop, ConditionChange::Changed, PatchDecision::Needed),
    ];
    for (info, condition, expected) in rows {
        for live in [None, Some(&bound)] {
            let mut failed = FailedCycle::new(&queued_pod, &info, condition);
            (failed.live, failed.patch_after_bind) = (live, PatchAfterBind::Sent);
            assert_eq!(failed.decide().patch, expected, "{info:?} {condition:?} {live:?}");
        }
    }
}

#[test]
fn a_failure_writes_only_what_is_new() {
    let rows = [
        (NominatingInfo::Noop, Some("a"), ConditionChange::Same, PatchDecision::None(NoPatchReason::ModeNoop)),
        (NominatingInfo::Noop, Some("a"), ConditionChange::Changed, PatchDecision::Needed),
        (
            NominatingInfo::nominate("a"),
            Some("a"),
            ConditionChange::Same,
            PatchDecision::None(NoPatchReason::AlreadySet),
        ),
        (NominatingInfo::nominate("a"), None, ConditionChange::Same, PatchDecision::Needed),
        (NominatingInfo::clear(), None, ConditionChange::Same, PatchDecision::None(NoPatchReason::AlreadySet)),
        (NominatingInfo::clear(), Some("a"), ConditionChange::Same, PatchDecision::Needed),
    ];
    let queued_pod = pod("p", 0);
    for (info, known, condition, expected) in rows {
        let mut failed = FailedCycle::new(&queued_pod, &info, condition);
        failed.current_nnn = known;
        assert_eq!(failed.decide().patch, expected, "{info:?} over {known:?}");
    }
}

#[test]
fn who_is_woken() {
    let (before, after, moved) = (pod("p", 7).with_nomination("a"), pod("p", 7), pod("p", 7).with_nomination("b"));
    // Who loses a nomination is woken with the others, who is gone is not.
    let wake =
        |except: Option<&str>| Some(Command::RequeueLowerOrEqual { priority: 7, except: except.map(str::to_owned) });
    let (lost, gone) = (wake(None), wake(Some("p")));
    let updated = |old, new, before, after| PodRequeueEvent::Updated { old, new, before, after };
    let rows = [
        // The status says so, and so does memory.
        (updated(&before, &after, Some("a"), None), lost.clone(), lost.clone()),
        (updated(&before, &moved, Some("a"), Some("b")), lost.clone(), lost.clone()),
        // The nomination was never written.
        (updated(&after, &after, Some("a"), None), lost, None),
        (updated(&after, &before, None, Some("a")), None, None),
        (updated(&before, &before, Some("a"), Some("a")), None, None),
        // MemoryUpdate goes first, the status will follow.
        (PodRequeueEvent::Failed { pod: &before, before: Some("a"), after: None }, gone.clone(), None),
        (PodRequeueEvent::Failed { pod: &before, before: Some("a"), after: Some("b") }, gone.clone(), None),
        (PodRequeueEvent::Failed { pod: &before, before: Some("a"), after: Some("a") }, None, None),
        (PodRequeueEvent::Failed { pod: &after, before: None, after: Some("a") }, None, None),
        (PodRequeueEvent::Deleted { pod: &before, before: Some("a") }, gone.clone(), gone.clone()),
        (PodRequeueEvent::Deleted { pod: &after, before: Some("a") }, gone, None),
        (PodRequeueEvent::Deleted { pod: &after, before: None }, None, None),
        (
            PodRequeueEvent::AssumedDeleted,
            Some(Command::RequeueAll { except: None }),
            Some(Command::RequeueAll { except: None }),
        ),
    ];
    for (event, by_memory, by_status) in rows {
        assert_eq!(decide_requeue(event, RequeueSource::Memory), by_memory, "{event:?}");
        assert_eq!(decide_requeue(event, RequeueSource::Status), by_status, "{event:?}");
    }
}

#[test]
fn the_scheduler_follows_its_profile() {
    // req: 5278-CLEAR-1
    for outcome in [CycleOutcome::PolicyNever, CycleOutcome::ExtendersLeftNone, CycleOutcome::PostFilterError] {
        for (profile, cleared, left) in [(Profile::Kep, vec![("p", None)], None), (Profile::V1_37, vec![], Some("x"))] {
            let hinted = pod("p", 0).with_nomination("x");
            let mut it = tracker(Options::new(profile, Behavior::SAFE), std::slice::from_ref(&hinted));
            let output = handle(&mut it, fails(&hinted, outcome.clone()));
            assert_eq!(written(&output), cleared, "{outcome:?} {profile}");
            assert_eq!(it.nominator().nominated_node("p"), left, "{outcome:?} {profile}");
            // The queue comes last.
            assert_eq!(output.commands.last(), Some(&Command::Requeue { pod: hinted.key }));
        }
    }
}
