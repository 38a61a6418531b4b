use std::time::Duration;

use dra_attrs::GateSet;
use nnn::behavior::BindingFailurePolicy;
use nnn::binding::{
    BindingStart, BindingStep, PreBindConcurrency, PreBindExecution, PreBindPlugin, PreBindWork, PreFlightError,
    VisibleReservation, aggregate, announce, delay_before, gap, groups, groups_with_gates, persist, steps,
    visible_reservation,
};
use nnn::{
    BindingClaim, Command, FailedStage, NoPatchReason, NominatingInfo, NominationGate, PatchDecision, PermitWait,
    PreFlight,
};

use super::common::{handle, patches, placed, pod, safe, tracker};
use nnn::{TrackerInput, TrackerNotice};

const VOLUMES: &str = "VolumeBinding";
const CLAIMS: &str = "DynamicResources";

fn start<'a>(
    pre_flights: &'a [PreFlight],
    permit: PermitWait,
    nnn: Option<&'a str>,
) -> Result<PatchDecision, PreFlightError> {
    let mut start = BindingStart::new(pre_flights, "host");
    (start.permit, start.nnn) = (permit, nnn);
    start.decide()
}

#[test]
fn the_node_is_announced_when_permit_waits() {
    // req: 5278-SET-1
    assert_eq!(start(&[], PermitWait::Waiting, None), Ok(PatchDecision::Needed));
    assert_eq!(start(&[PreFlight::Skip], PermitWait::Waiting, Some("other")), Ok(PatchDecision::Needed));
}

#[test]
fn the_node_is_announced_when_a_plugin_has_work() {
    // req: 5278-SET-2
    assert_eq!(start(&[PreFlight::Skip, PreFlight::Success], PermitWait::None, None), Ok(PatchDecision::Needed));
    assert_eq!(start(&[PreFlight::Success], PermitWait::None, Some("other")), Ok(PatchDecision::Needed));
}

#[test]
fn nothing_to_wait_for_means_no_call() {
    // req: 5278-SET-3
    for pre_flights in [&[][..], &[PreFlight::Skip], &[PreFlight::Skip, PreFlight::Skip]] {
        for nnn in [None, Some("host"), Some("other")] {
            assert_eq!(
                start(pre_flights, PermitWait::None, nnn),
                Ok(PatchDecision::None(NoPatchReason::NothingToWaitFor))
            );
        }
    }
}

#[test]
fn the_node_that_is_there_already_is_not_written_again() {
    // req: 5278-SET-5
    assert_eq!(
        start(&[PreFlight::Success], PermitWait::Waiting, Some("host")),
        Ok(PatchDecision::None(NoPatchReason::AlreadySet))
    );
}

#[test]
fn a_pre_flight_that_fails_ends_the_cycle_before_anything_is_written() {
    // req: 5278-SET-4
    let failing = [PreFlight::Success, failing()];
    let failed = PreFlightError::Failed { plugin: VOLUMES.to_owned(), error: "timed out".to_owned() };
    assert_eq!(start(&failing, PermitWait::Waiting, None), Err(failed));
    let waiting = pod("p", 0);
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_pre_flights(failing.to_vec()).with_permit(PermitWait::Waiting);
    let placed = placed.with_claims(vec![BindingClaim::Chosen("c".to_owned())]);
    let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    let writes = |command: &Command| {
        matches!(command, Command::Bind { .. } | Command::PatchNnn { .. } | Command::PersistAllocation { .. })
    };
    assert!(!output.commands.iter().any(writes), "{output:?}");
    assert!(output.commands.contains(&Command::Requeue { pod: waiting.key }));
}

#[test]
fn a_pre_flight_says_success_skip_or_error_and_nothing_else() {
    // req: 5278-SET-10
    assert_eq!(aggregate(&[PreFlight::Skip, PreFlight::Success, PreFlight::Skip]), Ok(PreBindWork::Some));
    for status in ["Wait", "Unschedulable", "Pending", ""] {
        let says = PreFlight::from_status(VOLUMES, status, "");
        let refused = PreFlightError::Unsupported { plugin: VOLUMES.to_owned(), status: status.to_owned() };
        assert_eq!(aggregate(&[PreFlight::Success, says]), Err(refused));
    }
    // The first failure is told.
    let mixed = [PreFlight::from_status("Mine", "Wait", ""), failing()];
    assert!(matches!(aggregate(&mixed), Err(PreFlightError::Unsupported { plugin, .. }) if plugin == "Mine"));
}

