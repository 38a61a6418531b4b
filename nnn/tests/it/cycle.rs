use nnn::command::{Command, NoPatch};
use nnn::gates::{Gate, Gates};
use nnn::nominating::NominatingInfo;
use nnn::nominator::{Nomination, Nominator};
use nnn::options::Options;
use nnn::patch::{Change, Patch};
use nnn::pod::{PodView, PreemptionPolicy};
use nnn::profile::Profile;
use nnn::scheduler::Input;
use nnn::scheduling::cycle::{CycleOutcome, PostFilterStatus, StatusClass, combine_post_filters, decide_cycle};
use nnn::scheduling::failure::{FailedCycle, LatePatch, Memory, Queue};
use nnn::scheduling::preemption::{Eviction, NominatedNode, clear_lower, may_preempt};
use nnn::scheduling::wake::{PodEvent, WakeBy, decide_wake};

use super::common::{fails, handle, nominated, pod, scheduler, version, with, written};

/// Outcome, class, and what the KEP and 1.37 say.
fn outcomes() -> Vec<(CycleOutcome, StatusClass, NominatingInfo, NominatingInfo)> {
    use CycleOutcome as O;
    use StatusClass as C;
    let (clear, keep, to) = (NominatingInfo::clear, || NominatingInfo::Noop, || NominatingInfo::to("n"));
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
    let (keep, clear, to) = (NominatingInfo::Noop, NominatingInfo::clear(), NominatingInfo::to("n"));
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
    let mut never = pod("never", 10).nominated_to("n");
    never.preemption_policy = PreemptionPolicy::Never;
    assert_eq!(may_preempt(&never, NominatedNode::Unresolvable, &[]), Err(CycleOutcome::PolicyNever));

    let preemptor = pod("p", 10).nominated_to("n");
    let victim = |priority: i32, deleting: bool, preempted: bool| {
        let mut victim = pod("v", priority).bound_to("n");
        (victim.deleting, victim.preempted) = (deleting, preempted);
        vec![victim]
    };
    let waiting = Err(CycleOutcome::VictimsTerminating);
    for (nominated, on_node, expected) in [
        (NominatedNode::Unschedulable, victim(9, true, true), waiting),
        (NominatedNode::Unschedulable, victim(10, true, true), Ok(())),
        (NominatedNode::Unschedulable, victim(9, true, false), Ok(())),
        (NominatedNode::Unschedulable, victim(9, false, true), Ok(())),
        (NominatedNode::Unresolvable, victim(9, true, true), Ok(())),
        (NominatedNode::Absent, victim(9, true, true), Ok(())),
    ] {
        assert_eq!(may_preempt(&preemptor, nominated, &on_node), expected, "{nominated:?} {on_node:?}");
    }
    let unnominated = pod("p", 10);
    assert_eq!(may_preempt(&unnominated, NominatedNode::Unschedulable, &victim(9, true, true)), Ok(()));
}

#[test]
fn a_preemption_clears_strictly_lower_nominations_of_its_node_alone() {
    let mut nominator = Nominator::default();
    for (name, priority, node) in [("low", 1, "n"), ("equal", 5, "n"), ("high", 9, "n"), ("elsewhere", 1, "m")] {
        nominator.insert(Nomination::new(&pod(name, priority), node));
    }
    let cleared = clear_lower(&nominator, 5, "n", Eviction::Sync);
    assert_eq!(cleared, [Command::ClearNnn { pod: pod("low", 1).key }]);
    assert_eq!(clear_lower(&nominator, 5, "n", Eviction::Async), cleared);
    assert_eq!(clear_lower(&nominator, 5, "n", Eviction::AsyncAllTerminating), []);
    assert_eq!(nominator.len(), 4, "memory waits for the update");
}

#[test]
fn a_preemptor_that_is_gone_has_chosen_its_victims_all_the_same() {
    let (lower, higher) = (pod("lower", 1).nominated_to("n"), pod("higher", 9));
    let mut it = scheduler(Options::default(), &[lower.clone(), higher.clone()]);
    handle(&mut it, Input::PodDeleted { uid: "higher".to_owned() });
    let cleared = Command::ClearNnn { pod: lower.key };
    assert!(handle(&mut it, fails(&higher, nominated("n"))).commands.contains(&cleared));
}

