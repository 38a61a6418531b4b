//! Known races of kube-scheduler: each happens with its behavior and does not with the safe one.

use dra_attrs::{Component, Gate, Profile};
use nnn::{
    Assumed, Behavior, BindingClaim, Command, CycleOutcome, FailedStage, NoPatchReason, NominatingInfo, Nomination,
    NominationOptions, NominationState, NominationTracker, Nominator, PodKey, PodSnapshot, PreFlight,
    ScheduledCondition, TrackerInput, TrackerOutput,
};

use super::common::{
    OnNode, cpu, fails, handle, kube_scheduler, nominated, patches, pod, safe, tracker, version, with,
};

/// Plays with the behavior of kube-scheduler, then with the safe one.
fn both<T>(play: impl Fn(NominationOptions) -> T) -> (T, T) {
    (play(kube_scheduler()), play(safe()))
}

fn memory(tracker: &NominationTracker) -> Option<String> {
    tracker.nominator().nominated_node("p").map(str::to_owned)
}

/// Builds the observation of a pod after a change of its labels.
fn relabelled(pod: &PodSnapshot, number: u64) -> TrackerInput {
    TrackerInput::PodObserved(version(pod.clone(), number))
}

#[test]
fn a_nomination_is_lost_by_an_unrelated_update() {
    let (naive, safe) = both(|options| {
        let hinted = version(pod("p", 1).with_nomination("x"), 1);
        let mut it = tracker(options, std::slice::from_ref(&hinted));
        handle(&mut it, fails(&hinted, nominated("z")));
        assert_eq!(memory(&it).as_deref(), Some("z"));
        // The PATCH is on its way; a label changes.
        handle(&mut it, relabelled(&hinted, 2));
        let meanwhile = memory(&it);
        // Answer and echo.
        handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: Some(3) });
        handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1).with_nomination("z"), 3)));
        assert_eq!(memory(&it).as_deref(), Some("z"));
        meanwhile
    });
    assert_eq!(naive.as_deref(), Some("x"), "z is free for others, x is taken");
    assert_eq!(safe.as_deref(), Some("z"));
}

#[test]
fn a_released_nomination_comes_back() {
    let (naive, safe) = both(|options| {
        let hinted = version(pod("p", 1).with_nomination("x"), 1);
        let mut it = tracker(options, std::slice::from_ref(&hinted));
        handle(&mut it, fails(&hinted, CycleOutcome::NoCandidates));
        assert_eq!(memory(&it), None);
        handle(&mut it, relabelled(&hinted, 2));
        let meanwhile = memory(&it);
        handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1), 3)));
        assert_eq!(memory(&it), None);
        meanwhile
    });
    assert_eq!(naive.as_deref(), Some("x"), "revived");
    assert_eq!(safe, None);
}

#[test]
fn an_old_update_after_the_answer_is_still_old() {
    let hinted = version(pod("p", 1).with_nomination("x"), 1);
    let mut it = tracker(safe(), std::slice::from_ref(&hinted));
    handle(&mut it, fails(&hinted, nominated("z")));
    handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: Some(9) });
    handle(&mut it, relabelled(&hinted, 5));
    assert_eq!(memory(&it).as_deref(), Some("z"), "version 5 is older than the PATCH");
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1).with_nomination("w"), 10)));
    assert_eq!(memory(&it).as_deref(), Some("w"), "version 10 is somebody else's later write");
}

#[test]
fn a_write_that_failed_protects_nothing() {
    let hinted = version(pod("p", 1).with_nomination("x"), 1);
    let mut it = tracker(safe(), std::slice::from_ref(&hinted));
    handle(&mut it, fails(&hinted, nominated("z")));
    handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: None });
    handle(&mut it, relabelled(&hinted, 2));
    assert_eq!(memory(&it).as_deref(), Some("x"));
}

