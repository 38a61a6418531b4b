use std::time::Duration;

use nnn::binding::claims::{ClaimState, Reservation, announce, gap, persist, visible_reservation};
use nnn::binding::failure::{FailedStage, OnBindingFailure};
use nnn::binding::prebind::{Concurrency, Plugin, Step, Work, delay_of, groups, groups_under, steps};
use nnn::binding::start::{BindingStart, PermitWait, PreBindWork, PreFlight, PreFlightError, aggregate};
use nnn::command::{Command, NoPatch};
use nnn::gates::{Gate, Gates};
use nnn::nominating::NominatingInfo;
use nnn::options::Options;
use nnn::patch::Patch;

use super::common::{handle, patches, placed, pod, scheduler};
use nnn::scheduler::{Input, Notice};

const VOLUMES: &str = "VolumeBinding";
const CLAIMS: &str = "DynamicResources";

fn start<'a>(pre_flights: &'a [PreFlight], permit: PermitWait, nnn: Option<&'a str>) -> Result<Patch, PreFlightError> {
    let mut start = BindingStart::new(pre_flights, "host");
    (start.permit, start.nnn) = (permit, nnn);
    start.decide()
}

#[test]
fn the_node_is_announced_when_permit_waits() {
    // req: 5278-SET-1
    assert_eq!(start(&[], PermitWait::Waiting, None), Ok(Patch::Needed));
    assert_eq!(start(&[PreFlight::Skip], PermitWait::Waiting, Some("other")), Ok(Patch::Needed));
}

#[test]
fn the_node_is_announced_when_a_plugin_has_work() {
    // req: 5278-SET-2
    assert_eq!(start(&[PreFlight::Skip, PreFlight::Success], PermitWait::None, None), Ok(Patch::Needed));
    assert_eq!(start(&[PreFlight::Success], PermitWait::None, Some("other")), Ok(Patch::Needed));
}

#[test]
fn nothing_to_wait_for_means_no_call() {
    // req: 5278-SET-3
    for pre_flights in [&[][..], &[PreFlight::Skip], &[PreFlight::Skip, PreFlight::Skip]] {
        for nnn in [None, Some("host"), Some("other")] {
            assert_eq!(start(pre_flights, PermitWait::None, nnn), Ok(Patch::None(NoPatch::NothingToWaitFor)));
        }
    }
}

#[test]
fn the_node_that_is_there_already_is_not_written_again() {
    // req: 5278-SET-5
    assert_eq!(start(&[PreFlight::Success], PermitWait::Waiting, Some("host")), Ok(Patch::None(NoPatch::AlreadySet)));
}

#[test]
fn a_pre_flight_that_fails_ends_the_cycle_before_anything_is_written() {
    // req: 5278-SET-4
    let failing = [PreFlight::Success, failing()];
    let failed = PreFlightError::Failed { plugin: VOLUMES.to_owned(), error: "timed out".to_owned() };
    assert_eq!(start(&failing, PermitWait::Waiting, None), Err(failed));
    let waiting = pod("p", 0);
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").pre_flights(failing.to_vec()).permit(PermitWait::Waiting);
    let placed = placed.claims(vec![ClaimState::Chosen("c".to_owned())]);
    let reaction = handle(&mut memory, Input::CycleSucceeded(placed));
    let writes = |command: &Command| {
        matches!(command, Command::Bind { .. } | Command::PatchNnn { .. } | Command::PersistAllocation { .. })
    };
    assert!(!reaction.commands.iter().any(writes), "{reaction:?}");
    assert!(reaction.commands.contains(&Command::Requeue { pod: waiting.key }));
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

/// A pre-flight that fails.
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
        let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
        let placed = placed(&waiting, "host").pre_flights(vec![PreFlight::Success, pre_flight]);
        let reaction = handle(&mut memory, Input::CycleSucceeded(placed));
        let [Command::PatchConditionAndNnn { condition, .. }] = patches(&reaction)[..] else { panic!("{reaction:?}") };
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), ("SchedulerError", expected));
    }
}

