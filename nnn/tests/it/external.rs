use nnn::binding::failure::{FailedStage, OnBindingFailure};
use nnn::binding::start::PreFlight;
use nnn::command::Command;
use nnn::external::{
    Clearing, ExternalState, NodePresence, Owner, Permission, SchedulerOccasion, Write, Writer, external_state,
    may_write,
};
use nnn::nominating::NominatingInfo;
use nnn::options::Options;
use nnn::pod::PodView;
use nnn::scheduler::{Input, Notice};
use nnn::scheduling::cycle::CycleOutcome;
use nnn::state::State;
use serde_json::{from_value, json};

use super::common::{fails, handle, nominated, placed, pod, scheduler, unschedulable, version, with, written};

fn external(name: &str) -> Writer {
    Writer::External(name.to_owned())
}

fn owned(name: &str) -> Owner {
    Owner::External(name.to_owned())
}

#[test]
fn who_may_write() {
    // req: 5278-ALT-1
    use Permission::{Allowed, Denied, NoOp};
    let set = || Write::Set("n".to_owned());
    let rows = [
        (external("a"), Owner::Nobody, Allowed, NoOp),
        (external("a"), owned("a"), Allowed, Allowed),
        (external("a"), owned("b"), Denied, Denied),
        (external("a"), Owner::Scheduler, Denied, Denied),
        (Writer::Scheduler(SchedulerOccasion::Preemption), owned("a"), Allowed, Denied),
        (Writer::Scheduler(SchedulerOccasion::BindingStart), owned("a"), Allowed, Denied),
        (Writer::Scheduler(SchedulerOccasion::BindingStart), Owner::Scheduler, Allowed, Denied),
    ];
    for (writer, owner, sets, clears) in rows {
        assert_eq!(may_write(&writer, &owner, &set(), Some(1), Some(1)), sets, "{writer:?} sets over {owner:?}");
        assert_eq!(may_write(&writer, &owner, &Write::Clear, Some(1), Some(1)), clears, "{writer:?} clears {owner:?}");
    }
    // A write on an old version has to look again.
    for owner in [Owner::Nobody, owned("a")] {
        assert_eq!(may_write(&external("a"), &owner, &set(), Some(1), Some(2)), Permission::Conflict);
    }
    assert_eq!(may_write(&external("a"), &owned("a"), &Write::Clear, Some(1), Some(2)), Permission::Conflict);
}

#[test]
fn the_scheduler_records_at_two_occasions_and_never_clears() {
    // req: 5278-ALT-7
    let scheduler = |occasion, write: &Write| may_write(&Writer::Scheduler(occasion), &owned("a"), write, None, None);
    let set = Write::Set("m".to_owned());
    assert_eq!(scheduler(SchedulerOccasion::Preemption, &set), Permission::Allowed);
    assert_eq!(scheduler(SchedulerOccasion::BindingStart, &set), Permission::Allowed);
    assert_eq!(scheduler(SchedulerOccasion::Other, &set), Permission::Denied);
    for occasion in [SchedulerOccasion::Preemption, SchedulerOccasion::BindingStart, SchedulerOccasion::Other] {
        assert_eq!(scheduler(occasion, &Write::Clear), Permission::Denied);
    }
}

#[test]
fn what_is_cleared_by_which_policy() {
    use Clearing::{Always, KeepExternal, KeepIfNodeMissing, Never};
    let clears = |policy: Clearing, owner: &Owner, node| {
        policy.apply(NominatingInfo::clear(), owner, node) == NominatingInfo::clear()
    };
    use NodePresence::{Missing, Present};
    for (policy, own_here, own_gone, foreign_here, foreign_gone) in [
        (Always, true, true, true, true),
        (Never, false, false, false, false),
        (KeepIfNodeMissing, true, false, true, false),
        (KeepExternal, true, true, false, false),
    ] {
        let owners = [Owner::Scheduler, owned("a")];
        let found = owners.each_ref().map(|owner| [Present, Missing].map(|node| clears(policy, owner, node)));
        assert_eq!(found, [[own_here, own_gone], [foreign_here, foreign_gone]], "{policy:?}");
        for info in [NominatingInfo::Noop, NominatingInfo::to("n")] {
            assert_eq!(policy.apply(info.clone(), &owned("a"), Missing), info, "only a clear is held back");
        }
    }
}