#[test]
fn who_loses_a_nomination_in_its_own_cycle_wakes_others_once() {
    let hinted = version(pod("p", 5).nominated_to("x"), 1);
    let wakes = |options, outcome: CycleOutcome, then: Option<&str>| {
        let mut it = scheduler(options, std::slice::from_ref(&hinted));
        let shown = with(version(pod("p", 5), 2), |pod| pod.nnn = then.map(str::to_owned));
        let inputs = [
            fails(&hinted, outcome),
            Input::PatchAnswered { uid: "p".to_owned(), version: Some(2) },
            Input::PodObserved(shown),
        ];
        inputs.map(|input| {
            let commands = handle(&mut it, input).commands;
            commands.iter().filter(|command| matches!(command, Command::WakeLowerOrEqual { priority: 5, .. })).count()
        })
    };
    for (outcome, then, lost) in [
        (CycleOutcome::NoCandidates, None, 1),
        (nominated("y"), Some("y"), 1),
        (nominated("x"), Some("x"), 0),
        (CycleOutcome::VictimsTerminating, Some("x"), 0),
    ] {
        assert_eq!(wakes(Options::default(), outcome.clone(), then), [lost, 0, 0], "{outcome:?}");
        assert_eq!(wakes(Options::upstream(), outcome.clone(), then), [0, 0, lost], "{outcome:?}");
    }
}

#[test]
fn the_failure_handler() {
    let popped = pod("p", 0);
    let recreated = pod("p", 0).with_uid("another");
    let bound = popped.clone().bound_to("n");
    let bound_other = recreated.clone().bound_to("n");
    let mut deferred = bound.clone();
    deferred.resize_deferred = true;
    let deferred_other = with(deferred.clone(), |pod| pod.key = recreated.key.clone());
    let decide = |live: Option<&PodView>, late_patch| {
        let info = NominatingInfo::clear();
        let mut failed = FailedCycle::new(&popped, &info, Change::Changed);
        (failed.live, failed.late_patch) = (live, late_patch);
        failed.gates = failed.gates.with(Gate::ResizePreemption);
        let failure = failed.decide();
        (failure.memory, failure.patch, failure.queue)
    };
    use LatePatch::{Sent, Suppressed};
    let rows = [
        (None, Suppressed, (Memory::Released, Patch::None(NoPatch::PodGone), Queue::Done)),
        (None, Sent, (Memory::Released, Patch::Needed, Queue::Done)),
        (Some(&bound), Suppressed, (Memory::Released, Patch::None(NoPatch::PodBound), Queue::Done)),
        (Some(&bound), Sent, (Memory::Released, Patch::Needed, Queue::Done)),
        (Some(&recreated), Sent, (Memory::Untouched, Patch::None(NoPatch::PodRecreated), Queue::Done)),
        (Some(&bound_other), Suppressed, (Memory::Untouched, Patch::None(NoPatch::PodRecreated), Queue::Done)),
        (Some(&bound_other), Sent, (Memory::Released, Patch::Needed, Queue::Done)),
        (Some(&popped), Sent, (Memory::Renewed, Patch::Needed, Queue::Requeue)),
        (Some(&deferred), Sent, (Memory::Untouched, Patch::None(NoPatch::DeferredResize), Queue::Requeue)),
        (Some(&deferred_other), Sent, (Memory::Untouched, Patch::None(NoPatch::DeferredResize), Queue::Done)),
    ];
    for (live, late, expected) in rows {
        assert_eq!(decide(live, late), expected, "{live:?} {late:?}");
    }
}

#[test]
fn a_deferred_resize_is_looked_at_only_with_its_gate() {
    let popped = pod("p", 0);
    let deferred = with(popped.clone().bound_to("n"), |pod| pod.resize_deferred = true);
    let info = NominatingInfo::clear();
    let mut failed = FailedCycle::new(&popped, &info, Change::Changed);
    (failed.live, failed.late_patch) = (Some(&deferred), LatePatch::Sent);
    let off = failed.decide();
    assert_eq!(
        (off.memory, off.patch, off.queue),
        (Memory::Released, Patch::Needed, Queue::Done),
        "a bound pod like any"
    );
    failed.gates = Gates::NONE.with(Gate::ResizePreemption);
    let on = failed.decide();
    assert_eq!(
        (on.memory, on.patch, on.queue),
        (Memory::Untouched, Patch::None(NoPatch::DeferredResize), Queue::Requeue)
    );
}