#[test]
fn a_plugin_that_said_skip_is_not_run_and_no_plugins_are_all_skip() {
    // req: 5278-SET-11
    assert_eq!(aggregate(&[]), Ok(PreBindWork::None));
    let skipped = Plugin::new(VOLUMES, Work::Skipped, Concurrency::Parallel);
    assert!(groups(&[skipped]).is_empty());
    // Without the gate nothing is known, so that it runs.
    let off = Gates::default().without(Gate::Expectation);
    assert_eq!(groups_under(off, &[skipped]).len(), 1);
    assert!(groups_under(Gates::default(), &[skipped]).is_empty());
}

#[test]
fn without_the_gate_nothing_is_announced_and_plugins_run_one_by_one() {
    // req: 5278-SET-6
    let off = Gates::default().without(Gate::Expectation);
    let failing = [failing()];
    let mut start = BindingStart::new(&failing, "host");
    (start.gates, start.permit) = (off, PermitWait::Waiting);
    assert_eq!(start.decide(), Ok(Patch::None(NoPatch::GateOff)));
    let plugin = |name| Plugin::new(name, Work::Runs, Concurrency::Parallel);
    let both = [plugin(VOLUMES), plugin(CLAIMS)];
    assert_eq!((groups_under(off, &both).len(), groups_under(Gates::default(), &both).len()), (2, 1));

    let preemptor = pod("p", 1);
    let mut memory = scheduler(Options::default().with_gates(off), std::slice::from_ref(&preemptor));
    let reaction = handle(&mut memory, super::common::fails(&preemptor, super::common::nominated("n")));
    assert_eq!(super::common::written(&reaction), [("p", Some("n"))], "a preemption nominates as ever");
}

#[test]
fn the_order_of_a_binding_cycle() {
    // req: 5278-SET-9
    let plugins = [
        Plugin::new(VOLUMES, Work::Runs, Concurrency::Parallel),
        Plugin::new(CLAIMS, Work::Runs, Concurrency::Parallel),
        Plugin::new("Other", Work::Runs, Concurrency::Alone),
    ];
    let order = steps(Patch::Needed, PermitWait::Waiting, &groups(&plugins));
    let expected = [
        Step::PatchNnn,
        Step::WaitOnPermit,
        Step::PreBind(vec![VOLUMES, CLAIMS]),
        Step::PreBind(vec!["Other"]),
        Step::Bind,
    ];
    assert_eq!(order, expected);
    assert_eq!(steps(Patch::None(NoPatch::NothingToWaitFor), PermitWait::None, &[]), [Step::Bind]);
}

