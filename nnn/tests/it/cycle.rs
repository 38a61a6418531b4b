use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::scheduling::{NominatedNodeStatus, VictimDevices};
use nnn::{Behavior, Command, CycleOutcome, NominatingInfo, NominationOptions, TrackerInput};

use super::common::{OnNode, fails, handle, kube_scheduler, nominated, pod, safe, tracker, version, with, written};

/// Lists each outcome with the nominations of both profiles.
fn outcomes() -> Vec<(CycleOutcome, NominatingInfo, NominatingInfo)> {
    use CycleOutcome as O;
    let (clear, keep, to) = (NominatingInfo::clear, || NominatingInfo::Noop, || NominatingInfo::nominate("n"));
    vec![
        (O::SnapshotFailed, clear(), clear()),
        (O::NoNodes, clear(), clear()),
        (O::Error, clear(), clear()),
        (O::NoFitInPodGroup, keep(), keep()),
        (O::NoFitNoPostFilter, clear(), clear()),
        (nominated("n"), to(), to()),
        (O::NoCandidates, clear(), clear()),
        (O::PolicyNever, clear(), keep()),
        (O::VictimsTerminating, keep(), keep()),
        (O::DevicesReclaimed, keep(), keep()),
        (O::ExtendersLeftNone, clear(), keep()),
        (O::PostFilterError, clear(), keep()),
        (O::AssumeFailed, clear(), clear()),
        (O::ReserveFailed, clear(), clear()),
        (O::PermitFailed, clear(), clear()),
        (O::Scheduled { node: "n".to_owned() }, keep(), keep()),
    ]
}

#[test]
fn what_each_result_says_about_the_nomination_in_both_texts() {
    // req: 5278-CLEAR-1, 5278-SET-7
    for (outcome, kep, shipped) in outcomes() {
        assert_eq!(outcome.nominating_info(Profile::Kep), kep, "{outcome:?} by the KEP");
        assert_eq!(outcome.nominating_info(Profile::V1_37), shipped, "{outcome:?} in 1.37");
    }
}

#[test]
fn who_may_preempt() {
    let mut never = pod("never", 10).with_nomination("n");
    never.never_preempts = true;
    let refusal = never.preemption_refusal(NominatedNodeStatus::Unresolvable, &[], VictimDevices::Reclaimed);
    assert_eq!(refusal, Some(CycleOutcome::PolicyNever));

    let preemptor = pod("p", 10).with_nomination("n");
    let victim = |priority: i32, deleting: bool, preempted: bool| {
        let mut victim = pod("v", priority).with_node("n");
        (victim.deleting, victim.preempted) = (deleting, preempted);
        vec![victim]
    };
    let waiting = Some(CycleOutcome::VictimsTerminating);
    let reclaimed = Some(CycleOutcome::DevicesReclaimed);
    for (nominated, on_node, free, held) in [
        (NominatedNodeStatus::Unschedulable, victim(9, true, true), waiting.clone(), waiting),
        (NominatedNodeStatus::Unschedulable, victim(10, true, true), None, reclaimed.clone()),
        (NominatedNodeStatus::Unschedulable, victim(9, true, false), None, reclaimed.clone()),
        (NominatedNodeStatus::Unschedulable, victim(9, false, true), None, reclaimed.clone()),
        (NominatedNodeStatus::Unschedulable, vec![], None, reclaimed),
        (NominatedNodeStatus::Unresolvable, victim(9, true, true), None, None),
        (NominatedNodeStatus::Absent, victim(9, true, true), None, None),
    ] {
        for (devices, expected) in [(VictimDevices::Free, free), (VictimDevices::Reclaimed, held)] {
            let refusal = preemptor.preemption_refusal(nominated, &on_node, devices);
            assert_eq!(refusal, expected, "{nominated:?} {on_node:?} {devices:?}");
        }
    }
    let unnominated = pod("p", 10);
    let refusal =
        |on_node: &[_], devices| unnominated.preemption_refusal(NominatedNodeStatus::Unschedulable, on_node, devices);
    assert_eq!(refusal(&victim(9, true, true), VictimDevices::Free), None);
    assert_eq!(refusal(&[], VictimDevices::Reclaimed), None);
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
fn the_scheduler_follows_its_profile() {
    // req: 5278-CLEAR-1
    for outcome in [CycleOutcome::PolicyNever, CycleOutcome::ExtendersLeftNone, CycleOutcome::PostFilterError] {
        for (profile, cleared, left) in [(Profile::Kep, vec![("p", None)], None), (Profile::V1_37, vec![], Some("x"))] {
            let hinted = pod("p", 0).with_nomination("x");
            let mut it = tracker(NominationOptions::new(profile, Behavior::Safe), std::slice::from_ref(&hinted));
            let output = handle(&mut it, fails(&hinted, outcome.clone()));
            assert_eq!(written(&output), cleared, "{outcome:?} {profile}");
            assert_eq!(it.nominator().nominated_node("p"), left, "{outcome:?} {profile}");
            // The queue comes last.
            assert_eq!(output.commands.last(), Some(&Command::Requeue { pod: hinted.key }));
        }
    }
}

#[test]
fn the_first_release_with_the_gate_keeps_a_nomination_after_failures() {
    let old = |gates| Component::new(Profile::V1_34, gates);
    let (on, off) = (old(GateSet::NONE.with(Gate::NominatedNodeNameForExpectation)), old(GateSet::NONE));
    for outcome in
        [CycleOutcome::Error, CycleOutcome::AssumeFailed, CycleOutcome::ReserveFailed, CycleOutcome::PermitFailed]
    {
        assert_eq!(outcome.nominating_info(on), NominatingInfo::Noop, "{outcome:?}");
        assert_eq!(outcome.nominating_info(off), NominatingInfo::clear(), "{outcome:?}");
        assert_eq!(outcome.nominating_info(Profile::V1_35), NominatingInfo::clear(), "{outcome:?}");
    }
    assert_eq!(CycleOutcome::NoNodes.nominating_info(on), NominatingInfo::clear(), "no node fits");
}
