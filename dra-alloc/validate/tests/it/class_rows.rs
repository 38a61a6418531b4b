//! Tests of every rule for classes and taint rules, with valid and invalid objects.

use dra_attrs::ErrorType::*;
use dra_attrs::FieldErrors;
use dra_validate::{Accepted, Write};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule};
use serde_json::{Value, from_value, json};

use super::world::{changed, check_rows, class, create, expect, rule, shipped, update};

#[test]
fn classes() {
    let selectors = |list: Value| json!({"/spec/selectors": list});
    let config = |list: Value| json!({"/spec/config": list});
    let name = |name: &str| json!({"/spec/extendedResourceName": name});
    const AT: &str = "spec.extendedResourceName";
    let many = |count: usize| json!(vec![json!({"cel": {"expression": "true"}}); count]);
    let configs = |count: usize| json!(vec![json!({"opaque": {"driver": "d", "parameters": {}}}); count]);
    check_rows::<DeviceClass>(
        &class(),
        &[
            (json!({"/metadata/name": "Gpu"}), &[("metadata.name", Invalid, "RFC 1123 subdomain")]),
            (json!({"/spec": {}}), &[]),
            (selectors(many(32)), &[]),
            (selectors(many(33)), &[("spec.selectors", TooMany, "must have at most 32 items")]),
            (selectors(json!([{}])), &[("spec.selectors[0].cel", Required, "")]),
            (
                selectors(json!([{"cel": {"expression": "1"}}])),
                &[("spec.selectors[0].cel.expression", Invalid, "must evaluate to bool")],
            ),
            (config(configs(32)), &[]),
            (config(configs(33)), &[("spec.config", TooMany, "must have at most 32 items")]),
            (config(json!([{}])), &[("spec.config[0].opaque", Required, "")]),
            (
                config(json!([{"opaque": {"driver": "", "parameters": {}}}])),
                &[("spec.config[0].opaque.driver", Required, "")],
            ),
            (name("example.com/gpu"), &[]),
            (name("gpu"), &[(AT, Invalid, "a name must be a domain-prefixed path, such as 'example.com/my-prop'")]),
            (name("requests.example.com/gpu"), &[(AT, Invalid, "must not have \"requests.\" prefix")]),
            (name("kubernetes.io/gpu"), &[(AT, Invalid, "must not have \"kubernetes.io/\" domain")]),
            (
                name("example.com/"),
                &[(AT, Invalid, "name part must be non-empty"), (AT, Invalid, "name part must consist of")],
            ),
            (
                json!({"/metadata/name": "a".repeat(254)}),
                &[("metadata.name", Invalid, "must be no more than 253 bytes")],
            ),
            (
                config(json!([{"opaque": {"driver": "d".repeat(64), "parameters": {}}}])),
                &[("spec.config[0].opaque.driver", TooLong, "may not be more than 63 characters")],
            ),
            (
                config(json!([{"opaque": {"driver": "é".repeat(63), "parameters": {}}}])),
                &[
                    ("spec.config[0].opaque.driver", TooLong, "may not be more than 63 bytes"),
                    ("spec.config[0].opaque.driver", Invalid, "an RFC 1123 subdomain must consist of"),
                ],
            ),
        ],
    );
}

#[test]
fn a_class_may_change_and_what_is_stored_may_stay() {
    let selectors = |list: Value| changed(&class(), json!({"/spec/selectors": list}));
    let (bad, good) = (json!({"cel": {"expression": "device.name"}}), json!({"cel": {"expression": "true"}}));
    let stored = selectors(json!([bad, good]));
    expect("same", update::<DeviceClass>(shipped(), stored.clone(), stored.clone()), &[]);
    expect(
        "another order",
        update::<DeviceClass>(shipped(), stored.clone(), selectors(json!([good, bad]))),
        &[("spec.selectors[1].cel.expression", Invalid, "undefined field 'name'")],
    );
    expect("repaired", update::<DeviceClass>(shipped(), stored, selectors(json!([good]))), &[]);

    let config =
        |bytes: usize| changed(&class(), json!({"/spec/config/0/opaque/parameters": {"a": "x".repeat(bytes)}}));
    let field = "spec.config[0].opaque.parameters";
    expect("stored", update::<DeviceClass>(shipped(), config(20_000), config(20_000)), &[]);
    let grown = update::<DeviceClass>(shipped(), config(20_000), config(20_001));
    expect("changed", grown, &[(field, TooLong, "10240 bytes")]);
    let list = changed(&class(), json!({"/spec/config/0/opaque/parameters": []}));
    let outcome = update::<DeviceClass>(shipped(), list.clone(), list);
    expect("only the size", outcome, &[(field, Invalid, "must be a valid JSON object")]);

    let named = changed(&class(), json!({"/spec/extendedResourceName": "gpu"}));
    for old in [class(), named.clone()] {
        let outcome = update::<DeviceClass>(shipped(), old, named.clone());
        expect("name", outcome, &[("spec.extendedResourceName", Invalid, "")]);
    }
}