#[test]
fn how_long_claims_wait_for_other_plugins() {
    // req: 5278-RES-5
    let seconds = Duration::from_secs;
    let volumes = |concurrency| Plugin::new(VOLUMES, Work::Runs, concurrency).taking(seconds(60));
    let claims = |concurrency| Plugin::new(CLAIMS, Work::Runs, concurrency).taking(seconds(1));
    use Concurrency::{Alone, Parallel};
    let delay = |plugins: &[Plugin<'static>]| delay_of(CLAIMS, &groups(plugins));
    assert_eq!(delay(&[volumes(Alone), claims(Alone)]), Some(seconds(60)));
    assert_eq!(delay(&[volumes(Parallel), claims(Parallel)]), Some(Duration::ZERO), "in the first parallel group");
    let fast = Plugin::new("Fast", Work::Runs, Parallel).taking(seconds(2));
    assert_eq!(delay(&[volumes(Parallel), fast, claims(Alone)]), Some(seconds(60)), "the slowest of a group");
    assert_eq!(delay(&[volumes(Alone), fast, claims(Alone)]), Some(seconds(62)));
    assert_eq!(delay(&[volumes(Alone)]), None);
}

#[test]
fn nomination_and_allocation_go_out_together() {
    // req: 5278-RES-4
    let waiting = pod("p", 0);
    let claims = [ClaimState::Allocated, ClaimState::Chosen("c1".to_owned()), ClaimState::Chosen("c2".to_owned())];
    let persisted = |claim: &str| Command::PersistAllocation { pod: waiting.key.clone(), claim: claim.to_owned() };
    let patch = Command::PatchNnn { pod: waiting.key.clone(), node: "host".to_owned() };
    let now = announce(&waiting.key, "host", &claims, PermitWait::None);
    assert_eq!(now, [patch.clone(), persisted("c1"), persisted("c2")]);
    let later = announce(&waiting.key, "host", &claims, PermitWait::Waiting);
    assert_eq!(later, [patch, Command::Deferred { pod: waiting.key.clone() }]);
    assert_eq!(persist(&waiting.key, &[ClaimState::Allocated], PermitWait::Waiting), []);
    // What the scheduler emits is in that order, before the binding.
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").pre_flights(vec![PreFlight::Success]).claims(claims.to_vec());
    let reaction = handle(&mut memory, Input::CycleSucceeded(placed));
    assert_eq!(reaction.commands[..3], now[..]);
    assert!(matches!(reaction.commands[3], Command::Bind { .. }));
    // The gap is the wait on permit and what runs before the plugin.
    let volumes = Plugin::new(VOLUMES, Work::Runs, Concurrency::Alone).taking(Duration::from_secs(60));
    let writer = Plugin::new(CLAIMS, Work::Runs, Concurrency::Alone);
    assert_eq!(gap(Duration::from_secs(5), CLAIMS, &groups(&[volumes, writer])), Some(Duration::from_secs(65)));
}

#[test]
fn a_pod_that_waits_on_permit_is_a_partial_reservation_and_no_error() {
    // req: 5278-RES-7
    let waiting = pod("p", 0);
    let claims = vec![ClaimState::Chosen("c".to_owned())];
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").permit(PermitWait::Waiting).claims(claims.clone());
    let reaction = handle(&mut memory, Input::CycleSucceeded(placed));
    assert_eq!(reaction.notices, [Notice::PartialReservation { pod: waiting.key }]);
    assert_eq!(visible_reservation(Some("host"), &claims), Reservation::Partial);
    assert_eq!(visible_reservation(Some("host"), &[ClaimState::Allocated]), Reservation::Complete);
    assert_eq!(visible_reservation(None, &claims), Reservation::None);
    assert_eq!(visible_reservation(None, &[ClaimState::Allocated]), Reservation::Partial, "the devices alone");
    let first = Plugin::new(CLAIMS, Work::Runs, Concurrency::Parallel);
    assert_eq!(gap(Duration::ZERO, CLAIMS, &groups(&[first])), Some(Duration::ZERO));
}

#[test]
fn nomination_and_allocation_end_together() {
    let waiting = pod("p", 0);
    let claims = vec![ClaimState::Allocated, ClaimState::Chosen("c".to_owned())];
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let placed = placed(&waiting, "host").pre_flights(vec![PreFlight::Success]).claims(claims);
    handle(&mut memory, Input::CycleSucceeded(placed));
    let condition = nnn::pod::ScheduledCondition::failed("SchedulerError", "volume");
    let failed = Input::BindingFailed { popped: waiting.clone(), stage: FailedStage::PreBind, condition };
    let reaction = handle(&mut memory, failed);
    let [drop, wake, patch, requeue] = &reaction.commands[..] else { panic!("{reaction:?}") };
    assert_eq!(*drop, Command::DropReservation { pod: waiting.key.clone(), claim: "c".to_owned() });
    assert_eq!(*wake, Command::WakeAll { except: None });
    assert!(matches!(patch, Command::PatchConditionAndNnn { nnn: NominatingInfo::Override(None), .. }));
    assert_eq!(*requeue, Command::Requeue { pod: waiting.key });
    assert_eq!(patches(&reaction).len(), 1);
}

#[test]
fn a_pre_flight_that_fails_drops_what_was_chosen() {
    let waiting = pod("p", 0);
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let claims = vec![ClaimState::Allocated, ClaimState::Chosen("c".to_owned())];
    let placed = placed(&waiting, "host").pre_flights(vec![failing()]).claims(claims);
    let reaction = handle(&mut memory, Input::CycleSucceeded(placed));
    let expected = Command::DropAllocation { pod: waiting.key, claim: "c".to_owned() };
    assert_eq!(taken_back(&reaction.commands), [&expected]);
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
        let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
        let claims = vec![ClaimState::Allocated, ClaimState::Chosen("c".to_owned())];
        handle(&mut memory, Input::CycleSucceeded(placed(&waiting, "host").permit(permit).claims(claims)));
        let failed = Input::BindingFailed { popped: waiting.clone(), stage, condition: super::common::unschedulable() };
        let commands = handle(&mut memory, failed).commands;
        assert_eq!(taken_back(&commands), expected, "{permit:?} {stage:?}");
    }
}