#[test]
fn an_answer_to_an_earlier_write_leaves_the_later_one_protected() {
    // The first write is seen before it is answered, or it fails: either way the second is still on its way.
    for (seen, answered) in [(version(pod("p", 0), 2), Some(2)), (pod("p", 0), None)] {
        let mut nominator = Nominator::new(Behavior::Safe);
        nominator.write_issued("p", Some("y"));
        nominator.write_issued("p", Some("z"));
        nominator.observed(&pod("p", 0), &seen);
        nominator.write_answered("p", answered);
        assert_eq!(nominator.unseen_write("p"), Some(Some("z")));
    }
}

#[test]
fn two_writes_on_their_way_are_seen_when_the_last_one_is() {
    let mut nominator = Nominator::new(Behavior::Safe);
    let at = |node: &str, number| version(pod("p", 0).with_nomination(node), number);
    nominator.add(&at("x", 1), &NominatingInfo::nominate("y"), Some(&at("x", 1)));
    nominator.write_issued("p", Some("y"));
    nominator.add(&at("x", 1), &NominatingInfo::nominate("z"), Some(&at("x", 1)));
    nominator.write_issued("p", Some("z"));
    nominator.write_answered("p", Some(2));
    nominator.update(&at("x", 1), &at("y", 2), Some(&at("y", 2)));
    assert_eq!(nominator.nominated_node("p"), Some("z"), "the echo of the first PATCH");
    nominator.write_answered("p", Some(3));
    nominator.update(&at("y", 2), &at("z", 3), Some(&at("z", 3)));
    assert_eq!((nominator.nominated_node("p"), nominator.unseen_write("p")), (Some("z"), None));
}

fn answered(uid: &str, number: u64) -> TrackerInput {
    TrackerInput::PatchAnswered { uid: uid.to_owned(), version: Some(number) }
}

/// Builds a failed cycle with a message in its condition.
fn fails_because(pod: &PodSnapshot, outcome: CycleOutcome, message: &str) -> TrackerInput {
    let condition = ScheduledCondition::failed("Unschedulable", message);
    TrackerInput::CycleFailed { queued_pod: pod.clone(), outcome, condition }
}

#[test]
fn the_answer_to_a_condition_is_not_that_to_a_later_nomination() {
    let hinted = version(pod("p", 1).with_nomination("x"), 1);
    let mut it = tracker(safe(), std::slice::from_ref(&hinted));
    handle(&mut it, fails_because(&hinted, CycleOutcome::VictimsTerminating, "a"));
    handle(&mut it, fails_because(&hinted, nominated("z"), "b"));
    handle(&mut it, answered("p", 10));
    assert_eq!(handle(&mut it, relabelled(&hinted, 10)), TrackerOutput::default());
    assert_eq!(memory(&it).as_deref(), Some("z"), "its own PATCH is not answered");
    handle(&mut it, answered("p", 11));
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1).with_nomination("w"), 12)));
    assert_eq!(memory(&it).as_deref(), Some("w"));
}

#[test]
fn the_first_of_two_like_echoes_is_not_the_last() {
    let waiting = version(pod("p", 1), 1);
    let mut it = tracker(safe(), std::slice::from_ref(&waiting));
    for (outcome, message) in [(nominated("n"), "a"), (CycleOutcome::NoNodes, "b"), (nominated("n"), "c")] {
        handle(&mut it, fails_because(&waiting, outcome, message));
    }
    let to_n = || pod("p", 1).with_nomination("n");
    for echo in [version(to_n(), 2), version(pod("p", 1), 3), version(to_n(), 4)] {
        assert_eq!(handle(&mut it, TrackerInput::PodObserved(echo)), TrackerOutput::default());
        assert_eq!(it.state("p"), NominationState::NominatedPreempting { node: "n".to_owned() });
    }
    // The answers come last; from now on the status counts.
    (2..5).for_each(|number| drop(handle(&mut it, answered("p", number))));
    assert_eq!(it.nominator().unseen_write("p"), None);
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1), 5)));
    assert_eq!(memory(&it), None);
}

