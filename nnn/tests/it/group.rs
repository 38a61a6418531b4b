use nnn::{NominatingInfo, TrackerInput};

use super::common::{handle, kube_scheduler, pod, safe, tracker, unschedulable, written};

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