#[test]
fn the_devices_of_a_claim_that_another_pod_shares_are_left_to_it() {
    let (first, second) = (pod("first", 0), pod("second", 0));
    let mut memory = scheduler(Options::default(), &[first.clone(), second.clone()]);
    let place = |pod, claim| Input::CycleSucceeded(placed(pod, "n").claims(vec![claim]));
    handle(&mut memory, place(&first, ClaimState::Chosen("c".to_owned())));
    handle(&mut memory, place(&second, ClaimState::Allocated));
    handle(&mut memory, Input::Bound { pod: second.key });
    let condition = super::common::unschedulable();
    let failed = Input::BindingFailed { popped: first.clone(), stage: FailedStage::Bind, condition };
    let commands = handle(&mut memory, failed).commands;
    assert_eq!(taken_back(&commands), [&Command::DropReservation { pod: first.key, claim: "c".to_owned() }]);
}

/// The commands that undo what a cycle has done to claims.
fn taken_back(commands: &[Command]) -> Vec<&Command> {
    let takes_back =
        |command: &&Command| matches!(command, Command::DropAllocation { .. } | Command::DropReservation { .. });
    commands.iter().filter(takes_back).collect()
}

#[test]
fn a_rejected_pod_is_served_before_the_others_are_woken() {
    let waiting = pod("p", 0);
    let mut memory = scheduler(Options::default(), std::slice::from_ref(&waiting));
    handle(&mut memory, Input::CycleSucceeded(placed(&waiting, "host").permit(PermitWait::Waiting)));
    let condition = super::common::unschedulable();
    let failed = Input::BindingFailed { popped: waiting, stage: FailedStage::Permit, condition };
    let last = handle(&mut memory, failed).commands.pop();
    assert_eq!(last, Some(Command::WakeAll { except: Some("p".to_owned()) }));
}

#[test]
fn what_is_kept_after_a_failed_binding() {
    use FailedStage::{Bind, Permit, PreBind, PreFlight};
    for (policy, keeps) in [
        (OnBindingFailure::Clear, &[][..]),
        (OnBindingFailure::KeepAfterPreBind, &[Bind]),
        (OnBindingFailure::Keep, &[PreFlight, Permit, PreBind, Bind]),
    ] {
        for stage in [PreFlight, Permit, PreBind, Bind] {
            let expected = if keeps.contains(&stage) { NominatingInfo::to("h") } else { NominatingInfo::clear() };
            assert_eq!(policy.decide(stage, "h"), expected, "{policy:?} at {stage:?}");
        }
    }
}

#[test]
fn claims_are_written_after_the_wait_on_permit_and_also_without_a_patch() {
    // req: 5278-RES-4, 5278-RES-7
    let off = Options::default().with_gates(Gates::default().without(Gate::Expectation));
    for (options, nnn) in [(Options::default(), ""), (Options::default(), "host"), (off, "")] {
        for permit in [PermitWait::None, PermitWait::Waiting] {
            let waiting = pod("p", 0).nominated_to(nnn);
            let mut it = scheduler(options, std::slice::from_ref(&waiting));
            let placed = placed(&waiting, "host").pre_flights(vec![PreFlight::Success]).permit(permit);
            let placed = placed.claims(vec![ClaimState::Allocated, ClaimState::Chosen("c".to_owned())]);
            let commands = handle(&mut it, Input::CycleSucceeded(placed)).commands;
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
