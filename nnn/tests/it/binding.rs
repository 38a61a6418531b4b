use std::time::Duration;

use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::binding::{BindingStart, PreBindPlugin, PreFlightError};
use nnn::{
    Assumed, BindingClaim, Command, FailedStage, NoPatchReason, NominatingInfo, PreFlight, TrackerInput, TrackerNotice,
};

use super::common::{handle, patches, placed, pod, safe, tracker, with};

const VOLUMES: &str = "VolumeBinding";
const CLAIMS: &str = "DynamicResources";

/// Builds a plugin that runs with other plugins.
fn parallel(name: &str) -> PreBindPlugin<'_> {
    with(PreBindPlugin::new(name), |plugin| plugin.is_parallel = true)
}

/// Returns the time that claims lag behind their pod's nomination.
fn gap(permit: Duration, plugins: &[PreBindPlugin<'_>]) -> Option<Duration> {
    PreBindPlugin::reservation_gap(permit, CLAIMS, &PreBindPlugin::group(GateSet::of(Profile::V1_37), plugins))
}

fn waits_on_permit(assumed: Assumed, waits: bool) -> Assumed {
    with(assumed, |it| it.waits_on_permit = waits)
}

fn start<'a>(
    pre_flights: &'a [PreFlight],
    waits: bool,
    nnn: Option<&'a str>,
) -> Result<Option<NoPatchReason>, PreFlightError> {
    let mut start = BindingStart::new(Profile::V1_37, pre_flights, "host");
    (start.waits_on_permit, start.nnn) = (waits, nnn);
    start.no_patch_reason()
}

#[test]
fn the_node_is_announced_when_permit_waits() {
    // req: 5278-SET-1
    assert_eq!(start(&[], true, None), Ok(None));
    assert_eq!(start(&[PreFlight::Skip], true, Some("other")), Ok(None));
}

#[test]
fn the_node_is_announced_when_a_plugin_has_work() {
    // req: 5278-SET-2
    assert_eq!(start(&[PreFlight::Skip, PreFlight::Success], false, None), Ok(None));
    assert_eq!(start(&[PreFlight::Success], false, Some("other")), Ok(None));
}

#[test]
fn nothing_to_wait_for_means_no_call() {
    // req: 5278-SET-3
    for pre_flights in [&[][..], &[PreFlight::Skip], &[PreFlight::Skip, PreFlight::Skip]] {
        for nnn in [None, Some("host"), Some("other")] {
            assert_eq!(start(pre_flights, false, nnn), Ok(Some(NoPatchReason::NothingToWaitFor)));
        }
    }
}

#[test]
fn the_node_that_is_there_already_is_not_written_again() {
    // req: 5278-SET-5
    assert_eq!(start(&[PreFlight::Success], true, Some("host")), Ok(Some(NoPatchReason::AlreadySet)));
}

#[test]
fn a_pre_flight_that_fails_ends_the_cycle_before_anything_is_written() {
    // req: 5278-SET-4
    let failing = [PreFlight::Success, failing()];
    let failed = PreFlightError::Failed { plugin: VOLUMES.to_owned(), error: "timed out".to_owned() };
    assert_eq!(start(&failing, true, None), Err(failed));
    let waiting = pod("p", 0);
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_pre_flights(failing.to_vec()).with_permit_wait();
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
    let pre_flights = [PreFlight::Skip, PreFlight::Success, PreFlight::Skip];
    assert_eq!(start(&pre_flights, false, None), Ok(None));
    for status in ["Wait", "Unschedulable", "Pending", ""] {
        let says = PreFlight::from_status(VOLUMES, status, "");
        let refused = PreFlightError::Unsupported { plugin: VOLUMES.to_owned(), status: status.to_owned() };
        assert_eq!(start(&[PreFlight::Success, says], false, None), Err(refused));
    }
    // The first failure is told.
    let mixed = [PreFlight::from_status("Mine", "Wait", ""), failing()];
    assert!(matches!(start(&mixed, false, None), Err(PreFlightError::Unsupported { plugin, .. }) if plugin == "Mine"));
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
    assert_eq!(start(&[], false, None), Ok(Some(NoPatchReason::NothingToWaitFor)));
    let skipped = with(parallel(VOLUMES), |plugin| plugin.is_skipped = true);
    // Without the gate nothing is known, so that it runs.
    let off = GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation);
    assert_eq!(PreBindPlugin::group(off, &[skipped]).len(), 1);
    assert!(PreBindPlugin::group(GateSet::of(Profile::V1_37), &[skipped]).is_empty());
}