#[test]
fn a_clear_that_was_seen_ends_a_nomination_that_never_was() {
    // The watch skips the version between the nomination and the clear of a preemption, before or after the answers.
    let (lower, higher) = (version(pod("p", 0), 1), version(pod("higher", 10), 2));
    let start = || {
        let mut it = tracker(safe(), &[lower.clone(), higher.clone()]);
        handle(&mut it, fails(&lower, nominated("n")));
        handle(&mut it, fails(&higher, nominated("n")));
        assert_eq!(memory(&it).as_deref(), Some("n"), "until the clear is seen");
        it
    };
    let answers = [answered("p", 11), answered("p", 12)];
    let echo = [relabelled(&lower, 12)];
    for inputs in [[&answers[..], &echo].concat(), [&echo[..], &answers].concat()] {
        let mut it = start();
        let commands: Vec<Command> = inputs.into_iter().flat_map(|input| handle(&mut it, input).commands).collect();
        let release = Command::Release { pod: lower.key.clone(), node: "n".to_owned() };
        assert_eq!(commands, [release, Command::RequeueLowerOrEqual { priority: 0, except: None }]);
        assert_eq!(it.state("p"), NominationState::Pending);
    }
}

#[test]
fn an_old_echo_of_a_condition_is_not_what_was_written_last() {
    let waiting = version(pod("p", 0), 1);
    let (naive, safe) = both(|options| {
        let mut it = tracker(options, std::slice::from_ref(&waiting));
        for (message, number) in [("m1", 2), ("m2", 3)] {
            handle(&mut it, fails_because(&waiting, CycleOutcome::NoNodes, message));
            handle(&mut it, answered("p", number));
        }
        let first = ScheduledCondition::failed("Unschedulable", "m1");
        handle(&mut it, TrackerInput::PodObserved(with(version(pod("p", 0), 2), |pod| pod.scheduled = Some(first))));
        patches(&handle(&mut it, fails_because(&waiting, CycleOutcome::NoNodes, "m1"))).len()
    });
    assert_eq!((naive, safe), (0, 1), "m2 is what the API server has");
}

#[test]
fn a_condition_without_an_echo_is_written_again() {
    let waiting = version(pod("p", 0), 1);
    let (naive, safe) = both(|options| {
        let mut it = tracker(options, std::slice::from_ref(&waiting));
        handle(&mut it, fails(&waiting, CycleOutcome::NoNodes));
        patches(&handle(&mut it, fails(&waiting, CycleOutcome::NoNodes))).len()
    });
    assert_eq!((naive, safe), (1, 0));
}

#[test]
fn a_pod_in_no_queue_reserves_nothing() {
    // While its PATCH is on its way the pod is in no queue. Upstream then reads a stub of priority 0 without requests.
    let promised = pod("promised", 10).with_requests(cpu(4));
    let mut nominator = Nominator::new(Behavior::Safe);
    nominator.insert(Nomination::new(&promised, "n"));
    let other = pod("other", 10).with_requests(cpu(4));
    let in_no_queue = |_: &PodKey| None;
    let naive = nominator.resolve_on_node("n", in_no_queue);
    assert!(other.fits_unreserved_resources(&cpu(4), &naive), "the reservation has evaporated");
    assert!(!other.fits_unreserved_resources(&cpu(4), nominator.on_node("n")));
    let in_a_queue = |_: &PodKey| Some(&promised);
    assert!(!other.fits_unreserved_resources(&cpu(4), &nominator.resolve_on_node("n", in_a_queue)));
}

#[test]
fn a_pod_that_was_made_anew_leaves_a_phantom() {
    let play = |options: Behavior| {
        let mut nominator = Nominator::new(options);
        let (old, anew) = (pod("p", 0).with_uid("old"), pod("p", 0).with_uid("new"));
        nominator.add(&old, &NominatingInfo::nominate("n"), Some(&old));
        // Deleted and made again while a cycle still works on the old copy.
        nominator.forget("old");
        nominator.add(&anew, &NominatingInfo::Noop, Some(&anew));
        nominator.add(&old, &NominatingInfo::nominate("n"), Some(&anew));
        // Every event of the living pod comes.
        nominator.forget("new");
        nominator.len()
    };
    assert_eq!(play(Behavior::KubeScheduler), 1, "nobody will ever remove it");
    assert_eq!(play(Behavior::Safe), 0);
}

