use std::collections::BTreeMap;

use nnn::scheduling::{GroupMemberResult, PodGroupResult, decide_member, decide_waiting_member, restored_nomination};
use nnn::{NominatingInfo, TrackerInput};

use super::common::{handle, kube_scheduler, pod, safe, tracker, unschedulable, written};

#[test]
fn members_of_a_pod_group() {
    let (clear, keep, to) = (NominatingInfo::clear, || NominatingInfo::Noop, NominatingInfo::nominate);
    let fits = GroupMemberResult::Fits("h".to_owned());
    let needs = GroupMemberResult::NeedsPreemption("v".to_owned());
    let unschedulable = GroupMemberResult::Unschedulable(keep());
    let waiting = || PodGroupResult::WaitingForPreemption(BTreeMap::new());
    let decided = || PodGroupResult::WaitingForPreemption(BTreeMap::from([("u".to_owned(), to("g"))]));
    let rows = [
        (&fits, PodGroupResult::Error, Some(clear())),
        (&needs, PodGroupResult::Error, Some(clear())),
        (&unschedulable, PodGroupResult::Error, Some(clear())),
        (&fits, PodGroupResult::Success, None),
        // Where it fitted was tried without the victims: the group's preemption decides.
        (&fits, waiting(), Some(keep())),
        (&fits, decided(), Some(to("g"))),
        (&fits, PodGroupResult::Rejected, Some(clear())),
        (&needs, PodGroupResult::Rejected, Some(clear())),
        (&needs, waiting(), Some(to("v"))),
        (&needs, decided(), Some(to("g"))),
        (&unschedulable, PodGroupResult::Rejected, Some(keep())),
        (&unschedulable, waiting(), Some(keep())),
        (&unschedulable, decided(), Some(to("g"))),
    ];
    for (member, group, expected) in rows {
        assert_eq!(decide_member("u", member, &group), expected, "{member:?} in {group:?}");
    }
}

#[test]
fn a_group_that_waits_for_victims_nominates_its_members_again() {
    assert_eq!(decide_waiting_member(&pod("p", 0).with_nomination("n")), NominatingInfo::nominate("n"));
    assert_eq!(decide_waiting_member(&pod("p", 0)), NominatingInfo::clear());
    let mut resizing = pod("p", 0).with_node("n");
    resizing.resize_deferred = true;
    assert_eq!(decide_waiting_member(&resizing), NominatingInfo::Noop);
}

#[test]
fn a_simulated_assumption_gives_back_what_the_status_has() {
    assert_eq!(restored_nomination(&pod("p", 0).with_nomination("n")), Some("n"));
    assert_eq!(restored_nomination(&pod("p", 0)), None);
}

#[test]
fn a_group_that_preempts_clears_lower_nominations_once() {
    let member = pod("member", 10);
    let lower = pod("lower", 1).with_nomination("n");
    let mut it = tracker(safe(), &[member.clone(), lower]);
    let told = || TrackerInput::MemberFailed {
        queued_pod: member.clone(),
        info: NominatingInfo::nominate("n"),
        condition: unschedulable(),
    };
    assert_eq!(written(&handle(&mut it, told())), [("lower", None), ("member", Some("n"))]);
    // The group still waits, and has chosen no more victims.
    handle(&mut it, TrackerInput::PodObserved(pod("later", 1).with_nomination("n")));
    assert_eq!(written(&handle(&mut it, told())), []);
}

#[test]
fn upstream_a_group_that_preempts_leaves_lower_nominations() {
    let (member, lower) = (pod("member", 10), pod("lower", 1).with_nomination("n"));
    let mut it = tracker(kube_scheduler(), &[member.clone(), lower]);
    let told = TrackerInput::MemberFailed {
        queued_pod: member,
        info: NominatingInfo::nominate("n"),
        condition: unschedulable(),
    };
    assert_eq!(written(&handle(&mut it, told)), [("member", Some("n"))]);
}