/// Builds a pre-flight that fails.
fn failing() -> PreFlight {
    PreFlight::from_status(VOLUMES, "Error", "timed out")
}

#[test]
fn the_condition_after_a_pre_flight_says_which_plugin_and_why() {
    let waiting = pod("p", 0);
    let unsupported = "PreBindPreFlight Mine returned \"Unschedulable\", which is unsupported. It is supposed to return \
                       Success, Skip, or Error status";
    for (pre_flight, expected) in [
        (failing(), "running PreBindPreFlight \"VolumeBinding\": timed out"),
        (PreFlight::from_status("Mine", "Unschedulable", ""), unsupported),
    ] {
        let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
        let placed = placed(&waiting, "host").with_pre_flights(vec![PreFlight::Success, pre_flight]);
        let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
        let [Command::PatchConditionAndNnn { condition, .. }] = patches(&output)[..] else { panic!("{output:?}") };
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), ("SchedulerError", expected));
    }
}

#[test]
fn a_plugin_that_said_skip_is_not_run_and_no_plugins_are_all_skip() {
    // req: 5278-SET-11
    assert_eq!(aggregate(&[]), Ok(PreBindWork::None));
    let skipped = PreBindPlugin::new(VOLUMES, PreBindExecution::Skipped, PreBindConcurrency::Parallel);
    assert!(groups(&[skipped]).is_empty());
    // Without the gate nothing is known, so that it runs.
    let off = GateSet::default().without(NominationGate::Expectation);
    assert_eq!(groups_with_gates(off, &[skipped]).len(), 1);
    assert!(groups_with_gates(GateSet::default(), &[skipped]).is_empty());
}

#[test]
fn without_the_gate_nothing_is_announced_and_plugins_run_one_by_one() {
    // req: 5278-SET-6
    let off = GateSet::default().without(NominationGate::Expectation);
    let failing = [failing()];
    let mut start = BindingStart::new(&failing, "host");
    (start.gates, start.permit) = (off, PermitWait::Waiting);
    assert_eq!(start.decide(), Ok(PatchDecision::None(NoPatchReason::GateOff)));
    let plugin = |name| PreBindPlugin::new(name, PreBindExecution::Runs, PreBindConcurrency::Parallel);
    let both = [plugin(VOLUMES), plugin(CLAIMS)];
    assert_eq!((groups_with_gates(off, &both).len(), groups_with_gates(GateSet::default(), &both).len()), (2, 1));

    let preemptor = pod("p", 1);
    let mut memory = tracker(safe().with_gates(off), std::slice::from_ref(&preemptor));
    let output = handle(&mut memory, super::common::fails(&preemptor, super::common::nominated("n")));
    assert_eq!(super::common::written(&output), [("p", Some("n"))], "a preemption nominates as ever");
}

#[test]
fn the_order_of_a_binding_cycle() {
    // req: 5278-SET-9
    let plugins = [
        PreBindPlugin::new(VOLUMES, PreBindExecution::Runs, PreBindConcurrency::Parallel),
        PreBindPlugin::new(CLAIMS, PreBindExecution::Runs, PreBindConcurrency::Parallel),
        PreBindPlugin::new("Other", PreBindExecution::Runs, PreBindConcurrency::Alone),
    ];
    let order = steps(PatchDecision::Needed, PermitWait::Waiting, &groups(&plugins));
    let expected = [
        BindingStep::PatchNnn,
        BindingStep::WaitOnPermit,
        BindingStep::PreBind(vec![VOLUMES, CLAIMS]),
        BindingStep::PreBind(vec!["Other"]),
        BindingStep::Bind,
    ];
    assert_eq!(order, expected);
    assert_eq!(steps(PatchDecision::None(NoPatchReason::NothingToWaitFor), PermitWait::None, &[]), [BindingStep::Bind]);
}

