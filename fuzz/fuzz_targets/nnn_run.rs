//! Any sequence of events: nothing panics, memory is consistent, an illegal event changes nothing, nothing leaks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nnn::binding::start::{PermitWait, PreFlight};
use nnn::nominating::NominatingInfo;
use nnn::options::Options;
use nnn::pod::{PodView, ScheduledCondition};
use nnn::scheduler::{Input, Placed, Scheduler};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, steps)) = bytes.split_first() else { return };
    let mut scheduler = Scheduler::new(if first % 2 == 0 { Options::default() } else { Options::upstream() });
    for step in steps.chunks_exact(3) {
        let (name, node) = (format!("p{}", step[1] % 4), format!("n{}", step[2] % 4));
        let mut pod =
            PodView::pending("d", &name).with_priority(i32::from(step[1] % 3)).with_uid(&format!("u{}", step[1] % 8));
        (pod.resource_version, pod.deleting) = (Some(u64::from(step[2])), step[1] > 200);
        let condition = ScheduledCondition::failed(if step[2] > 99 { "Unschedulable" } else { "Error" }, &node);
        let (key, uid, popped) = (pod.key.clone(), pod.key.uid.clone(), pod.clone());
        let placed = Placed::new(&key, &node).pre_flights(vec![if step[2] % 2 == 0 {
            PreFlight::Skip
        } else {
            PreFlight::Success
        }]);
        let _ = match step[0] % 11 {
            0 => scheduler.handle(Input::PodObserved(pod)),
            1 => scheduler.handle(Input::PodObserved(pod.nominated_to(&node))),
            2 => scheduler.handle(Input::PodObserved(pod.bound_to(&node))),
            3 => scheduler.handle(Input::PodDeleted { uid }),
            4 => scheduler.handle(Input::MemberFailed { popped, info: NominatingInfo::to(&node), condition }),
            5 => scheduler.handle(Input::MemberFailed { popped, info: NominatingInfo::clear(), condition }),
            6 => scheduler.handle(Input::CycleSucceeded(placed.permit(PermitWait::Waiting))),
            7 => scheduler.handle(Input::CycleSucceeded(placed)),
            8 => scheduler.handle(Input::BindingFailed {
                popped,
                stage: nnn::binding::failure::FailedStage::Bind,
                condition,
            }),
            9 => scheduler.handle(Input::Bound { pod: key }),
            _ => scheduler.handle(Input::PatchAnswered { uid, version: Some(step[2].into()) }),
        };
        let nominator = scheduler.nominator();
        assert!(nominator.nodes().all(|node| !node.is_empty() && nominator.on_node(node).next().is_some()));
        assert_eq!(nominator.iter().count(), nominator.len());
        assert!(
            nominator
                .iter()
                .all(|it| !scheduler.state(&it.pod.uid).is_assumed() && scheduler.pod(&it.pod.uid).is_some())
        );
    }
    (0..8).for_each(|number| drop(scheduler.handle(Input::PodDeleted { uid: format!("u{number}") })));
    assert!(scheduler.nominator().is_empty(), "something leaks");
});
