use dra_attrs::{Gate, GateSet, Profile};
use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::jiff::Timestamp;
use nnn::binding::{BindingError, apply_binding};
use nnn::{Behavior, NominationState, PodSnapshot};
use serde_json::{Value, from_value, json};

fn pod(change: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "u", "resourceVersion": "5", "annotations": {"a": "old", "b": "kept"}},
        "spec": {"containers": []},
        "status": {"nominatedNodeName": "stale", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, {"type": "Other", "status": "True"}]},
    });
    for (path, value) in change.as_object().unwrap() {
        *pod.pointer_mut(path).unwrap() = value.clone();
    }
    from_value(pod).unwrap()
}

fn binding(metadata: Value) -> Binding {
    from_value(json!({"metadata": metadata, "target": {"name": "n"}})).unwrap()
}

fn bound(gates: GateSet) -> Pod {
    apply_binding(
        &pod(&json!({})),
        &binding(json!({"name": "p", "annotations": {"a": "new"}})),
        gates,
        Timestamp::UNIX_EPOCH,
    )
    .unwrap()
}

#[test]
fn a_binding_clears_the_nomination_in_the_same_write() {
    // req: 5278-CLEAR-2
    let after = bound(GateSet::of(Profile::V1_37));
    let view = PodSnapshot::from_pod(&after).unwrap();
    assert_eq!((view.node.as_deref(), view.nnn), (Some("n"), None));
    let conditions = after.status.unwrap().conditions.unwrap();
    let scheduled: Vec<_> = conditions.iter().filter(|it| it.type_ == "PodScheduled").collect();
    assert!(matches!(scheduled[..], [only] if only.status == "True"));
    assert_eq!(conditions.len(), 2);
    assert_eq!(serde_json::to_value(after.metadata.annotations).unwrap(), json!({"a": "new", "b": "kept"}));
}

#[test]
fn the_condition_is_replaced_where_it_stands() {
    let at = |seconds| Timestamp::from_second(seconds).unwrap();
    let conditions = |status: &str, reason: &str| {
        let scheduled = json!({"type": "PodScheduled", "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": at(1), "lastProbeTime": at(1)});
        let change = json!({"/status/conditions": [scheduled, {"type": "Other", "status": "True"}]});
        let bound = apply_binding(&pod(&change), &binding(json!({})), GateSet::of(Profile::V1_37), at(2)).unwrap();
        serde_json::to_value(bound.status.unwrap().conditions).unwrap()
    };
    let expected = |seconds: i64| {
        json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(seconds)},
            {"type": "Other", "status": "True"}])
    };
    assert_eq!(conditions("False", "Unschedulable"), expected(2));
    assert_eq!(conditions("True", "odd"), expected(1), "no transition");
}

#[test]
fn labels_of_a_binding_come_with_their_gate() {
    let labelled = binding(json!({"labels": {"topology.kubernetes.io/zone": "z"}}));
    let labels = |gates: GateSet| {
        apply_binding(&pod(&json!({})), &labelled, gates, Timestamp::UNIX_EPOCH)
            .unwrap()
            .metadata
            .labels
            .map(|it| it.len())
    };
    assert_eq!(labels(GateSet::of(Profile::V1_37)), Some(1));
    assert_eq!(labels(GateSet::of(Profile::V1_37).without(Gate::PodTopologyLabelsAdmission)), None);
}

#[test]
fn with_the_gate_off_it_stays_and_means_nothing() {
    // req: 5278-CLEAR-2, 5278-SKEW-1, 5278-GATE-1
    let view =
        PodSnapshot::from_pod(&bound(GateSet::of(Profile::V1_37).without(Gate::ClearingNominatedNodeNameAfterBinding)))
            .unwrap();
    assert_eq!(view.nnn.as_deref(), Some("stale"));
    assert_eq!(NominationState::from_pod(&view), NominationState::Bound { node: "n".to_owned() });
}

#[test]
fn a_nomination_that_is_written_after_the_binding_holds_nothing() {
    // req: 5278-CLEAR-5
    let mut after = bound(GateSet::of(Profile::V1_37));
    after.status.as_mut().unwrap().nominated_node_name = Some("late".to_owned());
    let view = PodSnapshot::from_pod(&after).unwrap();
    assert_eq!(NominationState::from_pod(&view), NominationState::Bound { node: "n".to_owned() });
    let mut nominator = nnn::Nominator::new(Behavior::Safe);
    nominator.add(&view, &nnn::NominatingInfo::Noop, Some(&view));
    assert!(nominator.is_empty());
}

#[test]
fn refused_bindings() {
    let refuse = |change: Value, metadata: Value| {
        apply_binding(&pod(&change), &binding(metadata), GateSet::of(Profile::V1_37), Timestamp::UNIX_EPOCH)
            .unwrap_err()
    };
    let plain = || json!({"name": "p"});
    assert!(matches!(refuse(json!({}), json!({"uid": "other"})), BindingError::Uid { .. }));
    assert!(matches!(refuse(json!({}), json!({"resourceVersion": "4"})), BindingError::ResourceVersion { .. }));
    assert_eq!(
        refuse(json!({"/spec": {"containers": [], "nodeName": "m"}}), plain()),
        BindingError::Bound { node: "m".to_owned() }
    );
    let gated = json!({"/spec": {"containers": [], "schedulingGates": [{"name": "g"}]}});
    assert_eq!(refuse(gated, plain()), BindingError::Gated);
    let deleting = json!({"/metadata": {"name": "p", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(refuse(deleting, plain()), BindingError::Deleting);
    // The binding itself is looked at first.
    let to = |target: Value| {
        let binding: Binding = from_value(json!({"metadata": {"uid": "other"}, "target": target})).unwrap();
        apply_binding(&pod(&json!({})), &binding, GateSet::of(Profile::V1_37), Timestamp::UNIX_EPOCH).unwrap_err()
    };
    assert_eq!(to(json!({"name": ""})), BindingError::NoTarget);
    let kind = to(json!({"kind": "Minion", "name": "n"}));
    assert_eq!(kind, BindingError::TargetKind { kind: "Minion".to_owned() });
    assert_eq!(kind.to_string(), "target.kind: Unsupported value: \"Minion\": supported values: \"Node\", \"<empty>\"");
    assert!(matches!(to(json!({"kind": "Node", "name": "n"})), BindingError::Uid { .. }));
    // Preconditions that hold.
    let exact = binding(json!({"uid": "u", "resourceVersion": "5"}));
    assert!(apply_binding(&pod(&json!({})), &exact, GateSet::of(Profile::V1_37), Timestamp::UNIX_EPOCH).is_ok());
}