#[test]
fn the_six_states_of_the_alternative() {
    // req: 5278-ALT-3
    let node = || "n".to_owned();
    use NodePresence::{Missing, Present};
    let rows = [
        (State::Pending, Present, Some(ExternalState::Pending)),
        (State::NominatedHint { node: node() }, Present, Some(ExternalState::Proposed)),
        (State::NominatedHint { node: node() }, Missing, Some(ExternalState::WaitingForNode)),
        (State::NominatedPreempting { node: node() }, Present, Some(ExternalState::WaitingForPreemption)),
        (State::AssumedAnnounced { node: node() }, Present, Some(ExternalState::WaitingForBinding)),
        (State::AssumedQuiet { node: node() }, Present, Some(ExternalState::WaitingForBinding)),
        (State::Bound { node: node() }, Present, Some(ExternalState::Bound)),
        (State::Gone, Present, None),
    ];
    for (state, node, expected) in rows {
        assert_eq!(external_state(&state, node), expected, "{state}");
    }
}

#[test]
fn the_object_tells_its_owner() {
    let owner = |manager: &str, fields: serde_json::Value| {
        let pod = json!({
            "metadata": {"name": "p", "uid": "u", "managedFields": [
                {"manager": "kubelet", "subresource": "status", "fieldsV1": {"f:status": {"f:conditions": {}}}},
                {"manager": manager, "subresource": "status", "fieldsV1": fields}]},
            "status": {"nominatedNodeName": "n"},
        });
        Owner::of(&PodView::from_pod(&from_value(pod).unwrap()).unwrap())
    };
    let owning = || json!({"f:status": {"f:nominatedNodeName": {}}});
    assert_eq!(owner("kube-scheduler", owning()), Owner::Scheduler);
    assert_eq!(owner("karpenter", owning()), owned("karpenter"));
    assert_eq!(owner("karpenter", json!({})), owned(""), "somebody");
    assert_eq!(Owner::of(&pod("p", 0)), Owner::Nobody);
}

/// Whether the lower nomination to a preemptor's node is cleared.
fn preemption_clears(clearing: Clearing, nodes: &[&str], lower: &PodView) -> bool {
    let higher = pod("higher", 10);
    let options = with(Options::default(), |it| it.clearing = clearing);
    let mut it = scheduler(options, &[lower.clone(), higher.clone()]);
    for node in nodes {
        handle(&mut it, Input::NodeObserved { node: (*node).to_owned() });
    }
    written(&handle(&mut it, fails(&higher, nominated("n")))).contains(&("lower", None))
}

#[test]
fn a_preemption_clears_what_the_policy_lets_go() {
    // req: 5278-ALT-7
    let hinted = || pod("lower", 1).nominated_to("n");
    let by = |manager: &str| with(hinted(), |pod| pod.nnn_manager = Some(manager.to_owned()));
    for (clearing, lower, clears) in [
        (Clearing::Always, by("autoscaler"), true),
        (Clearing::Never, by("kube-scheduler"), false),
        (Clearing::KeepExternal, by("autoscaler"), false),
        (Clearing::KeepExternal, by("kube-scheduler"), true),
        (Clearing::KeepIfNodeMissing, hinted(), true),
    ] {
        assert_eq!(preemption_clears(clearing, &["n"], &lower), clears, "{clearing:?}, {:?}", lower.nnn_manager);
    }
    assert!(!preemption_clears(Clearing::KeepIfNodeMissing, &[], &hinted()), "nobody has seen the node");
}

