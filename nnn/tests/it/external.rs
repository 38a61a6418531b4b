use nnn::external::{
    Clearing, ExternalState, NodePresence, Owner, Permission, SchedulerOccasion, Write, Writer, external_state,
    may_write,
};
use nnn::nominating::NominatingInfo;
use nnn::pod::PodView;
use nnn::state::State;
use serde_json::{from_value, json};

use super::common::pod;

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