#[test]
fn how_long_claims_wait_for_other_plugins() {
    // req: 5278-RES-5
    let seconds = Duration::from_secs;
    let volumes =
        |concurrency| PreBindPlugin::new(VOLUMES, PreBindExecution::Runs, concurrency).with_duration(seconds(60));
    let claims =
        |concurrency| PreBindPlugin::new(CLAIMS, PreBindExecution::Runs, concurrency).with_duration(seconds(1));
    use PreBindConcurrency::{Alone, Parallel};
    let delay = |plugins: &[PreBindPlugin<'static>]| delay_before(CLAIMS, &groups(plugins));
    assert_eq!(delay(&[volumes(Alone), claims(Alone)]), Some(seconds(60)));
    assert_eq!(delay(&[volumes(Parallel), claims(Parallel)]), Some(Duration::ZERO), "in the first parallel group");
    let fast = PreBindPlugin::new("Fast", PreBindExecution::Runs, Parallel).with_duration(seconds(2));
    assert_eq!(delay(&[volumes(Parallel), fast, claims(Alone)]), Some(seconds(60)), "the slowest of a group");
    assert_eq!(delay(&[volumes(Alone), fast, claims(Alone)]), Some(seconds(62)));
    assert_eq!(delay(&[volumes(Alone)]), None);
}

#[test]
fn nomination_and_allocation_go_out_together() {
    // req: 5278-RES-4
    let waiting = pod("p", 0);
    let claims =
        [BindingClaim::Allocated, BindingClaim::Chosen("c1".to_owned()), BindingClaim::Chosen("c2".to_owned())];
    let persisted = |claim: &str| Command::PersistAllocation { pod: waiting.key.clone(), claim: claim.to_owned() };
    let patch = Command::PatchNnn { pod: waiting.key.clone(), node: "host".to_owned() };
    let now = announce(&waiting.key, "host", &claims, PermitWait::None);
    assert_eq!(now, [patch.clone(), persisted("c1"), persisted("c2")]);
    let later = announce(&waiting.key, "host", &claims, PermitWait::Waiting);
    assert_eq!(later, [patch, Command::Deferred { pod: waiting.key.clone() }]);
    assert_eq!(persist(&waiting.key, &[BindingClaim::Allocated], PermitWait::Waiting), []);
    // What the scheduler emits is in that order, before the binding.
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_pre_flights(vec![PreFlight::Success]).with_claims(claims.to_vec());
    let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    assert_eq!(output.commands[..3], now[..]);
    assert!(matches!(output.commands[3], Command::Bind { .. }));
    // The gap is the wait on permit and what runs before the plugin.
    let volumes = PreBindPlugin::new(VOLUMES, PreBindExecution::Runs, PreBindConcurrency::Alone)
        .with_duration(Duration::from_secs(60));
    let writer = PreBindPlugin::new(CLAIMS, PreBindExecution::Runs, PreBindConcurrency::Alone);
    assert_eq!(gap(Duration::from_secs(5), CLAIMS, &groups(&[volumes, writer])), Some(Duration::from_secs(65)));
}

#[test]
fn a_pod_that_waits_on_permit_is_a_partial_reservation_and_no_error() {
    // req: 5278-RES-7
    let waiting = pod("p", 0);
    let claims = vec![BindingClaim::Chosen("c".to_owned())];
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_permit(PermitWait::Waiting).with_claims(claims.clone());
    let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    assert_eq!(output.notices, [TrackerNotice::PartialReservation { pod: waiting.key }]);
    assert_eq!(visible_reservation(Some("host"), &claims), VisibleReservation::Partial);
    assert_eq!(visible_reservation(Some("host"), &[BindingClaim::Allocated]), VisibleReservation::Complete);
    assert_eq!(visible_reservation(None, &claims), VisibleReservation::None);
    assert_eq!(visible_reservation(None, &[BindingClaim::Allocated]), VisibleReservation::Partial, "the devices alone");
    let first = PreBindPlugin::new(CLAIMS, PreBindExecution::Runs, PreBindConcurrency::Parallel);
    assert_eq!(gap(Duration::ZERO, CLAIMS, &groups(&[first])), Some(Duration::ZERO));
}

#[test]
fn nomination_and_allocation_end_together() {
    let waiting = pod("p", 0);
    let claims = vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())];
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_pre_flights(vec![PreFlight::Success]).with_claims(claims);
    handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    let condition = nnn::ScheduledCondition::failed("SchedulerError", "volume");
    let failed = TrackerInput::BindingFailed { queued_pod: waiting.clone(), stage: FailedStage::PreBind, condition };
    let output = handle(&mut memory, failed);
    let [drop, wake, patch, requeue] = &output.commands[..] else { panic!("{output:?}") };
    assert_eq!(*drop, Command::DropReservation { pod: waiting.key.clone(), claim: "c".to_owned() });
    assert_eq!(*wake, Command::RequeueAll { except: None });
    assert!(matches!(patch, Command::PatchConditionAndNnn { nnn: NominatingInfo::Override(None), .. }));
    assert_eq!(*requeue, Command::Requeue { pod: waiting.key });
    assert_eq!(patches(&output).len(), 1);
}