#[test]
fn a_node_that_somebody_else_wrote_stays_theirs_when_it_is_chosen() {
    let options = with(Options::default(), |it| it.clearing = Clearing::KeepExternal);
    let binding_fails = |host: &str| {
        let hinted = pod("p", 0).nominated_to("n");
        let mut it = scheduler(options, std::slice::from_ref(&hinted));
        handle(&mut it, Input::CycleSucceeded(placed(&hinted, host).pre_flights(vec![PreFlight::Success])));
        let failed = Input::BindingFailed { popped: hinted, stage: FailedStage::Bind, condition: unschedulable() };
        let info = handle(&mut it, failed).commands.into_iter().find_map(|command| match command {
            Command::PatchConditionAndNnn { nnn, .. } => Some(nnn),
            _ => None,
        });
        (info, it.nominator().node_of("p").map(str::to_owned))
    };
    assert_eq!(binding_fails("n"), (Some(NominatingInfo::Noop), Some("n".to_owned())), "nothing was written");
    assert_eq!(binding_fails("m"), (Some(NominatingInfo::clear()), None), "the scheduler overwrote it");
}

#[test]
fn a_value_that_was_overwritten_and_put_back_is_not_our_own() {
    let options = with(Options::default(), |it| it.clearing = Clearing::KeepExternal);
    let waiting = version(pod("p", 0), 1);
    let shown = |node: &str, number| Input::PodObserved(version(pod("p", 0).nominated_to(node), number));
    let clears = |by_others: &[Input]| {
        let mut it = scheduler(options, std::slice::from_ref(&waiting));
        handle(&mut it, fails(&waiting, nominated("n")));
        handle(&mut it, shown("n", 2));
        by_others.iter().for_each(|input| drop(handle(&mut it, input.clone())));
        written(&handle(&mut it, fails(&waiting, CycleOutcome::NoCandidates))).contains(&("p", None))
    };
    assert!(clears(&[]));
    assert!(!clears(&[shown("m", 3), shown("n", 4)]));
    // The same value under another manager.
    let taken_over = version(with(pod("p", 0).nominated_to("n"), |pod| pod.nnn_manager = Some("a".to_owned())), 3);
    assert!(!clears(&[Input::PodObserved(taken_over)]));
}

#[test]
fn a_value_that_we_failed_to_write_is_not_our_own() {
    let options = with(Options::default(), |it| it.clearing = Clearing::KeepExternal);
    let waiting = version(pod("p", 0), 1);
    let mut it = scheduler(options, std::slice::from_ref(&waiting));
    handle(&mut it, fails(&waiting, nominated("n")));
    handle(&mut it, Input::PatchAnswered { uid: "p".to_owned(), version: None });
    let by_other = with(pod("p", 0).nominated_to("n"), |pod| pod.nnn_manager = Some("autoscaler".to_owned()));
    let reaction = handle(&mut it, Input::PodObserved(version(by_other, 2)));
    assert!(
        matches!(&reaction.notices[..], [Notice::ForeignWrite { writer: Some(writer), .. }] if writer == "autoscaler")
    );
    assert!(!written(&handle(&mut it, fails(&waiting, CycleOutcome::NoCandidates))).contains(&("p", None)));
}

#[test]
fn a_foreign_overwrite_and_a_foreign_clear_are_told() {
    // req: 5278-READER-2
    let by = |node: &str, number| {
        let manager = Some("autoscaler".to_owned()).filter(|_| !node.is_empty());
        version(with(pod("p", 0).nominated_to(node), |pod| pod.nnn_manager = manager), number)
    };
    let mut it = scheduler(Options::default(), &[version(pod("p", 0), 1)]);
    for (number, node) in (2..).zip(["a", "b", ""]) {
        let seen = by(node, number);
        let (writer, node) = (seen.nnn_manager.clone(), seen.nnn.clone());
        let notice = Notice::ForeignWrite { pod: seen.key.clone(), writer, node: node.clone() };
        assert_eq!(handle(&mut it, Input::PodObserved(seen)).notices, [notice]);
        assert_eq!(it.nominator().node_of("p"), node.as_deref(), "it is the hint");
    }
}

