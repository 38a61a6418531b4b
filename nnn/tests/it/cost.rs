use std::time::Duration;

use dra_attrs::GateSet;
use nnn::binding::PreBindWork;
use nnn::{
    ApiCalls, Command, MissedObjective, NoPatchReason, NominatingInfo, NominationGate, PatchQueue, PermitWait,
    PodStatusFields, PreFlight, ScheduledCondition, SchedulerObjectives, SchedulingMeasurement, StatusPatch,
    TrackerInput, extra_binding_patches,
};

use super::common::{handle, placed, pod, safe, tracker, unschedulable};

/// Counts the calls of one pod's life: observed, assumed, bound.
fn calls(gates: GateSet<NominationGate>, nnn: &str, pre_flight: PreFlight, permit: PermitWait) -> ApiCalls {
    let waiting = pod("p", 0).with_nomination(nnn);
    let mut memory = tracker(safe().with_gates(gates), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "n").with_pre_flights(vec![pre_flight]).with_permit(permit);
    let mut commands = handle(&mut memory, TrackerInput::CycleSucceeded(placed)).commands;
    commands.extend(handle(&mut memory, TrackerInput::Bound { pod: waiting.key }).commands);
    commands.iter().collect()
}

#[test]
fn one_more_patch_for_pods_with_work_alone() {
    // req: 5278-COST-1
    let on = GateSet::default();
    let off = on.without(NominationGate::Expectation);
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
        assert_eq!(extra_binding_patches(gates, work, permit, nomination, "n"), expected);
        assert_eq!(calls(gates, nnn, pre_flight, permit).patches, expected, "{gates:?} {nnn} {permit:?}");
    }
}

#[test]
fn writes_that_wait_become_one_and_a_binding_makes_them_needless() {
    let nominate = |node: &str| StatusPatch::from_nomination(NominatingInfo::nominate(node));
    let mut queue = PatchQueue::default();
    queue.push("p", nominate("a"));
    queue.push("p", StatusPatch::from_condition("PodScheduled", ScheduledCondition::default()));
    queue.push("p", nominate("b"));
    queue.push("q", nominate("a"));
    assert_eq!(queue.len(), 2);

    let sent = queue.pop("p", &PodStatusFields::default()).unwrap();
    assert_eq!((sent.nnn, sent.conditions.len()), (NominatingInfo::nominate("b"), 1));
    assert_eq!(queue.pop("p", &PodStatusFields::default()), None);

    let mut status = PodStatusFields::default();
    nominate("a").apply(&mut status);
    assert_eq!(queue.pop("q", &status), None, "it stands there already");

    queue.push("p", nominate("a"));
    assert_eq!(queue.push_binding("p"), Some(NoPatchReason::PatchSuperseded));
    assert_eq!(queue.push_binding("p"), None);
    assert!(queue.is_empty());
}

#[test]
fn at_worst_two_calls_instead_of_one() {
    // req: 5278-COST-3
    let on = GateSet::default();
    assert_eq!(calls(on, "", PreFlight::Success, PermitWait::None).total(), 2);
    assert_eq!(calls(on, "", PreFlight::Skip, PermitWait::None).total(), 1);
    assert_eq!(calls(GateSet::NONE, "", PreFlight::Success, PermitWait::None).total(), 1);
}

#[test]
fn a_failure_costs_one_patch_and_the_same_failure_again_none() {
    let waiting = pod("p", 0).with_nomination("x");
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let outcome = nnn::CycleOutcome::NoCandidates;
    let fails = || TrackerInput::CycleFailed {
        queued_pod: waiting.clone(),
        outcome: outcome.clone(),
        condition: unschedulable(),
    };
    let first = handle(&mut memory, fails()).commands;
    assert!(matches!(
        &first[..],
        [
            Command::Release { .. },
            Command::RequeueLowerOrEqual { .. },
            Command::PatchConditionAndNnn { .. },
            Command::Requeue { .. }
        ]
    ));
    let again: ApiCalls = handle(&mut memory, fails()).commands.iter().collect();
    assert_eq!((first.iter().collect::<ApiCalls>().patches, again.total()), (1, 0));
}

#[test]
fn objectives_with_adjustable_limits() {
    // req: 5278-METRIC-1
    let objectives = SchedulerObjectives::default();
    let second = Duration::from_secs(1);
    let missed = |attempts, algorithm| objectives.missed(SchedulingMeasurement::new(attempts, second, algorithm));
    assert_eq!(missed(100, second), [], "exactly at both limits");
    assert_eq!(missed(99, Duration::ZERO), [MissedObjective::Throughput]);
    assert_eq!(missed(100, second + Duration::from_nanos(1)), [MissedObjective::AlgorithmDuration]);
    assert_eq!(missed(50, second), [MissedObjective::Throughput, MissedObjective::AlgorithmDuration]);
    let mut generous = objectives;
    (generous.attempts_per_second, generous.mean_algorithm_duration) = (10, second);
    assert_eq!(generous.missed(SchedulingMeasurement::new(50, second, second)), []);
    assert_eq!(objectives.missed(SchedulingMeasurement::default()), [], "nothing was measured");
}

#[test]
fn a_condition_alone_is_a_reason_to_write() {
    let failed = |message: &str| {
        StatusPatch::from_condition("PodScheduled", ScheduledCondition::failed("Unschedulable", message))
    };
    let mut status = PodStatusFields::default();
    failed("a").apply(&mut status);
    for (patch, is_sent) in [
        (failed("a"), false),
        (failed("b"), true),
        (failed("b").then(StatusPatch::from_nomination(NominatingInfo::clear())), true),
        (failed("a").then(StatusPatch::from_condition("Other", ScheduledCondition::default())), true),
    ] {
        let mut queue = PatchQueue::default();
        queue.push("p", patch.clone());
        assert_eq!(queue.pop("p", &status).is_some(), is_sent, "{patch:?}");
    }
}
