use nnn::external::{ClearingPolicy, ExternalNominationState, NominationOwner, NominationWriter, WritePermission};
use nnn::{
    Command, CycleOutcome, FailedStage, NominatingInfo, NominationState, PodSnapshot, PreFlight, TrackerInput,
    TrackerNotice,
};
use serde_json::{from_value, json};

use super::common::{fails, handle, nominated, placed, pod, safe, tracker, unschedulable, version, with, written};

fn external(name: &str) -> NominationWriter {
    NominationWriter::External(name.to_owned())
}

fn owned(name: &str) -> NominationOwner {
    NominationOwner::External(name.to_owned())
}

#[test]
fn who_may_write() {
    // req: 5278-ALT-1
    use WritePermission::{Allowed, Denied, NoOp};
    let rows = [
        (external("a"), NominationOwner::Nobody, Allowed, NoOp),
        (external("a"), owned("a"), Allowed, Allowed),
        (external("a"), owned("b"), Denied, Denied),
        (external("a"), NominationOwner::Scheduler, Denied, Denied),
        (NominationWriter::Preemption, owned("a"), Allowed, Denied),
        (NominationWriter::BindingStart, owned("a"), Allowed, Denied),
        (NominationWriter::BindingStart, NominationOwner::Scheduler, Allowed, Denied),
    ];
    for (writer, owner, sets, clears) in rows {
        assert_eq!(writer.may_write(&owner, Some("n"), Some(1), Some(1)), sets, "{writer:?} sets over {owner:?}");
        assert_eq!(writer.may_write(&owner, None, Some(1), Some(1)), clears, "{writer:?} clears {owner:?}");
    }
    // A write on an old version has to look again.
    for owner in [NominationOwner::Nobody, owned("a")] {
        assert_eq!(external("a").may_write(&owner, Some("n"), Some(1), Some(2)), WritePermission::Conflict);
    }
    assert_eq!(external("a").may_write(&owned("a"), None, Some(1), Some(2)), WritePermission::Conflict);
}

#[test]
fn the_scheduler_records_at_two_occasions_and_never_clears() {
    // req: 5278-ALT-7
    use NominationWriter::{BindingStart, OtherScheduling, Preemption};
    let scheduler = |occasion: &NominationWriter, node| occasion.may_write(&owned("a"), node, None, None);
    assert_eq!(scheduler(&Preemption, Some("m")), WritePermission::Allowed);
    assert_eq!(scheduler(&BindingStart, Some("m")), WritePermission::Allowed);
    assert_eq!(scheduler(&OtherScheduling, Some("m")), WritePermission::Denied);
    for occasion in [Preemption, BindingStart, OtherScheduling] {
        assert_eq!(scheduler(&occasion, None), WritePermission::Denied);
    }
}

#[test]
fn the_six_states_of_the_alternative() {
    // req: 5278-ALT-3
    let node = || "n".to_owned();
    use ExternalNominationState as External;
    let rows = [
        (NominationState::Pending, Some(External::Pending)),
        (NominationState::NominatedHint { node: node() }, Some(External::Proposed)),
        (NominationState::NominatedPreempting { node: node() }, Some(External::WaitingForPreemption)),
        (NominationState::AssumedAnnounced { node: node() }, Some(External::WaitingForBinding)),
        (NominationState::AssumedQuiet { node: node() }, Some(External::WaitingForBinding)),
        (NominationState::Bound { node: node() }, Some(External::Bound)),
        (NominationState::Gone, None),
    ];
    for (state, expected) in rows {
        let found = External::from_state(&state);
        assert_eq!(found, expected, "{state}");
        let without_node = if found == Some(External::Proposed) { Some(External::WaitingForNode) } else { expected };
        assert_eq!(found.map(External::without_node), without_node, "{state}, and no node");
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
        NominationOwner::from_pod(&PodSnapshot::from_pod(&from_value(pod).unwrap()).unwrap())
    };
    let owning = || json!({"f:status": {"f:nominatedNodeName": {}}});
    assert_eq!(owner("kube-scheduler", owning()), NominationOwner::Scheduler);
    assert_eq!(owner("karpenter", owning()), owned("karpenter"));
    assert_eq!(owner("karpenter", json!({})), owned(""), "somebody");
    assert_eq!(NominationOwner::from_pod(&pod("p", 0)), NominationOwner::Nobody);
}

/// Returns true if a preemption clears the lower nomination to its node.
fn preemption_clears(clearing: ClearingPolicy, nodes: &[&str], lower: &PodSnapshot) -> bool {
    let higher = pod("higher", 10);
    let options = safe().with_clearing(clearing);
    let mut it = tracker(options, &[lower.clone(), higher.clone()]);
    for node in nodes {
        handle(&mut it, TrackerInput::NodeObserved { node: (*node).to_owned() });
    }
    written(&handle(&mut it, fails(&higher, nominated("n")))).contains(&("lower", None))
}