#[test]
fn a_pre_flight_that_fails_drops_what_was_chosen() {
    let waiting = pod("p", 0);
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let claims = vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())];
    let placed = placed(&waiting, "host").with_pre_flights(vec![failing()]).with_claims(claims);
    let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    let expected = Command::DropAllocation { pod: waiting.key, claim: "c".to_owned() };
    assert_eq!(taken_back(&output.commands), [&expected]);
}

#[test]
fn what_is_taken_back_depends_on_how_far_the_allocation_was() {
    use FailedStage::{Bind, Permit, PreBind};
    let waiting = pod("p", 0);
    let chosen = Command::DropAllocation { pod: waiting.key.clone(), claim: "c".to_owned() };
    let written = Command::DropReservation { pod: waiting.key.clone(), claim: "c".to_owned() };
    for (permit, stage, expected) in [
        (PermitWait::Waiting, Permit, vec![&chosen]),
        // It is not known whether the plugin that writes them came before the one that failed.
        (PermitWait::Waiting, PreBind, vec![&chosen, &written]),
        (PermitWait::Waiting, Bind, vec![&written]),
        (PermitWait::None, PreBind, vec![&written]),
        (PermitWait::None, Bind, vec![&written]),
    ] {
        let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
        let claims = vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())];
        handle(
            &mut memory,
            TrackerInput::CycleSucceeded(placed(&waiting, "host").with_permit(permit).with_claims(claims)),
        );
        let failed = TrackerInput::BindingFailed {
            queued_pod: waiting.clone(),
            stage,
            condition: super::common::unschedulable(),
        };
        let commands = handle(&mut memory, failed).commands;
        assert_eq!(taken_back(&commands), expected, "{permit:?} {stage:?}");
    }
}

#[test]
fn the_devices_of_a_claim_that_another_pod_shares_are_left_to_it() {
    let (first, second) = (pod("first", 0), pod("second", 0));
    let mut memory = tracker(safe(), &[first.clone(), second.clone()]);
    let place = |pod, claim| TrackerInput::CycleSucceeded(placed(pod, "n").with_claims(vec![claim]));
    handle(&mut memory, place(&first, BindingClaim::Chosen("c".to_owned())));
    handle(&mut memory, place(&second, BindingClaim::Allocated));
    handle(&mut memory, TrackerInput::Bound { pod: second.key });
    let condition = super::common::unschedulable();
    let failed = TrackerInput::BindingFailed { queued_pod: first.clone(), stage: FailedStage::Bind, condition };
    let commands = handle(&mut memory, failed).commands;
    assert_eq!(taken_back(&commands), [&Command::DropReservation { pod: first.key, claim: "c".to_owned() }]);
}