#[test]
fn taint_rules() {
    let selector = |field: &str, value: Value| json!({format!("/spec/deviceSelector/{field}"): value});
    let taint = |field: &str, value: Value| json!({format!("/spec/taint/{field}"): value});
    let path = |field: &str| format!("spec.deviceSelector.{field}");
    check_rows::<DeviceTaintRule>(
        &rule(),
        &[
            (json!({"/metadata/name": "A"}), &[("metadata.name", Invalid, "RFC 1123 subdomain")]),
            (json!({"/spec/deviceSelector": null}), &[]),
            (json!({"/spec/deviceSelector": {}}), &[]),
            (selector("driver", json!("")), &[(&path("driver"), Required, "")]),
            (
                selector("pool", json!("/")),
                &[(&path("pool"), Invalid, "RFC 1123 subdomain"), (&path("pool"), Invalid, "RFC 1123 subdomain")],
            ),
            (selector("device", json!("A")), &[(&path("device"), Invalid, "RFC 1123 label")]),
            (taint("key", json!("a b")), &[("spec.taint.key", Invalid, "name part must consist of")]),
            (taint("value", json!("a b")), &[("spec.taint.value", Invalid, "a valid label")]),
            (taint("effect", json!("")), &[("spec.taint.effect", Required, "")]),
            (taint("effect", json!("None")), &[]),
            (taint("effect", json!("Some")), &[("spec.taint.effect", NotSupported, "\"NoExecute\"")]),
        ],
    );
}

#[test]
fn a_stored_effect_of_a_rule_may_stay() {
    let stored = changed(&rule(), json!({"/spec/taint/effect": "Future"}));
    let other = changed(&stored, json!({"/spec/taint/value": "no"}));
    expect("same", update::<DeviceTaintRule>(shipped(), stored.clone(), other), &[]);
    let new = changed(&rule(), json!({"/spec/taint/effect": "Later"}));
    expect("new", update::<DeviceTaintRule>(shipped(), stored, new), &[("spec.taint.effect", NotSupported, "")]);
}

#[test]
fn the_status_of_a_rule() {
    let conditions = |count: usize| {
        let list: Value = (0..count)
            .map(|index| {
                json!({"type": format!("T{index}"), "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-01T00:00:00Z"})
            })
            .collect();
        from_value::<DeviceTaintRule>(changed(&rule(), json!({"/status": {"conditions": list}}))).unwrap()
    };
    let old: DeviceTaintRule = from_value(rule()).unwrap();
    let write = |new: &DeviceTaintRule| shipped().validate_taint_rule_status(Write::update(&old, new));
    expect("few", write(&conditions(8)), &[]);
    expect("many", write(&conditions(9)), &[("status.conditions", TooMany, "must have at most 8 items")]);
    assert_eq!(write(&conditions(1)).unwrap().object.spec, old.spec);
    let created = create::<DeviceTaintRule>(shipped(), serde_json::to_value(conditions(1)).unwrap()).unwrap();
    assert_eq!(created.object.status, None);
}

#[test]
fn the_generation_of_classes_and_rules_counts_changes_of_the_spec() {
    let stored = |object: Value| changed(&object, json!({"/metadata/generation": 4}));
    let labels = json!({"/metadata/labels": {"a": "b"}});
    let class = stored(class());
    let of_class = |outcome: Result<Accepted<DeviceClass>, FieldErrors>| outcome.unwrap().object.metadata.generation;
    assert_eq!(of_class(create(shipped(), class.clone())), Some(1));
    assert_eq!(of_class(update(shipped(), class.clone(), changed(&class, labels.clone()))), Some(4));
    assert_eq!(of_class(update(shipped(), class.clone(), changed(&class, json!({"/spec": {}})))), Some(5));

    let rule = stored(rule());
    let of_rule = |outcome: Result<Accepted<DeviceTaintRule>, FieldErrors>| outcome.unwrap().object.metadata.generation;
    assert_eq!(of_rule(create(shipped(), rule.clone())), Some(1));
    assert_eq!(of_rule(update(shipped(), rule.clone(), changed(&rule, labels))), Some(4));
    let effect = changed(&rule, json!({"/spec/taint/effect": "None"}));
    assert_eq!(of_rule(update(shipped(), rule, effect)), Some(5));
}
