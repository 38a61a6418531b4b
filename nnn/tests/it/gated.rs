//! Pods with scheduling gates: a nomination that another component wrote reserves nothing until the gates are gone.

use dra_attrs::Profile;
use k8s_openapi::api::core::v1::Pod;
use nnn::{Behavior, Command, NominationOptions, NominationState, NominationTracker, PodSnapshot, TrackerInput};
use serde_json::{from_value, json};

use crate::common::{kube_scheduler, safe, version, with};

fn gated() -> PodSnapshot {
    let pod: Pod = from_value(json!({
        "metadata": {"namespace": "default", "name": "job", "uid": "job", "resourceVersion": "1"},
        "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}], "containers": []},
        "status": {"nominatedNodeName": "node-1"},
    }))
    .unwrap();
    PodSnapshot::from_pod(&pod).unwrap()
}

fn observe(tracker: &mut NominationTracker, pod: PodSnapshot) -> Vec<Command> {
    tracker.handle(TrackerInput::PodObserved(pod)).unwrap().commands
}

#[test]
fn a_gated_pod_reserves_nothing_until_its_gates_are_gone() {
    for options in [safe(), kube_scheduler(), NominationOptions::new(Profile::Kep, Behavior::KubeScheduler)] {
        let mut tracker = NominationTracker::new(options);
        let pod = gated();
        assert!(pod.gated && pod.nnn.as_deref() == Some("node-1"));
        assert_eq!(observe(&mut tracker, pod.clone()), []);
        assert!(tracker.nominator().is_empty());
        assert_eq!(tracker.state("job"), NominationState::Pending);

        let moved = with(version(pod.clone(), 2), |pod| pod.nnn = Some("node-2".to_owned()));
        observe(&mut tracker, moved.clone());
        assert!(tracker.nominator().is_empty(), "nor after an update of the field");

        let free = with(version(moved, 3), |pod| pod.gated = false);
        let reserve = Command::Reserve { pod: pod.key.clone(), node: "node-2".to_owned() };
        assert!(observe(&mut tracker, free).contains(&reserve));
        assert_eq!(tracker.nominator().nominated_node("job"), Some("node-2"));
        assert_eq!(tracker.state("job"), NominationState::NominatedHint { node: "node-2".to_owned() });
    }
}

#[test]
fn gates_and_nomination_may_change_together() {
    let mut tracker = NominationTracker::new(safe());
    let pod = with(gated(), |pod| pod.nnn = None);
    observe(&mut tracker, pod.clone());
    let free = with(version(pod, 2), |pod| (pod.gated, pod.nnn) = (false, Some("node-3".to_owned())));
    observe(&mut tracker, free);
    assert_eq!(tracker.nominator().nominated_node("job"), Some("node-3"));
}