#[test]
fn a_nomination_is_cleared_one_failure_late() {
    // The watch has not shown our PATCH yet, so that the stale copy says there is nothing to clear.
    let (naive, safe) = both(|options| {
        let waiting = version(pod("p", 0), 1);
        let mut it = tracker(options, std::slice::from_ref(&waiting));
        let pre_flights = vec![PreFlight::Success];
        handle(&mut it, TrackerInput::CycleSucceeded(Assumed::new(&waiting.key, "n").with_pre_flights(pre_flights)));
        let condition = ScheduledCondition::failed("SchedulerError", "bind");
        let stage = FailedStage::Bind;
        let output = handle(
            &mut it,
            TrackerInput::BindingFailed { queued_pod: waiting.clone(), stage, condition: condition.clone() },
        );
        assert_eq!(patches(&output).len(), 1, "the condition is new");
        // The same failure again: only the nomination could be a reason to write.
        let mut it = tracker(options, &[with(waiting.clone(), |pod| pod.scheduled = Some(condition.clone()))]);
        let pre_flights = vec![PreFlight::Success];
        handle(&mut it, TrackerInput::CycleSucceeded(Assumed::new(&waiting.key, "n").with_pre_flights(pre_flights)));
        patches(&handle(&mut it, TrackerInput::BindingFailed { queued_pod: waiting, stage, condition })).len()
    });
    assert_eq!((naive, safe), (0, 1));
}

#[test]
fn a_late_condition_on_a_bound_pod() {
    let (naive, safe) = both(|options| {
        let waiting = version(pod("p", 0), 1);
        let mut it = tracker(options, std::slice::from_ref(&waiting));
        handle(&mut it, TrackerInput::PodObserved(version(waiting.clone().with_node("elsewhere"), 2)));
        patches(&handle(&mut it, fails(&waiting, CycleOutcome::NoCandidates))).len()
    });
    assert_eq!((naive, safe), (1, 0));
}

#[test]
fn a_write_to_a_bound_pod_is_not_waited_for() {
    let waiting = version(pod("p", 0), 1);
    let mut it = tracker(kube_scheduler(), std::slice::from_ref(&waiting));
    handle(&mut it, TrackerInput::PodObserved(version(waiting.clone().with_node("elsewhere"), 2)));
    assert_eq!(patches(&handle(&mut it, fails(&waiting, nominated("x")))).len(), 1);
    assert_eq!(it.nominator().unseen_write("p"), None);
}

#[test]
fn a_late_condition_is_compared_with_the_copy_that_came_out_of_the_queue() {
    let condition = ScheduledCondition::failed("Unschedulable", "m");
    let queued_pod = with(version(pod("p", 0), 1), |pod| pod.scheduled = Some(condition));
    let bound = || TrackerInput::PodObserved(version(pod("p", 0).with_node("elsewhere"), 2));
    let gone = || TrackerInput::PodDeleted { uid: "p".to_owned() };
    let remade = || TrackerInput::PodObserved(version(pod("p", 0).with_uid("anew").with_node("elsewhere"), 2));
    for (end, message, expected) in [
        (bound(), "m", Some(NoPatchReason::AlreadySet)),
        (gone(), "m", Some(NoPatchReason::AlreadySet)),
        (remade(), "m", Some(NoPatchReason::AlreadySet)),
        (bound(), "another", None),
        (gone(), "another", None),
        (remade(), "another", None),
    ] {
        let mut it = tracker(kube_scheduler(), std::slice::from_ref(&queued_pod));
        handle(&mut it, end.clone());
        let commands = handle(&mut it, fails_because(&queued_pod, CycleOutcome::NoCandidates, message)).commands;
        let [write, done] = &commands[..] else { panic!("{end:?} {commands:?}") };
        assert_eq!(*done, Command::Done { pod: queued_pod.key.clone() });
        let unwritten = match write {
            Command::None { reason, .. } => Some(*reason),
            _ => None,
        };
        assert_eq!((write.is_patch(), unwritten), (expected.is_none(), expected), "{end:?} {message}");
    }
}

