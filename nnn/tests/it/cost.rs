use std::time::Duration;

use nnn::binding::start::{PermitWait, PreBindWork, PreFlight};
use nnn::command::{Command, NoPatch};
use nnn::cost::{Breach, Calls, Measured, Objectives, extra_patches};
use nnn::gates::{Gate, Gates};
use nnn::nominating::NominatingInfo;
use nnn::options::Options;
use nnn::patch::{PatchQueue, Status, StatusPatch};
use nnn::pod::ScheduledCondition;
use nnn::scheduler::Input;

use super::common::{handle, placed, pod, scheduler, unschedulable};

/// The calls of one life: observed, placed, bound.
fn calls(gates: Gates, nnn: &str, pre_flight: PreFlight, permit: PermitWait) -> Calls {
    let waiting = pod("p", 0).nominated_to(nnn);
    let mut memory = scheduler(Options::default().with_gates(gates), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "n").pre_flights(vec![pre_flight]).permit(permit);
    let mut commands = handle(&mut memory, Input::CycleSucceeded(placed)).commands;
    commands.extend(handle(&mut memory, Input::Bound { pod: waiting.key }).commands);
    commands.iter().collect()
}

#[test]
fn one_more_patch_for_pods_with_work_alone() {
    // req: 5278-COST-1
    let on = Gates::default();
    let off = on.without(Gate::Expectation);
    let rows = [
        (on, "", PreFlight::Skip, PermitWait::None, 0),
        (on, "", PreFlight::Success, PermitWait::None, 1),
        (on, "", PreFlight::Skip, PermitWait::Waiting, 1),
        (on, "n", PreFlight::Success, PermitWait::None, 0),
        (on, "m", PreFlight::Success, PermitWait::None, 1),
        (on, "m", PreFlight::Skip, PermitWait::None, 0),
        (off, "", PreFlight::Success, PermitWait::Waiting, 0),
    ];
    for (gates, nnn, pre_flight, permit, expected) in rows {
        let work = if pre_flight == PreFlight::Success { PreBindWork::Some } else { PreBindWork::None };
        let nomination = Some(nnn).filter(|nnn| !nnn.is_empty());
        assert_eq!(extra_patches(gates, work, permit, nomination, "n"), expected);
        assert_eq!(calls(gates, nnn, pre_flight, permit).patches, expected, "{gates:?} {nnn} {permit:?}");
    }
}

#[test]
fn writes_that_wait_become_one_and_a_binding_makes_them_needless() {
    let nominate = |node: &str| StatusPatch::nomination(NominatingInfo::to(node));
    let mut queue = PatchQueue::default();
    queue.push("p", nominate("a"));
    queue.push("p", StatusPatch::condition("PodScheduled", ScheduledCondition::default()));
    queue.push("p", nominate("b"));
    queue.push("q", nominate("a"));
    assert_eq!(queue.len(), 2);

    let sent = queue.pop("p", &Status::default()).unwrap();
    assert_eq!((sent.nnn, sent.conditions.len()), (NominatingInfo::to("b"), 1));
    assert_eq!(queue.pop("p", &Status::default()), None);

    let mut status = Status::default();
    nominate("a").apply(&mut status);
    assert_eq!(queue.pop("q", &status), None, "it stands there already");

    queue.push("p", nominate("a"));
    assert_eq!(queue.push_binding("p"), Some(NoPatch::PatchSuperseded));
    assert_eq!(queue.push_binding("p"), None);
    assert!(queue.is_empty());
}

#[test]
fn at_worst_two_calls_instead_of_one() {
    // req: 5278-COST-3
    let on = Gates::default();
    assert_eq!(calls(on, "", PreFlight::Success, PermitWait::None).total(), 2);
    assert_eq!(calls(on, "", PreFlight::Skip, PermitWait::None).total(), 1);
    assert_eq!(calls(Gates::NONE, "", PreFlight::Success, PermitWait::None).total(), 1);
}

#[test]
fn a_failure_costs_one_patch_and_the_same_failure_again_none() {
    let waiting = pod("p", 0).nominated_to("x");
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let outcome = nnn::scheduling::cycle::CycleOutcome::NoCandidates;
    let fails = || Input::CycleFailed { popped: waiting.clone(), outcome: outcome.clone(), condition: unschedulable() };
    let first = handle(&mut memory, fails()).commands;
    assert!(matches!(
        &first[..],
        [
            Command::Release { .. },
            Command::WakeLowerOrEqual { .. },
            Command::PatchConditionAndNnn { .. },
            Command::Requeue { .. }
        ]
    ));
    let again: Calls = handle(&mut memory, fails()).commands.iter().collect();
    assert_eq!((first.iter().collect::<Calls>().patches, again.total()), (1, 0));
}

#[test]
fn objectives_with_adjustable_limits() {
    // req: 5278-METRIC-1
    let objectives = Objectives::default();
    let second = Duration::from_secs(1);
    let missed = |attempts, algorithm| objectives.missed(Measured::new(attempts, second, algorithm));
    assert_eq!(missed(100, second), [], "exactly at both limits");
    assert_eq!(missed(99, Duration::ZERO), [Breach::Throughput]);
    assert_eq!(missed(100, second + Duration::from_nanos(1)), [Breach::AlgorithmDuration]);
    assert_eq!(missed(50, second), [Breach::Throughput, Breach::AlgorithmDuration]);
    let mut generous = objectives;
    (generous.attempts_per_second, generous.mean_algorithm_duration) = (10, second);
    assert_eq!(generous.missed(Measured::new(50, second, second)), []);
    assert_eq!(objectives.missed(Measured::default()), [], "nothing was measured");
}

#[test]
fn a_condition_alone_is_a_reason_to_write() {
    let failed =
        |message: &str| StatusPatch::condition("PodScheduled", ScheduledCondition::failed("Unschedulable", message));
    let mut status = Status::default();
    failed("a").apply(&mut status);
    for (patch, is_sent) in [
        (failed("a"), false),
        (failed("b"), true),
        (failed("b").then(StatusPatch::nomination(NominatingInfo::clear())), true),
        (failed("a").then(StatusPatch::condition("Other", ScheduledCondition::default())), true),
    ] {
        let mut queue = PatchQueue::default();
        queue.push("p", patch.clone());
        assert_eq!(queue.pop("p", &status).is_some(), is_sent, "{patch:?}");
    }
}