#[test]
fn without_the_gate_nothing_is_announced_and_plugins_run_one_by_one() {
    // req: 5278-SET-6
    let off = GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation);
    let failing = [failing()];
    let mut start = BindingStart::new(Component::new(Profile::V1_37, off), &failing, "host");
    start.waits_on_permit = true;
    assert_eq!(start.no_patch_reason(), Ok(Some(NoPatchReason::GateOff)));
    let both = [parallel(VOLUMES), parallel(CLAIMS)];
    assert_eq!(
        (PreBindPlugin::group(off, &both).len(), PreBindPlugin::group(GateSet::of(Profile::V1_37), &both).len()),
        (2, 1)
    );

    let preemptor = pod("p", 1);
    let mut memory =
        tracker(safe().with_scheduler(Component::new(Profile::V1_37, off)), std::slice::from_ref(&preemptor));
    let output = handle(&mut memory, super::common::fails(&preemptor, super::common::nominated("n")));
    assert_eq!(super::common::written(&output), [("p", Some("n"))], "a preemption nominates as ever");
}

#[test]
fn the_order_of_a_binding_cycle() {
    // req: 5278-SET-9
    // What waits on permit and runs PreBind is `Bind`; the claims are written within.
    let waiting = pod("p", 0);
    let play = |assumed| {
        let mut it = tracker(safe(), std::slice::from_ref(&waiting));
        handle(&mut it, TrackerInput::CycleSucceeded(assumed)).commands
    };
    let assumed = placed(&waiting, "host").with_claims(vec![BindingClaim::Chosen("c".to_owned())]);
    let commands = play(assumed.clone().with_permit_wait());
    assert!(
        matches!(commands[..], [Command::PatchNnn { .. }, Command::Deferred { .. }, Command::Bind { .. }]),
        "the patch comes before the wait: {commands:?}"
    );
    let commands = play(assumed.with_pre_flights(vec![PreFlight::Success]));
    assert!(
        matches!(commands[..], [Command::PatchNnn { .. }, Command::PersistAllocation { .. }, Command::Bind { .. }]),
        "{commands:?}"
    );
    let commands = play(placed(&waiting, "host"));
    assert!(matches!(commands[..], [Command::None { .. }, Command::Bind { .. }]), "{commands:?}");
    let plugins = [parallel(VOLUMES), parallel(CLAIMS), PreBindPlugin::new("Other")];
    let groups = PreBindPlugin::group(GateSet::of(Profile::V1_37), &plugins);
    assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn how_long_claims_wait_for_other_plugins() {
    // req: 5278-RES-5
    let seconds = Duration::from_secs;
    let lasting = |plugin, duration| with(plugin, |it: &mut PreBindPlugin<'_>| it.duration = seconds(duration));
    let volumes = |new: fn(&'static str) -> PreBindPlugin<'static>| lasting(new(VOLUMES), 60);
    let claims = |new: fn(&'static str) -> PreBindPlugin<'static>| lasting(new(CLAIMS), 1);
    let alone = PreBindPlugin::new;
    assert_eq!(gap(Duration::ZERO, &[volumes(alone), claims(alone)]), Some(seconds(60)));
    let in_the_first_group = [volumes(parallel), claims(parallel)];
    assert_eq!(gap(Duration::ZERO, &in_the_first_group), Some(Duration::ZERO), "in the first parallel group");
    let fast = lasting(parallel("Fast"), 2);
    let slowest = [volumes(parallel), fast, claims(alone)];
    assert_eq!(gap(Duration::ZERO, &slowest), Some(seconds(60)), "the slowest of a group");
    assert_eq!(gap(Duration::ZERO, &[volumes(alone), fast, claims(alone)]), Some(seconds(62)));
    assert_eq!(gap(Duration::ZERO, &[volumes(alone)]), None);
}

#[test]
fn nomination_and_allocation_go_out_together() {
    // req: 5278-RES-4
    let waiting = pod("p", 0);
    let claims =
        [BindingClaim::Allocated, BindingClaim::Chosen("c1".to_owned()), BindingClaim::Chosen("c2".to_owned())];
    let persisted = |claim: &str| Command::PersistAllocation { pod: waiting.key.clone(), claim: claim.to_owned() };
    let patch = Command::PatchNnn { pod: waiting.key.clone(), node: "host".to_owned() };
    let assumed = placed(&waiting, "host").with_claims(claims.to_vec());
    let now = assumed.announce();
    assert_eq!(now, [patch.clone(), persisted("c1"), persisted("c2")]);
    let later = assumed.with_permit_wait().announce();
    assert_eq!(later, [patch.clone(), Command::Deferred { pod: waiting.key.clone() }]);
    let allocated = placed(&waiting, "host").with_claims(vec![BindingClaim::Allocated]).with_permit_wait();
    assert_eq!(allocated.announce(), [patch], "nothing is put off");
    // What the scheduler emits is in that order, before the binding.
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_pre_flights(vec![PreFlight::Success]).with_claims(claims.to_vec());
    let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    assert_eq!(output.commands[..3], now[..]);
    assert_eq!(output.notices, [], "a pod that waits for nothing has its reservation whole");
    assert!(matches!(output.commands[3], Command::Bind { .. }));
    // The gap is the wait on permit and what runs before the plugin.
    let volumes = with(PreBindPlugin::new(VOLUMES), |plugin| plugin.duration = Duration::from_secs(60));
    let writer = PreBindPlugin::new(CLAIMS);
    assert_eq!(gap(Duration::from_secs(5), &[volumes, writer]), Some(Duration::from_secs(65)));
}

#[test]
fn a_pod_that_waits_on_permit_is_a_partial_reservation_and_no_error() {
    // req: 5278-RES-7
    let waiting = pod("p", 0);
    let claims = vec![BindingClaim::Chosen("c".to_owned())];
    let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").with_permit_wait().with_claims(claims);
    let output = handle(&mut memory, TrackerInput::CycleSucceeded(placed));
    assert_eq!(output.notices, [TrackerNotice::PartialReservation { pod: waiting.key }]);
    assert_eq!(gap(Duration::ZERO, &[parallel(CLAIMS)]), Some(Duration::ZERO));
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
    for (waits, stage, expected) in [
        (true, Permit, vec![&chosen]),
        // It is not known whether the plugin that writes them came before the one that failed.
        (true, PreBind, vec![&chosen, &written]),
        (true, Bind, vec![&written]),
        (false, PreBind, vec![&written]),
        (false, Bind, vec![&written]),
    ] {
        let mut memory = tracker(safe(), std::slice::from_ref(&waiting));
        let claims = vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())];
        handle(
            &mut memory,
            TrackerInput::CycleSucceeded(waits_on_permit(placed(&waiting, "host"), waits).with_claims(claims)),
        );
        let failed = TrackerInput::BindingFailed {
            queued_pod: waiting.clone(),
            stage,
            condition: super::common::unschedulable(),
        };
        let commands = handle(&mut memory, failed).commands;
        assert_eq!(taken_back(&commands), expected, "{waits} {stage:?}");
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
    let place = |memory: &mut nnn::NominationTracker, waits| {
        let placed = waits_on_permit(placed(&second, "n").with_claims(shared()), waits);
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
    assert!(place(&mut memory, false).contains(&reserve));
    assert_eq!(fail(&mut memory, FailedStage::Bind), std::slice::from_ref(&drop));

    let mut memory = tracker(safe(), std::slice::from_ref(&second));
    let commands = place(&mut memory, true);
    assert!(commands.contains(&Command::Deferred { pod: second.key.clone() }) && !commands.contains(&reserve));
    let mut granted = memory.clone();
    let granted_now = handle(&mut granted, TrackerInput::PermitGranted { pod: second.key.clone() }).commands;
    assert_eq!(granted_now, [reserve]);
    assert_eq!(handle(&mut granted, TrackerInput::PermitGranted { pod: second.key.clone() }).commands, []);
    assert_eq!(fail(&mut granted, FailedStage::PreBind), [drop]);
    assert_eq!(fail(&mut memory, FailedStage::Permit), []);
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
    handle(&mut memory, TrackerInput::CycleSucceeded(placed(&waiting, "host").with_permit_wait()));
    let condition = super::common::unschedulable();
    let failed = TrackerInput::BindingFailed { queued_pod: waiting, stage: FailedStage::Permit, condition };
    let last = handle(&mut memory, failed).commands.pop();
    assert_eq!(last, Some(Command::RequeueAll { except: Some("p".to_owned()) }));
}

#[test]
fn claims_are_written_after_the_wait_on_permit_and_also_without_a_patch() {
    // req: 5278-RES-4, 5278-RES-7
    let off = safe().with_scheduler(Component::new(
        Profile::V1_37,
        GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation),
    ));
    for (options, nnn) in [(safe(), ""), (safe(), "host"), (off, "")] {
        for waits in [false, true] {
            let waiting = pod("p", 0).with_nomination(nnn);
            let mut it = tracker(options, std::slice::from_ref(&waiting));
            let placed = waits_on_permit(placed(&waiting, "host").with_pre_flights(vec![PreFlight::Success]), waits);
            let placed = placed.with_claims(vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())]);
            let commands = handle(&mut it, TrackerInput::CycleSucceeded(placed)).commands;
            let [.., claims, Command::Bind { .. }] = &commands[..] else { panic!("{commands:?}") };
            let pod = waiting.key.clone();
            let expected = if waits {
                Command::Deferred { pod }
            } else {
                Command::PersistAllocation { pod, claim: "c".to_owned() }
            };
            assert_eq!(*claims, expected, "{nnn:?} {waits}");
            let writes = |command: &&Command| matches!(command, Command::PersistAllocation { .. });
            assert_eq!(commands.iter().filter(writes).count(), usize::from(!waits));
        }
    }
}