#[test]
fn a_bound_pod_whose_resize_waits_is_requeued_only_with_the_gate() {
    let waiting = version(pod("p", 0), 1);
    let resizing = with(version(waiting.clone().with_node("n"), 2), |pod| pod.resize_deferred = true);
    let play = |options: NominationOptions| {
        let mut it = tracker(options, &[waiting.clone(), resizing.clone()]);
        handle(&mut it, fails(&waiting, CycleOutcome::NoCandidates)).commands
    };
    let on = safe().scheduler.gates().with(Gate::InPlacePodVerticalScalingSchedulerPreemption);
    let (pod, reason) = (waiting.key.clone(), NoPatchReason::DeferredResize);
    let requeued = [Command::None { pod: pod.clone(), reason }, Command::Requeue { pod: pod.clone() }];
    assert_eq!(
        both(|options| play(options.with_scheduler(Component::new(Profile::V1_37, on)))),
        (requeued.to_vec(), requeued.to_vec())
    );
    let (naive, safe) = both(play);
    assert!(matches!(&naive[..], [write, Command::Done { .. }] if write.is_patch()), "{naive:?}");
    assert_eq!(safe, [Command::None { pod: pod.clone(), reason: NoPatchReason::PodBound }, Command::Done { pod }]);
}

#[test]
fn the_end_of_a_nomination_that_was_never_written_wakes_nobody() {
    let (naive, safe) = both(|options| {
        let waiting = pod("p", 3);
        let mut it = tracker(options, std::slice::from_ref(&waiting));
        handle(&mut it, fails(&waiting, nominated("n")));
        handle(&mut it, TrackerInput::PodDeleted { uid: "p".to_owned() }).commands
    });
    let release = || Command::Release { pod: pod("p", 0).key, node: "n".to_owned() };
    assert_eq!(naive, [release()]);
    assert_eq!(safe, [release(), Command::RequeueLowerOrEqual { priority: 3, except: Some("p".to_owned()) }]);
}

/// Builds a pod whose binding cycle has chosen devices for the claim `c`.
fn binding(waiting: &PodSnapshot, waits: bool) -> NominationTracker {
    let mut it = tracker(safe(), std::slice::from_ref(waiting));
    let claims = vec![BindingClaim::Allocated, BindingClaim::Chosen("c".to_owned())];
    let placed = Assumed::new(&waiting.key, "n").with_pre_flights(vec![PreFlight::Success]).with_claims(claims);
    let placed = with(placed, |it| it.waits_on_permit = waits);
    handle(&mut it, TrackerInput::CycleSucceeded(placed));
    it
}

fn binding_fails(pod: &PodSnapshot) -> TrackerInput {
    let condition = ScheduledCondition::failed("SchedulerError", "too late");
    TrackerInput::BindingFailed { queued_pod: pod.clone(), stage: FailedStage::Bind, condition }
}

#[test]
fn a_pod_that_is_deleted_while_it_binds_leaves_nothing() {
    let waiting = version(pod("p", 0), 1);
    let reject = || Command::RejectWaiting { pod: pod("p", 0).key };
    // Whether the allocation was written after the wait on permit is not known.
    let chosen = || Command::DropAllocation { pod: pod("p", 0).key, claim: "c".to_owned() };
    let drop = || Command::DropReservation { pod: pod("p", 0).key, claim: "c".to_owned() };
    let wake = || Command::RequeueAll { except: None };
    let gone = || TrackerInput::PodDeleted { uid: "p".to_owned() };
    let deleting = || TrackerInput::PodObserved(with(version(pod("p", 0), 2), |pod| pod.deleting = true));
    let replaced = || TrackerInput::PodObserved(version(pod("p", 0).with_uid("another"), 2));
    for (waits, inputs, expected) in [
        (true, vec![gone()], vec![reject(), chosen(), drop(), wake()]),
        (true, vec![replaced()], vec![reject(), chosen(), drop(), wake()]),
        (true, vec![deleting(), gone()], vec![reject(), wake(), chosen(), drop(), wake()]),
        (false, vec![gone()], vec![drop(), wake()]),
        (false, vec![deleting(), gone()], vec![wake(), drop(), wake()]),
    ] {
        let mut it = binding(&waiting, waits);
        let commands: Vec<Command> = inputs.into_iter().flat_map(|input| handle(&mut it, input).commands).collect();
        assert_eq!(commands, expected);
        // The cycle tells its end when the pod is gone already.
        let late = handle(&mut it, binding_fails(&waiting)).commands;
        assert!(
            matches!(&late[..], [Command::RequeueAll { .. }, Command::None { .. }, Command::Done { .. }]),
            "{late:?}"
        );
    }
}

