//! Small rules that several packages share.

use dra_attrs::FieldPath;
use dra_attrs::internal::release::ConditionRules;
use dra_device::internal::{PodFields, has_list, is_for_pod, validate_conditions};
use dra_device::pool::LatestGeneration;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{Device, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

#[test]
fn a_generation_of_a_condition_is_not_negative() {
    let errors = |generation: i64| {
        let condition = json!({"type": "Ready", "status": "True", "reason": "Up", "message": "",
            "lastTransitionTime": "2026-02-07T10:30:00Z", "observedGeneration": generation});
        let conditions = [from_value(condition).unwrap()];
        validate_conditions(&conditions, &FieldPath::new("c"), ConditionRules::Declared).to_string()
    };
    let refused = "c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero";
    assert_eq!([errors(0), errors(1), errors(-1)], ["", "", refused]);
}

#[test]
fn lists_are_attributes_with_several_values() {
    let has =
        |attributes: Value| has_list(&from_value::<Device>(json!({"name": "d", "attributes": attributes})).unwrap());
    assert!(!has(json!({})) && !has(json!({"a": {"int": 1}, "b": {"string": "x"}})));
    assert!(has(json!({"a": {"int": 1}, "b": {"ints": [1]}})));
}

#[test]
fn a_pool_is_complete_with_all_slices_of_its_latest_generation() {
    let slice = |generation: i64| -> ResourceSlice {
        let pool = json!({"name": "p", "generation": generation, "resourceSliceCount": 2});
        from_value(json!({"metadata": {}, "spec": {"driver": "d", "nodeName": "n", "pool": pool}})).unwrap()
    };
    let is_complete = |generations: &[i64]| {
        let slices: Vec<ResourceSlice> = generations.iter().map(|generation| slice(*generation)).collect();
        let seen: Vec<&ResourceSlice> = slices.iter().collect();
        LatestGeneration::from_slices(&seen).unwrap().is_complete()
    };
    assert!(is_complete(&[1, 1]) && is_complete(&[1, 2, 2]));
    assert!(!is_complete(&[1, 1, 2]) && !is_complete(&[1]) && !is_complete(&[1, 1, 1]));
}

#[test]
fn a_claim_is_for_the_pod_that_controls_it_or_for_its_group() {
    let pod: Pod = from_value(json!({"metadata": {"namespace": "ml", "name": "p", "uid": "u"}})).unwrap();
    assert_eq!((pod.namespace(), pod.uid(), pod.full_name().as_str()), ("ml", "u", "ml/p"));
    let is_for = |namespace: &str, kind: &str, api: &str, name: &str, uid: &str, group: Option<&str>| {
        let owner = json!({"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": true});
        let metadata = json!({"namespace": namespace, "name": "c", "ownerReferences": [owner]});
        let claim: ResourceClaim = from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
        is_for_pod(&pod, &claim, group)
    };
    let (group, api) = (Some("g"), "scheduling.k8s.io/v1beta1");
    assert!(is_for("ml", "Pod", "v1", "p", "u", None) && is_for("ml", "PodGroup", api, "g", "x", group));
    assert!(!is_for("other", "Pod", "v1", "p", "u", None) && !is_for("ml", "Pod", "v1", "p", "x", group));
    assert!(!is_for("ml", "PodGroup", api, "h", "x", group) && !is_for("ml", "PodGroup", api, "g", "x", None));
    assert!(!is_for("ml", "Gang", api, "g", "x", group) && !is_for("ml", "PodGroup", "v1", "g", "x", group));
}