#[test]
fn a_preemption_clears_what_the_policy_lets_go() {
    // req: 5278-ALT-7
    let hinted = || pod("lower", 1).with_nomination("n");
    let by = |manager: &str| with(hinted(), |pod| pod.nnn_manager = Some(manager.to_owned()));
    for (clearing, lower, clears) in [
        (ClearingPolicy::Always, by("autoscaler"), true),
        (ClearingPolicy::Never, by("kube-scheduler"), false),
        (ClearingPolicy::KeepExternal, by("autoscaler"), false),
        (ClearingPolicy::KeepExternal, by("kube-scheduler"), true),
        (ClearingPolicy::KeepIfNodeMissing, hinted(), true),
    ] {
        assert_eq!(preemption_clears(clearing, &["n"], &lower), clears, "{clearing:?}, {:?}", lower.nnn_manager);
    }
    assert!(!preemption_clears(ClearingPolicy::KeepIfNodeMissing, &[], &hinted()), "nobody has seen the node");
}

#[test]
fn a_node_that_somebody_else_wrote_stays_theirs_when_it_is_chosen() {
    let options = safe().with_clearing(ClearingPolicy::KeepExternal);
    let binding_fails = |host: &str| {
        let hinted = pod("p", 0).with_nomination("n");
        let mut it = tracker(options, std::slice::from_ref(&hinted));
        handle(&mut it, TrackerInput::CycleSucceeded(placed(&hinted, host).with_pre_flights(vec![PreFlight::Success])));
        let failed =
            TrackerInput::BindingFailed { queued_pod: hinted, stage: FailedStage::Bind, condition: unschedulable() };
        let info = handle(&mut it, failed).commands.into_iter().find_map(|command| match command {
            Command::PatchConditionAndNnn { nnn, .. } => Some(nnn),
            _ => None,
        });
        (info, it.nominator().nominated_node("p").map(str::to_owned))
    };
    assert_eq!(binding_fails("n"), (Some(NominatingInfo::Noop), Some("n".to_owned())), "nothing was written");
    assert_eq!(binding_fails("m"), (Some(NominatingInfo::clear()), None), "the scheduler overwrote it");
}

#[test]
fn a_value_that_was_overwritten_and_put_back_is_not_our_own() {
    let options = safe().with_clearing(ClearingPolicy::KeepExternal);
    let waiting = version(pod("p", 0), 1);
    let shown = |node: &str, number| TrackerInput::PodObserved(version(pod("p", 0).with_nomination(node), number));
    let clears = |by_others: &[TrackerInput]| {
        let mut it = tracker(options, std::slice::from_ref(&waiting));
        handle(&mut it, fails(&waiting, nominated("n")));
        handle(&mut it, shown("n", 2));
        by_others.iter().for_each(|input| drop(handle(&mut it, input.clone())));
        written(&handle(&mut it, fails(&waiting, CycleOutcome::NoCandidates))).contains(&("p", None))
    };
    assert!(clears(&[]));
    assert!(!clears(&[shown("m", 3), shown("n", 4)]));
    // The same value under another manager.
    let taken_over = version(with(pod("p", 0).with_nomination("n"), |pod| pod.nnn_manager = Some("a".to_owned())), 3);
    assert!(!clears(&[TrackerInput::PodObserved(taken_over)]));
}

#[test]
fn a_value_that_we_failed_to_write_is_not_our_own() {
    let options = safe().with_clearing(ClearingPolicy::KeepExternal);
    let waiting = version(pod("p", 0), 1);
    let mut it = tracker(options, std::slice::from_ref(&waiting));
    handle(&mut it, fails(&waiting, nominated("n")));
    handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: None });
    let by_other = with(pod("p", 0).with_nomination("n"), |pod| pod.nnn_manager = Some("autoscaler".to_owned()));
    let output = handle(&mut it, TrackerInput::PodObserved(version(by_other, 2)));
    assert!(
        matches!(&output.notices[..], [TrackerNotice::ForeignWrite { writer: Some(writer), .. }] if writer == "autoscaler")
    );
    assert!(!written(&handle(&mut it, fails(&waiting, CycleOutcome::NoCandidates))).contains(&("p", None)));
}

#[test]
fn a_foreign_overwrite_and_a_foreign_clear_are_told() {
    // req: 5278-READER-2
    let by = |node: &str, number| {
        let manager = Some("autoscaler".to_owned()).filter(|_| !node.is_empty());
        version(with(pod("p", 0).with_nomination(node), |pod| pod.nnn_manager = manager), number)
    };
    let mut it = tracker(safe(), &[version(pod("p", 0), 1)]);
    for (number, node) in (2..).zip(["a", "b", ""]) {
        let seen = by(node, number);
        let (writer, node) = (seen.nnn_manager.clone(), seen.nnn.clone());
        let notice = TrackerNotice::ForeignWrite { pod: seen.key.clone(), writer, node: node.clone() };
        assert_eq!(handle(&mut it, TrackerInput::PodObserved(seen)).notices, [notice]);
        assert_eq!(it.nominator().nominated_node("p"), node.as_deref(), "it is the hint");
    }
}