#[test]
fn a_binding_cycle_that_fails_after_a_binding_from_elsewhere_was_seen() {
    let waiting = version(pod("p", 0), 1);
    for (node, drops) in [("elsewhere", 1), ("n", 0)] {
        let mut it = binding(&waiting, false);
        handle(&mut it, TrackerInput::PodObserved(version(pod("p", 0).with_node(node), 2)));
        let commands = handle(&mut it, binding_fails(&waiting)).commands;
        let drop = Command::DropReservation { pod: waiting.key.clone(), claim: "c".to_owned() };
        assert_eq!(commands[..drops], vec![drop; drops], "the devices on {node}");
        let nothing = Command::None { pod: waiting.key.clone(), reason: NoPatchReason::PodBound };
        let done = Command::Done { pod: waiting.key.clone() };
        assert_eq!(commands[drops..], [Command::RequeueAll { except: None }, nothing, done]);
        assert_eq!(it.state("p"), NominationState::Bound { node: node.to_owned() });
        assert!(it.handle(binding_fails(&waiting)).is_err(), "a cycle ends once");
    }
}

#[test]
fn a_binding_that_is_seen_before_it_is_told() {
    let waiting = version(pod("p", 0), 1);
    let bound = || TrackerInput::Bound { pod: pod("p", 0).key };
    let done = Command::Done { pod: waiting.key.clone() };
    let mut it = binding(&waiting, false);
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 0).with_node("n"), 2)));
    assert_eq!(handle(&mut it, bound()).commands, std::slice::from_ref(&done));
    assert!(it.handle(bound()).is_err(), "a cycle ends once");
    let mut it = binding(&waiting, false);
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 0).with_node("n"), 2)));
    handle(&mut it, TrackerInput::PodDeleted { uid: "p".to_owned() });
    assert_eq!(handle(&mut it, bound()).commands, [done]);
}

#[test]
fn a_stale_update_does_not_undo_a_binding() {
    // req: 5278-STATE-1, 5278-CACHE-2
    let waiting = version(pod("p", 0), 1);
    let mut it = binding(&waiting, false);
    handle(&mut it, TrackerInput::Bound { pod: waiting.key.clone() });
    handle(&mut it, relabelled(&waiting, 2));
    assert_eq!(it.pod("p").and_then(|pod| pod.node.as_deref()), Some("n"));
    let nothing = Command::None { pod: waiting.key.clone(), reason: NoPatchReason::PodBound };
    let commands = handle(&mut it, fails(&waiting, nominated("z"))).commands;
    assert_eq!(commands, [nothing, Command::Done { pod: waiting.key }]);
    assert_eq!(memory(&it), None);
}

#[test]
fn a_pod_that_has_ended_is_as_good_as_deleted() {
    let ended =
        |pod: PodSnapshot, number| TrackerInput::PodObserved(with(version(pod, number), |pod| pod.has_ended = true));
    let nominated = version(pod("p", 3).with_nomination("n"), 1);
    let bound = version(pod("b", 0).with_node("n"), 2);
    let (naive, safe) = both(|options| {
        let mut it = tracker(options, &[nominated.clone(), bound.clone()]);
        let commands = handle(&mut it, ended(nominated.clone(), 3)).commands;
        assert_eq!((it.state("p"), memory(&it)), (NominationState::Gone, None));
        // What a bound pod used is free, and there is no place that others waited for.
        assert_eq!(handle(&mut it, ended(bound.clone(), 4)), TrackerOutput::default());
        assert_eq!(it.pods().count(), 0);
        // One that has ended before it was seen, and the deletion that follows, are no news.
        assert_eq!(handle(&mut it, ended(pod("late", 0).with_nomination("n"), 5)), TrackerOutput::default());
        assert_eq!(handle(&mut it, TrackerInput::PodDeleted { uid: "p".to_owned() }), TrackerOutput::default());
        assert!(it.nominator().is_empty());
        commands
    });
    let release = Command::Release { pod: nominated.key, node: "n".to_owned() };
    assert_eq!(safe, [release, Command::RequeueLowerOrEqual { priority: 3, except: Some("p".to_owned()) }]);
    assert_eq!(naive, safe);
}