#[test]
fn a_shared_claim_is_reserved_for_its_second_pod_and_its_devices_are_left_to_the_first() {
    let second = pod("second", 0);
    let shared = || vec![BindingClaim::Shared("c".to_owned())];
    let place = |memory: &mut nnn::NominationTracker, permit| {
        let placed = placed(&second, "n").with_claims(shared()).with_permit(permit);
        handle(memory, TrackerInput::CycleSucceeded(placed)).commands
    };
    let reserve = Command::PersistReservation { pod: second.key.clone(), claim: "c".to_owned() };
    let drop = Command::DropReservation { pod: second.key.clone(), claim: "c".to_owned() };
    let fail = |memory: &mut nnn::NominationTracker, stage| {
        let condition = super::common::unschedulable();
        let failed = TrackerInput::BindingFailed { queued_pod: second.clone(), stage, condition };
        let commands = handle(memory, failed).commands;
        taken_back(&commands).into_iter().cloned().collect::<Vec<_>>()
    };
    let mut memory = tracker(safe(), std::slice::from_ref(&second));
    assert!(place(&mut memory, PermitWait::None).contains(&reserve));
    assert_eq!(fail(&mut memory, FailedStage::Bind), std::slice::from_ref(&drop));

    let mut memory = tracker(safe(), std::slice::from_ref(&second));
    let commands = place(&mut memory, PermitWait::Waiting);
    assert!(commands.contains(&Command::Deferred { pod: second.key.clone() }) && !commands.contains(&reserve));
    let mut granted = memory.clone();
    let granted_now = handle(&mut granted, TrackerInput::PermitGranted { pod: second.key.clone() }).commands;
    assert_eq!(granted_now, [reserve]);
    assert_eq!(handle(&mut granted, TrackerInput::PermitGranted { pod: second.key.clone() }).commands, []);
    assert_eq!(fail(&mut granted, FailedStage::PreBind), [drop]);
    assert_eq!(fail(&mut memory, FailedStage::Permit), []);
    assert_eq!(visible_reservation(Some("n"), &shared()), VisibleReservation::Partial);
}

/// Returns the commands that undo a cycle's changes to claims.
fn taken_back(commands: &[Command]) -> Vec<&Command> {
    let takes_back =
        |command: &&Command| matches!(command, Command::DropAllocation { .. } | Command::DropReservation { .. });
    commands.iter().filter(takes_back).collect()
}

#[test]
fn a_rejected_pod_is_served_before_the_others_are_woken() {
    let waiting = pod("p", 0);
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    handle(&mut memory, TrackerInput::CycleSucceeded(placed(&waiting, "host").with_permit(PermitWait::Waiting)));
    let condition = super::common::unschedulable();
    let failed = TrackerInput::BindingFailed { queued_pod: waiting, stage: FailedStage::Permit, condition };
    let last = handle(&mut memory, failed).commands.pop();
    assert_eq!(last, Some(Command::RequeueAll { except: Some("p".to_owned()) }));
}

#[test]
fn what_is_kept_after_a_failed_binding() {
    use FailedStage::{Bind, Permit, PreBind, PreFlight};
    for (policy, keeps) in [
        (BindingFailurePolicy::Clear, &[][..]),
        (BindingFailurePolicy::KeepAfterPreBind, &[Bind]),
        (BindingFailurePolicy::Keep, &[PreFlight, Permit, PreBind, Bind]),
    ] {
        for stage in [PreFlight, Permit, PreBind, Bind] {
            let expected = if keeps.contains(&stage) { NominatingInfo::nominate("h") } else { NominatingInfo::clear() };
            assert_eq!(policy.decide(stage, "h"), expected, "{policy:?} at {stage:?}");
        }
    }
}

#[test]
fn claims_are_written_after_the_wait_on_permit_and_also_without_a_patch() {
    // req: 5278-RES-4, 5278-RES-7
    let off = safe().with_gates(GateSet::default().without(NominationGate::Expectation));
    for (options, nnn) in [(safe(), ""), (safe(), "host"), (off, "")] {
        for permit in [PermitWait::None, PermitWait::Waiting] {
            let waiting = pod("p", 0).with_nomination(nnn);
            let mut it = tracker(options, std::slice::from_ref(&waiting));
            let placed = placed(&waiting, "host").with_pre_flights(vec![PreFlight::Success]).with_permit(permit);
            let placed = placed.with_claims(vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())]);
            let commands = handle(&mut it, TrackerInput::CycleSucceeded(placed)).commands;
            let [.., claims, Command::Bind { .. }] = &commands[..] else { panic!("{commands:?}") };
            let pod = waiting.key.clone();
            let expected = match permit {
                PermitWait::None => Command::PersistAllocation { pod, claim: "c".to_owned() },
                PermitWait::Waiting => Command::Deferred { pod },
            };
            assert_eq!(*claims, expected, "{nnn:?} {permit:?}");
            let writes = |command: &&Command| matches!(command, Command::PersistAllocation { .. });
            assert_eq!(commands.iter().filter(writes).count(), usize::from(permit == PermitWait::None));
        }
    }
}