#[test]
fn a_late_write_too_has_to_change_something() {
    let popped = pod("p", 0).nominated_to("a");
    let bound = popped.clone().bound_to("n");
    let rows = [
        (NominatingInfo::Noop, Change::Same, Patch::None(NoPatch::ModeNoop)),
        (NominatingInfo::to("a"), Change::Same, Patch::None(NoPatch::AlreadySet)),
        (NominatingInfo::clear(), Change::Same, Patch::Needed),
        (NominatingInfo::Noop, Change::Changed, Patch::Needed),
    ];
    for (info, condition, expected) in rows {
        for live in [None, Some(&bound)] {
            let mut failed = FailedCycle::new(&popped, &info, condition);
            (failed.live, failed.late_patch) = (live, LatePatch::Sent);
            assert_eq!(failed.decide().patch, expected, "{info:?} {condition:?} {live:?}");
        }
    }
}

#[test]
fn a_failure_writes_only_what_is_new() {
    let rows = [
        (NominatingInfo::Noop, Some("a"), Change::Same, Patch::None(NoPatch::ModeNoop)),
        (NominatingInfo::Noop, Some("a"), Change::Changed, Patch::Needed),
        (NominatingInfo::to("a"), Some("a"), Change::Same, Patch::None(NoPatch::AlreadySet)),
        (NominatingInfo::to("a"), None, Change::Same, Patch::Needed),
        (NominatingInfo::clear(), None, Change::Same, Patch::None(NoPatch::AlreadySet)),
        (NominatingInfo::clear(), Some("a"), Change::Same, Patch::Needed),
    ];
    let popped = pod("p", 0);
    for (info, known, condition, expected) in rows {
        let mut failed = FailedCycle::new(&popped, &info, condition);
        failed.known_nnn = known;
        assert_eq!(failed.decide().patch, expected, "{info:?} over {known:?}");
    }
}

#[test]
fn who_is_woken() {
    let (before, after, moved) = (pod("p", 7).nominated_to("a"), pod("p", 7), pod("p", 7).nominated_to("b"));
    // Who loses a nomination is woken with the others, who is gone is not.
    let wake =
        |except: Option<&str>| Some(Command::WakeLowerOrEqual { priority: 7, except: except.map(str::to_owned) });
    let (lost, gone) = (wake(None), wake(Some("p")));
    let updated = |old, new, before, after| PodEvent::Updated { old, new, before, after };
    let rows = [
        // The status says so, and so does memory.
        (updated(&before, &after, Some("a"), None), lost.clone(), lost.clone()),
        (updated(&before, &moved, Some("a"), Some("b")), lost.clone(), lost.clone()),
        // The nomination was never written.
        (updated(&after, &after, Some("a"), None), lost, None),
        (updated(&after, &before, None, Some("a")), None, None),
        (updated(&before, &before, Some("a"), Some("a")), None, None),
        // Memory goes first, the status will follow.
        (PodEvent::Failed { pod: &before, before: Some("a"), after: None }, gone.clone(), None),
        (PodEvent::Failed { pod: &before, before: Some("a"), after: Some("b") }, gone.clone(), None),
        (PodEvent::Failed { pod: &before, before: Some("a"), after: Some("a") }, None, None),
        (PodEvent::Failed { pod: &after, before: None, after: Some("a") }, None, None),
        (PodEvent::Deleted { pod: &before, before: Some("a") }, gone.clone(), gone.clone()),
        (PodEvent::Deleted { pod: &after, before: Some("a") }, gone, None),
        (PodEvent::Deleted { pod: &after, before: None }, None, None),
        (PodEvent::AssumedDeleted, Some(Command::WakeAll { except: None }), Some(Command::WakeAll { except: None })),
    ];
    for (event, by_memory, by_status) in rows {
        assert_eq!(decide_wake(event, WakeBy::Memory), by_memory, "{event:?}");
        assert_eq!(decide_wake(event, WakeBy::Status), by_status, "{event:?}");
    }
}

#[test]
fn the_scheduler_follows_its_profile() {
    // req: 5278-CLEAR-1
    for outcome in [CycleOutcome::PolicyNever, CycleOutcome::ExtendersLeftNone, CycleOutcome::PostFilterError] {
        for (profile, cleared, left) in [(Profile::Kep, vec![("p", None)], None), (Profile::V1_37, vec![], Some("x"))] {
            let hinted = pod("p", 0).nominated_to("x");
            let mut it = scheduler(Options::default().with_profile(profile), std::slice::from_ref(&hinted));
            let reaction = handle(&mut it, fails(&hinted, outcome.clone()));
            assert_eq!(written(&reaction), cleared, "{outcome:?} {profile}");
            assert_eq!(it.nominator().node_of("p"), left, "{outcome:?} {profile}");
            // The queue comes last.
            assert_eq!(reaction.commands.last(), Some(&Command::Requeue { pod: hinted.key }));
        }
    }
}
