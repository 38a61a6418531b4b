//! Equality of devices, beside the serialized objects.

use dra_node::driver::same_devices;
use k8s_openapi::api::resource::v1::Device;
use serde_json::{Value, from_value, json};

fn same(one: &Value, other: &Value) -> bool {
    let device = |value: &Value| -> Device {
        let mut whole = json!({"name": "a"});
        whole.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        from_value(whole).unwrap()
    };
    same_devices([&device(one)], [&device(other)])
}

#[test]
fn what_the_server_changes_is_the_same() {
    let consumes = |amount: &str| json!({"consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": amount}}, "compatibilityGroups": []}]});
    let policy = |step: &str| json!({"capacity": {"m": {"value": "1", "requestPolicy": {"default": "1k", "validRange": {"min": "1", "step": step}}}}});
    let mapping =
        |amount: &str| json!({"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": amount}}}});
    let cases = [
        (
            json!({}),
            json!({"attributes": {}, "capacity": {}, "taints": [], "bindingConditions": [], "consumesCounters": []}),
        ),
        (consumes("1Gi"), consumes("1024Mi")),
        (policy("1000"), policy("1k")),
        (mapping("0.5"), mapping("500m")),
        (json!({"attributes": {"v": {"ints": []}}}), json!({"attributes": {"v": {}}})),
    ];
    for (one, other) in cases {
        assert!(same(&one, &other) && same(&other, &one), "{one} and {other}");
    }
}

#[test]
fn any_other_field_makes_a_difference() {
    let fields = [
        json!({"allNodes": false}),
        json!({"allowMultipleAllocations": false}),
        json!({"bindsToNode": false}),
        json!({"nodeName": ""}),
        json!({"nodeSelector": {"nodeSelectorTerms": []}}),
        json!({"bindingConditions": ["a", "b"]}),
        json!({"bindingConditions": ["b", "a"]}),
        json!({"bindingFailureConditions": ["a"]}),
        json!({"attributes": {"v": {"string": ""}}}),
        json!({"attributes": {"driver/v": {"string": ""}}}),
        json!({"attributes": {"v": {"bools": [true]}}}),
        json!({"attributes": {"v": {"strings": ["a", "b"]}}}),
        json!({"attributes": {"v": {"strings": ["b", "a"]}}}),
        json!({"attributes": {"v": {"versions": ["1.0.0"]}}}),
        json!({"attributes": {"v": {"versions": ["1.0.0+b1"]}}}),
        json!({"capacity": {"m": {"value": "1"}}}),
        json!({"capacity": {"m": {"value": "1", "requestPolicy": {}}}}),
        json!({"capacity": {"m": {"value": "not an amount"}}}),
        json!({"consumesCounters": [{"counterSet": "s", "counters": {}}]}),
        json!({"consumesCounters": [{"counterSet": "s", "counters": {}, "compatibilityGroups": ["g"]}]}),
        json!({"nodeAllocatableResources": {"cpu": {}}}),
        json!({"nodeAllocatableResources": {"cpu": {"overhead": {"perPod": "1"}}}}),
        json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}),
        json!({"taints": [{"key": "k", "effect": "NoSchedule", "value": "v"}]}),
        json!({}),
    ];
    for (number, one) in fields.iter().enumerate() {
        for (other_number, other) in fields.iter().enumerate() {
            assert_eq!(same(one, other), number == other_number, "{one} and {other}");
        }
    }
}
