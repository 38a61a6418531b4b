use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::{Command, PreFlight, TrackerInput};

use super::common::{handle, placed, pod, safe, tracker, unschedulable, with};

/// Number of requests that commands send to the API server, by kind.
#[derive(Debug, PartialEq, Eq)]
struct ApiCalls {
    patches: usize,
    bindings: usize,
}

impl ApiCalls {
    fn of(commands: &[Command]) -> Self {
        let bindings = commands.iter().filter(|command| matches!(command, Command::Bind { .. })).count();
        Self { patches: commands.iter().filter(|command| command.is_patch()).count(), bindings }
    }

    fn total(&self) -> usize {
        self.patches + self.bindings
    }
}

/// Counts the calls of one pod's life: observed, assumed, bound.
fn calls(gates: GateSet, nnn: &str, pre_flight: PreFlight, waits: bool) -> ApiCalls {
    let waiting = pod("p", 0).with_nomination(nnn);
    let mut memory =
        tracker(safe().with_scheduler(Component::new(Profile::V1_37, gates)), std::slice::from_ref(&waiting));
    let placed = with(placed(&waiting, "n").with_pre_flights(vec![pre_flight]), |it| it.waits_on_permit = waits);
    let mut commands = handle(&mut memory, TrackerInput::CycleSucceeded(placed)).commands;
    commands.extend(handle(&mut memory, TrackerInput::Bound { pod: waiting.key }).commands);
    ApiCalls::of(&commands)
}

#[test]
fn one_more_patch_for_pods_with_work_alone() {
    // req: 5278-COST-1
    let on = GateSet::of(Profile::V1_37);
    let off = on.without(Gate::NominatedNodeNameForExpectation);
    let rows = [
        (on, "", PreFlight::Skip, false, 0),
        (on, "", PreFlight::Success, false, 1),
        (on, "", PreFlight::Skip, true, 1),
        (on, "n", PreFlight::Success, false, 0),
        (on, "m", PreFlight::Success, false, 1),
        (on, "m", PreFlight::Skip, false, 0),
        (off, "", PreFlight::Success, true, 0),
    ];
    for (gates, nnn, pre_flight, waits, expected) in rows {
        assert_eq!(calls(gates, nnn, pre_flight, waits).patches, expected, "{gates:?} {nnn} {waits}");
    }
}

#[test]
fn at_worst_two_calls_instead_of_one() {
    // req: 5278-COST-3
    let on = GateSet::of(Profile::V1_37);
    assert_eq!(calls(on, "", PreFlight::Success, false).total(), 2);
    assert_eq!(calls(on, "", PreFlight::Skip, false).total(), 1);
    assert_eq!(calls(GateSet::NONE, "", PreFlight::Success, false).total(), 1);
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
    let again = ApiCalls::of(&handle(&mut memory, fails()).commands);
    assert_eq!((ApiCalls::of(&first).patches, again.total()), (1, 0));
}
