use std::collections::BTreeMap;

use nnn::nominating::NominatingInfo;
use nnn::options::Options;
use nnn::scheduler::Input;
use nnn::scheduling::group::{
    GroupResult, MemberResult, decide_member, decide_still_waiting, restored_after_simulation,
};

use super::common::{handle, pod, scheduler, unschedulable, written};

#[test]
fn members_of_a_pod_group() {
    let (clear, keep, to) = (NominatingInfo::clear, || NominatingInfo::Noop, NominatingInfo::to);
    let fits = MemberResult::Fits("h".to_owned());
    let needs = MemberResult::NeedsPreemption("v".to_owned());
    let unschedulable = MemberResult::Unschedulable(keep());
    let waiting = || GroupResult::WaitingForPreemption(BTreeMap::new());
    let decided = || GroupResult::WaitingForPreemption(BTreeMap::from([("u".to_owned(), to("g"))]));
    let rows = [
        (&fits, GroupResult::Error, Some(clear())),
        (&needs, GroupResult::Error, Some(clear())),
        (&unschedulable, GroupResult::Error, Some(clear())),
        (&fits, GroupResult::Success, None),
        // Where it fitted was tried without the victims: the group's preemption decides.
        (&fits, waiting(), Some(keep())),
        (&fits, decided(), Some(to("g"))),
        (&fits, GroupResult::Rejected, Some(clear())),
        (&needs, GroupResult::Rejected, Some(clear())),
        (&needs, waiting(), Some(to("v"))),
        (&needs, decided(), Some(to("g"))),
        (&unschedulable, GroupResult::Rejected, Some(keep())),
        (&unschedulable, waiting(), Some(keep())),
        (&unschedulable, decided(), Some(to("g"))),
    ];
    for (member, group, expected) in rows {
        assert_eq!(decide_member("u", member, &group), expected, "{member:?} in {group:?}");
    }
}

#[test]
fn a_group_that_waits_for_victims_nominates_its_members_again() {
    assert_eq!(decide_still_waiting(&pod("p", 0).nominated_to("n")), NominatingInfo::to("n"));
    assert_eq!(decide_still_waiting(&pod("p", 0)), NominatingInfo::clear());
    let mut resizing = pod("p", 0).bound_to("n");
    resizing.resize_deferred = true;
    assert_eq!(decide_still_waiting(&resizing), NominatingInfo::Noop);
}

#[test]
fn a_simulated_assumption_gives_back_what_the_status_has() {
    assert_eq!(restored_after_simulation(&pod("p", 0).nominated_to("n")), Some("n"));
    assert_eq!(restored_after_simulation(&pod("p", 0)), None);
}

#[test]
fn a_group_that_preempts_clears_lower_nominations_once() {
    let member = pod("member", 10);
    let lower = pod("lower", 1).nominated_to("n");
    let mut it = scheduler(Options::default(), &[member.clone(), lower]);
    let told =
        || Input::MemberFailed { popped: member.clone(), info: NominatingInfo::to("n"), condition: unschedulable() };
    assert_eq!(written(&handle(&mut it, told())), [("lower", None), ("member", Some("n"))]);
    // The group still waits, and has chosen no more victims.
    handle(&mut it, Input::PodObserved(pod("later", 1).nominated_to("n")));
    assert_eq!(written(&handle(&mut it, told())), []);
}

#[test]
fn upstream_a_group_that_preempts_leaves_lower_nominations() {
    let (member, lower) = (pod("member", 10), pod("lower", 1).nominated_to("n"));
    let mut it = scheduler(Options::upstream(), &[member.clone(), lower]);
    let told = Input::MemberFailed { popped: member, info: NominatingInfo::to("n"), condition: unschedulable() };
    assert_eq!(written(&handle(&mut it, told)), [("member", Some("n"))]);
}