#[test]
fn the_policy_holds_for_members_of_a_group() {
    // req: 5278-ALT-2
    let hinted = pod("p", 0).nominated_to("not-there");
    for (clearing, expected) in [(Clearing::Never, vec![]), (Clearing::Always, vec![("p", None)])] {
        let mut it = scheduler(with(Options::default(), |it| it.clearing = clearing), std::slice::from_ref(&hinted));
        let failed =
            Input::MemberFailed { popped: hinted.clone(), info: NominatingInfo::clear(), condition: unschedulable() };
        assert_eq!(written(&handle(&mut it, failed)), expected, "{clearing:?}");
    }
}

#[test]
fn a_foreign_write_is_told_also_where_the_scheduler_has_written_the_same() {
    // req: 5278-READER-2
    let waiting = version(pod("p", 0), 1);
    let mut it = scheduler(Options::default(), std::slice::from_ref(&waiting));
    let announced = placed(&waiting, "n").pre_flights(vec![PreFlight::Success]);
    handle(&mut it, Input::CycleSucceeded(announced));
    handle(&mut it, Input::PatchAnswered { uid: "p".to_owned(), version: Some(2) });
    let failed = Input::BindingFailed { popped: waiting, stage: FailedStage::Bind, condition: unschedulable() };
    handle(&mut it, failed);
    let foreign = with(pod("p", 0).nominated_to("n"), |pod| pod.nnn_manager = Some("autoscaler".to_owned()));
    let reaction = handle(&mut it, Input::PodObserved(version(foreign, 4)));
    assert!(matches!(&reaction.notices[..], [Notice::ForeignWrite { .. }]), "{reaction:?}");
}

#[test]
fn a_failed_binding_does_not_write_over_the_value_of_another() {
    // req: 5278-ALT-1, 5278-ALT-7
    for keep in [OnBindingFailure::Keep, OnBindingFailure::KeepAfterPreBind] {
        for (clearing, expected) in
            [(Clearing::Never, vec![]), (Clearing::KeepExternal, vec![]), (Clearing::Always, vec![("p", Some("n"))])]
        {
            let options = with(Options::default(), |it| (it.clearing, it.on_binding_failure) = (clearing, keep));
            let waiting = version(pod("p", 0), 1);
            let mut it = scheduler(options, std::slice::from_ref(&waiting));
            let announced = placed(&waiting, "n").pre_flights(vec![PreFlight::Success]);
            handle(&mut it, Input::CycleSucceeded(announced));
            handle(&mut it, Input::PatchAnswered { uid: "p".to_owned(), version: Some(2) });
            handle(&mut it, Input::PodObserved(version(pod("p", 0).nominated_to("n"), 2)));
            let foreign = with(pod("p", 0).nominated_to("m"), |pod| pod.nnn_manager = Some("autoscaler".to_owned()));
            handle(&mut it, Input::PodObserved(version(foreign, 3)));
            let failed = Input::BindingFailed { popped: waiting, stage: FailedStage::Bind, condition: unschedulable() };
            assert_eq!(written(&handle(&mut it, failed)), expected, "{keep:?} {clearing:?}");
        }
    }
}

#[test]
fn a_nomination_to_a_node_that_has_gone_is_kept_where_the_policy_says_so() {
    let options = with(Options::default(), |it| it.clearing = Clearing::KeepIfNodeMissing);
    let hinted = pod("p", 0).nominated_to("n");
    let clears = |inputs: &[Input]| {
        let mut it = scheduler(options, std::slice::from_ref(&hinted));
        inputs.iter().for_each(|input| drop(handle(&mut it, input.clone())));
        let mut again = it.restarted(options);
        [&mut it, &mut again]
            .map(|it| written(&handle(it, fails(&hinted, CycleOutcome::NoCandidates))) == [("p", None)])
    };
    let (there, gone) = (Input::NodeObserved { node: "n".to_owned() }, Input::NodeDeleted { node: "n".to_owned() });
    assert_eq!(clears(std::slice::from_ref(&there)), [true; 2], "also after a restart");
    assert_eq!(clears(&[there, gone]), [false; 2]);
}