#[test]
fn a_pod_that_ends_while_it_binds_leaves_nothing() {
    let waiting = version(pod("p", 0), 1);
    let mut it = binding(&waiting, true);
    let failed = with(version(waiting.clone(), 2), |pod| pod.has_ended = true);
    let commands = handle(&mut it, TrackerInput::PodObserved(failed)).commands;
    assert!(
        matches!(commands[..], [Command::RejectWaiting { .. }, .., Command::RequeueAll { except: None }]),
        "{commands:?}"
    );
    let late = handle(&mut it, binding_fails(&waiting)).commands;
    assert_eq!(late.last(), Some(&Command::Done { pod: waiting.key }));
}

#[test]
fn a_nomination_ends_when_somebody_else_binds_the_pod() {
    // req: 5278-CACHE-2
    for (options, wakes) in [(safe(), 1), (kube_scheduler(), 0)] {
        let hinted = version(pod("p", 3).with_nomination("n"), 1);
        let mut it = tracker(options, std::slice::from_ref(&hinted));
        let bound = version(hinted.clone().with_node("m"), 2);
        let commands = handle(&mut it, TrackerInput::PodObserved(bound)).commands;
        let release = Command::Release { pod: hinted.key, node: "n".to_owned() };
        let wake = Command::RequeueLowerOrEqual { priority: 3, except: Some("p".to_owned()) };
        assert_eq!(commands, [vec![release], vec![wake; wakes]].concat());
        assert!(it.nominator().is_empty() && it.nominator().nodes().next().is_none());
    }
}

#[test]
fn pods_of_another_scheduler_are_not_looked_at() {
    let ours = version(pod("ours", 0).with_nomination("n"), 1);
    let theirs =
        with(version(pod("theirs", 0).with_nomination("n"), 2), |pod| pod.scheduler_name = "another".to_owned());
    let mut it = NominationTracker::new(safe()).with_scheduler_name("default-scheduler");
    for _ in 0..2 {
        assert_eq!(handle(&mut it, TrackerInput::PodObserved(theirs.clone())), TrackerOutput::default());
        handle(&mut it, TrackerInput::PodObserved(ours.clone()));
        assert_eq!((it.state("theirs"), it.pods().count(), it.nominator().len()), (NominationState::Gone, 1, 1));
        it = it.rebuild(safe());
    }
}

#[test]
fn a_later_write_of_somebody_else_counts_when_the_answer_shows_that_it_is_later() {
    let hinted = version(pod("p", 1).with_nomination("x"), 1);
    let mut it = tracker(safe(), std::slice::from_ref(&hinted));
    handle(&mut it, fails(&hinted, nominated("z")));
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1).with_nomination("w"), 4)));
    assert_eq!(memory(&it).as_deref(), Some("z"), "the PATCH may be the later one");
    handle(&mut it, answered("p", 3));
    assert_eq!(memory(&it).as_deref(), Some("w"));
}

#[test]
fn an_assumed_pod_gets_no_nomination_when_the_answer_to_its_write_comes_last() {
    let waiting = version(pod("p", 1), 1);
    let mut it = binding(&waiting, true);
    assert!(it.state("p").is_assumed() && memory(&it).is_none());
    handle(&mut it, TrackerInput::PodObserved(version(pod("p", 1).with_nomination("w"), 4)));
    handle(&mut it, answered("p", 3));
    assert!(it.state("p").is_assumed() && memory(&it).is_none(), "{:?}", it.state("p"));
}