#[test]
fn the_policy_holds_for_members_of_a_group() {
    // req: 5278-ALT-2
    let hinted = pod("p", 0).with_nomination("not-there");
    for (clearing, expected) in [(ClearingPolicy::Never, vec![]), (ClearingPolicy::Always, vec![("p", None)])] {
        let mut it = tracker(safe().with_clearing(clearing), std::slice::from_ref(&hinted));
        let failed = TrackerInput::MemberFailed {
            queued_pod: hinted.clone(),
            info: NominatingInfo::clear(),
            condition: unschedulable(),
        };
        assert_eq!(written(&handle(&mut it, failed)), expected, "{clearing:?}");
    }
}

#[test]
fn a_foreign_write_is_told_also_where_the_scheduler_has_written_the_same() {
    // req: 5278-READER-2
    let waiting = version(pod("p", 0), 1);
    let mut it = tracker(safe(), std::slice::from_ref(&waiting));
    let announced = placed(&waiting, "n").with_pre_flights(vec![PreFlight::Success]);
    handle(&mut it, TrackerInput::CycleSucceeded(announced));
    handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: Some(2) });
    let failed =
        TrackerInput::BindingFailed { queued_pod: waiting, stage: FailedStage::Bind, condition: unschedulable() };
    handle(&mut it, failed);
    let foreign = with(pod("p", 0).with_nomination("n"), |pod| pod.nnn_manager = Some("autoscaler".to_owned()));
    let output = handle(&mut it, TrackerInput::PodObserved(version(foreign, 4)));
    assert!(matches!(&output.notices[..], [TrackerNotice::ForeignWrite { .. }]), "{output:?}");
}

#[test]
fn a_failed_binding_does_not_write_over_the_value_of_another() {
    // req: 5278-ALT-1, 5278-ALT-7
    for (clearing, expected) in [
        (ClearingPolicy::Never, vec![]),
        (ClearingPolicy::KeepExternal, vec![]),
        (ClearingPolicy::Always, vec![("p", None)]),
    ] {
        let waiting = version(pod("p", 0), 1);
        let mut it = tracker(safe().with_clearing(clearing), std::slice::from_ref(&waiting));
        let announced = placed(&waiting, "n").with_pre_flights(vec![PreFlight::Success]);
        handle(&mut it, TrackerInput::CycleSucceeded(announced));
        handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: Some(2) });
        handle(&mut it, TrackerInput::PodObserved(version(pod("p", 0).with_nomination("n"), 2)));
        let foreign = with(pod("p", 0).with_nomination("m"), |pod| pod.nnn_manager = Some("autoscaler".to_owned()));
        handle(&mut it, TrackerInput::PodObserved(version(foreign, 3)));
        let failed =
            TrackerInput::BindingFailed { queued_pod: waiting, stage: FailedStage::Bind, condition: unschedulable() };
        assert_eq!(written(&handle(&mut it, failed)), expected, "{clearing:?}");
    }
}

#[test]
fn a_nomination_to_a_node_that_has_gone_is_kept_where_the_policy_says_so() {
    let options = safe().with_clearing(ClearingPolicy::KeepIfNodeMissing);
    let hinted = pod("p", 0).with_nomination("n");
    let clears = |inputs: &[TrackerInput]| {
        let mut it = tracker(options, std::slice::from_ref(&hinted));
        inputs.iter().for_each(|input| drop(handle(&mut it, input.clone())));
        let mut again = it.rebuild(options);
        [&mut it, &mut again]
            .map(|it| written(&handle(it, fails(&hinted, CycleOutcome::NoCandidates))) == [("p", None)])
    };
    let (there, gone) =
        (TrackerInput::NodeObserved { node: "n".to_owned() }, TrackerInput::NodeDeleted { node: "n".to_owned() });
    assert_eq!(clears(std::slice::from_ref(&there)), [true; 2], "also after a restart");
    assert_eq!(clears(&[there, gone]), [false; 2]);
}

#[test]
fn an_update_of_something_else_leaves_the_owner() {
    let options = safe().with_clearing(ClearingPolicy::KeepExternal);
    let waiting = version(pod("p", 0), 1);
    let mut it = tracker(options, std::slice::from_ref(&waiting));
    handle(&mut it, fails(&waiting, CycleOutcome::Nominated { node: "n".to_owned() }));
    handle(&mut it, TrackerInput::PatchAnswered { uid: "p".to_owned(), version: Some(2) });
    let ours = |number| version(pod("p", 0).with_nomination("n"), number);
    for number in [2, 3] {
        handle(&mut it, TrackerInput::PodObserved(ours(number)));
    }
    assert_eq!(written(&handle(&mut it, fails(&ours(3), CycleOutcome::NoCandidates))), [("p", None)]);
}
