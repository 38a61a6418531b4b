//! Plays any sequence of events: nothing panics, memory is consistent, an illegal event changes nothing, nothing leaks.
#![no_main]

use dra_attrs::Profile;
use libfuzzer_sys::fuzz_target;
use nnn::{
    Assumed, Behavior, FailedStage, NominatingInfo, NominationOptions, NominationTracker, PodSnapshot, PreFlight,
    ScheduledCondition, TrackerInput,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, steps)) = bytes.split_first() else { return };
    let options = if first % 2 == 0 {
        NominationOptions::new(Profile::Kep, Behavior::Safe)
    } else {
        NominationOptions::new(Profile::V1_37, Behavior::KubeScheduler)
    };
    let mut tracker = NominationTracker::new(options);
    for step in steps.chunks_exact(3) {
        let (name, node) = (format!("p{}", step[1] % 4), format!("n{}", step[2] % 4));
        let mut pod = PodSnapshot::pending("d", &name)
            .with_priority(i32::from(step[1] % 3))
            .with_uid(&format!("u{}", step[1] % 8));
        (pod.resource_version, pod.deleting) = (Some(u64::from(step[2])), step[1] > 200);
        let condition = ScheduledCondition::failed(if step[2] > 99 { "Unschedulable" } else { "Error" }, &node);
        let (key, uid, queued_pod) = (pod.key.clone(), pod.key.uid.clone(), pod.clone());
        let assumed = Assumed::new(&key, &node).with_pre_flights(vec![if step[2] % 2 == 0 {
            PreFlight::Skip
        } else {
            PreFlight::Success
        }]);
        let _ = match step[0] % 11 {
            0 => tracker.handle(TrackerInput::PodObserved(pod)),
            1 => tracker.handle(TrackerInput::PodObserved(pod.with_nomination(&node))),
            2 => {
                let mut bound = pod;
                bound.node = Some(node);
                tracker.handle(TrackerInput::PodObserved(bound))
            }
            3 => tracker.handle(TrackerInput::PodDeleted { uid }),
            4 => tracker.handle(TrackerInput::MemberFailed {
                queued_pod,
                info: NominatingInfo::nominate(&node),
                condition,
            }),
            5 => tracker.handle(TrackerInput::MemberFailed { queued_pod, info: NominatingInfo::clear(), condition }),
            6 => tracker.handle(TrackerInput::CycleSucceeded(assumed.with_permit_wait())),
            7 => tracker.handle(TrackerInput::CycleSucceeded(assumed)),
            8 => tracker.handle(TrackerInput::BindingFailed { queued_pod, stage: FailedStage::Bind, condition }),
            9 => tracker.handle(TrackerInput::Bound { pod: key }),
            _ => tracker.handle(TrackerInput::PatchAnswered { uid, version: Some(step[2].into()) }),
        };
        let nominator = tracker.nominator();
        assert!(nominator.nodes().all(|node| !node.is_empty() && nominator.on_node(node).next().is_some()));
        assert_eq!(nominator.iter().count(), nominator.len());
        assert!(
            nominator.iter().all(|it| !tracker.state(&it.pod.uid).is_assumed() && tracker.pod(&it.pod.uid).is_some())
        );
    }
    (0..8).for_each(|number| drop(tracker.handle(TrackerInput::PodDeleted { uid: format!("u{number}") })));
    assert!(tracker.nominator().is_empty(), "something leaks");
});
