//! Tests of every rule for claims and templates, with valid and invalid objects.

use dra_attrs::ErrorType::*;
use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_validate::{ApiServer, NamespaceAccess};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate};
use serde_json::{Value, json};

use super::world::{Expected, changed, check_rows, claim, create, expect, shipped, template, text, update};

const EXACT: &str = "spec.devices.requests[0].exactly";
const SUB: &str = "spec.devices.requests[1].firstAvailable";

fn exact(field: &str, value: Value) -> Value {
    json!({format!("/spec/devices/requests/0/exactly/{field}"): value})
}

fn request(name: &str) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": "c"}})
}

#[test]
fn amounts_of_requests() {
    let sub = |amount: &str| {
        let capacity = json!({"requests": {"memory": amount}});
        let sub = json!({"name": "s", "deviceClassName": "c", "capacity": capacity});
        json!({"/spec/devices": {"requests": [{"name": "r", "firstAvailable": [sub]}]}})
    };
    let of_sub = "spec.devices.requests[0].firstAvailable[0].capacity.requests[memory]";
    let of_request = format!("{EXACT}.capacity.requests[memory]");
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (exact("capacity", json!({"requests": {"memory": "1Gi", "any name": "-1"}})), &[]),
            (exact("capacity", json!({"requests": {"memory": "lots"}})), &[(&of_request, Invalid, "quantities must")]),
            (sub("1"), &[]),
            (sub("1i"), &[(of_sub, Invalid, "quantities must")]),
        ],
    );
}

#[test]
fn requests_and_alternatives() {
    let requests = |count: usize| -> Value { (0..count).map(|index| request(&format!("r{index}"))).collect() };
    let only = |requests: Value| json!({"/spec/devices": {"requests": requests}});
    let subs = |count: usize| -> Value {
        (0..count).map(|index| json!({"name": format!("s{index}"), "deviceClassName": "c"})).collect()
    };
    let alternatives = |list: Value| only(json!([{"name": "r", "firstAvailable": list}]));
    const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (json!({"/metadata/name": "A"}), &[("metadata.name", Invalid, "RFC 1123 subdomain")]),
            (only(requests(32)), &[]),
            (only(requests(33)), &[("spec.devices.requests", TooMany, "must have at most 32 items")]),
            (only(json!([request("r"), request("r")])), &[("spec.devices.requests[1]", Duplicate, "")]),
            (only(json!([request("")])), &[("spec.devices.requests[0].name", Invalid, "RFC 1123 label")]),
            (only(json!([request("a.b")])), &[("spec.devices.requests[0].name", Invalid, "must not contain dots")]),
            (only(json!([{"name": "r"}])), &[("spec.devices.requests[0]", Required, ONE_OF)]),
            (only(json!([{"name": "r", "firstAvailable": []}])), &[("spec.devices.requests[0]", Required, ONE_OF)]),
            (
                only(json!([{"name": "r", "exactly": {"deviceClassName": "c"}, "firstAvailable": subs(1)}])),
                &[("spec.devices.requests[0]", Invalid, "but multiple fields are set")],
            ),
            (alternatives(subs(8)), &[]),
            (
                alternatives(subs(9)),
                &[("spec.devices.requests[0].firstAvailable", TooMany, "must have at most 8 items")],
            ),
            (
                alternatives(json!([{"name": "s", "deviceClassName": "c"}, {"name": "s", "deviceClassName": "c"}])),
                &[("spec.devices.requests[0].firstAvailable[1]", Duplicate, "")],
            ),
            (
                alternatives(json!([{"name": "S", "deviceClassName": "c"}])),
                &[("spec.devices.requests[0].firstAvailable[0].name", Invalid, "RFC 1123 label")],
            ),
            (
                alternatives(json!([{"name": "s", "deviceClassName": ""}])),
                &[("spec.devices.requests[0].firstAvailable[0].deviceClassName", Required, "")],
            ),
        ],
    );
}

#[test]
fn class_mode_and_count() {
    let path = |field: &str| format!("{EXACT}.{field}");
    let how = |mode: Value, count: Value| json!({"/spec/devices/requests/0/exactly/allocationMode": mode, "/spec/devices/requests/0/exactly/count": count});
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (exact("deviceClassName", json!("")), &[(&path("deviceClassName"), Required, "")]),
            (exact("deviceClassName", json!("C")), &[(&path("deviceClassName"), Invalid, "RFC 1123 subdomain")]),
            (how(json!(null), json!(null)), &[]),
            (how(json!("ExactCount"), json!(1_000_000)), &[]),
            (how(json!("All"), json!(null)), &[]),
            (how(json!("All"), json!(0)), &[]),
            (
                how(json!("All"), json!(1)),
                &[(&path("count"), Invalid, "must not be specified when allocationMode is 'All'")],
            ),
            (how(json!("ExactCount"), json!(0)), &[]),
            (how(json!(""), json!(0)), &[]),
            (how(json!("ExactCount"), json!(-1)), &[(&path("count"), Invalid, "must be greater than zero")]),
            (
                how(json!("Some"), json!(1)),
                &[(&path("allocationMode"), NotSupported, "supported values: \"All\", \"ExactCount\"")],
            ),
        ],
    );
}

#[test]
fn selectors() {
    let path = |field: &str| format!("{EXACT}.selectors{field}");
    let cel = |expression: String| exact("selectors", json!([{"cel": {"expression": expression}}]));
    let many = |count: usize| exact("selectors", json!(vec![json!({"cel": {"expression": "true"}}); count]));
    let long = |bytes: usize| format!("true{}", " ".repeat(bytes - 4));
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (many(32), &[]),
            (many(33), &[(&path(""), TooMany, "must have at most 32 items")]),
            (exact("selectors", json!([{}])), &[(&path("[0].cel"), Required, "")]),
            (cel(long(10 * 1024)), &[]),
            (cel(long(10 * 1024 + 1)), &[(&path("[0].cel.expression"), TooLong, "may not be more than 10240 bytes")]),
            (cel("device.attributes['a.b'].c".to_owned()), &[]),
            (
                cel("device.name == 'x'".to_owned()),
                &[(
                    &path("[0].cel.expression"),
                    Invalid,
                    "compilation failed: ERROR: <input>:1:7: undefined field 'name'\n | device.name == 'x'\n | ......^",
                )],
            ),
            (cel("1 +".to_owned()), &[(&path("[0].cel.expression"), Invalid, "compilation failed: ")]),
            (cel(String::new()), &[(&path("[0].cel.expression"), Invalid, "compilation failed: ")]),
            (
                cel("device.driver".to_owned()),
                &[(&path("[0].cel.expression"), Invalid, "must evaluate to bool or the unknown type, not string")],
            ),
        ],
    );
}

#[test]
fn tolerations() {
    let one = |toleration: Value| exact("tolerations", json!([toleration]));
    let path = |field: &str| format!("{EXACT}.tolerations[0].{field}");
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (one(json!({})), &[]),
            (one(json!({"key": "a.b/c", "operator": "Equal", "value": "v", "effect": "NoExecute"})), &[]),
            // The API server accepts some values that its documentation rules out.
            (one(json!({"operator": "Equal", "value": "v", "effect": "None"})), &[]),
            (exact("tolerations", json!(vec![json!({"key": "k", "operator": "Exists"}); 17])), &[]),
            (one(json!({"key": "a b", "operator": "Exists"})), &[(&path("key"), Invalid, "name part must consist of")]),
            (one(json!({"key": "k", "operator": ""})), &[]),
            (
                one(json!({"key": "k", "operator": "Like"})),
                &[(&path("operator"), NotSupported, "supported values: \"Equal\", \"Exists\"")],
            ),
            (
                one(json!({"key": "k", "operator": "Exists", "value": "v"})),
                &[(&path("value"), Invalid, "must be empty for operator `Exists`")],
            ),
            (
                one(json!({"key": "k", "operator": "Equal", "value": "a b"})),
                &[(&path("value"), Invalid, "a valid label")],
            ),
            (
                one(json!({"key": "k", "operator": "Exists", "effect": "Some"})),
                &[(&path("effect"), NotSupported, "\"NoExecute\", \"NoSchedule\", \"None\"")],
            ),
        ],
    );
}

#[test]
fn derived_attributes_are_used_by_a_constraint() {
    const UNUSED: &str = "must be referenced by at least one matchAttribute or distinctAttribute constraint";
    let derived = |list: Value, constraints: Value| json!({"/spec/devices/requests/0/exactly/derivedAttributes": list, "/spec/devices/constraints": constraints});
    let a = json!([{"name": "derived/a", "expression": "1"}]);
    let path = |field: &str| format!("{EXACT}.derivedAttributes{field}");
    let on = |requests: Value| json!([{"requests": requests, "matchAttribute": "derived/a"}]);
    let many = |count: usize| -> Value {
        (0..count).map(|index| json!({"name": format!("derived/a{index}"), "expression": "1"})).collect()
    };
    let uses = |count: usize| -> Value {
        (0..count).map(|index| json!({"matchAttribute": format!("derived/a{index}")})).collect()
    };
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (derived(a.clone(), json!([{"matchAttribute": "derived/a"}])), &[]),
            (derived(a.clone(), json!([{"distinctAttribute": "derived/a"}])), &[]),
            (derived(a.clone(), on(json!(["gpu"]))), &[]),
            (derived(a.clone(), on(json!(["nic"]))), &[(&path("[0].name"), Invalid, UNUSED)]),
            (derived(json!([a[0], a[0]]), on(json!(["gpu"]))), &[(&path("[1]"), Duplicate, "")]),
            (derived(json!([{"name": "", "expression": "1"}]), json!([])), &[(&path("[0].name"), Required, "")]),
            (
                derived(json!([{"name": "a", "expression": "1"}]), json!([])),
                &[(&path("[0].name"), Invalid, "a fully qualified name must be"), (&path("[0].name"), Invalid, UNUSED)],
            ),
            (
                derived(json!([{"name": "derived/a", "expression": ""}]), on(json!([]))),
                &[(&path("[0].expression"), Required, "")],
            ),
            (
                derived(json!([{"name": "derived/a", "expression": "1.5"}]), on(json!([]))),
                &[(&path("[0].expression"), Invalid, "must evaluate to a primitive scalar")],
            ),
            (derived(many(31), uses(31)), &[]),
            (derived(many(33), uses(32)), &[(&path(""), TooMany, "must have at most 32 items")]),
        ],
    );
    // A constraint on a request covers its subrequests; a constraint on another subrequest does not.
    let of_sub = |requests: Value| {
        json!({"/spec/devices/requests/1/firstAvailable/0/derivedAttributes": a,
            "/spec/devices/requests/0/exactly/derivedAttributes": null, "/spec/devices/constraints": on(requests)})
    };
    let unused: &[Expected<'_>] =
        &[("spec.devices.requests[1].firstAvailable[0].derivedAttributes[0].name", Invalid, UNUSED)];
    check_rows::<ResourceClaim>(
        &claim(),
        &[(of_sub(json!(["nic"])), &[]), (of_sub(json!(["nic/fast"])), &[]), (of_sub(json!(["nic/slow"])), unused)],
    );
}

#[test]
fn constraints() {
    const REFERENCE: &str = "must be the name of a request in the claim or the name of a request and a subrequest";
    let only = |constraint: Value| json!({"/spec/devices/constraints": [constraint], "/spec/devices/requests/0/exactly/derivedAttributes": null});
    let on = |requests: Value| only(json!({"requests": requests, "matchAttribute": "a.b/c"}));
    let path = |field: &str| format!("spec.devices.constraints[0].{field}");
    let many = |count: usize| {
        json!({"/spec/devices/constraints": vec![json!({"matchAttribute": "a.b/c"}); count],
            "/spec/devices/requests/0/exactly/derivedAttributes": null})
    };
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (many(32), &[]),
            (many(33), &[("spec.devices.constraints", TooMany, "must have at most 32 items")]),
            (on(json!(["gpu", "nic", "nic/slow"])), &[]),
            (on(json!(["gpu", "gpu"])), &[(&path("requests[1]"), Duplicate, "")]),
            (on(json!(["cpu"])), &[(&path("requests[0]"), Invalid, REFERENCE)]),
            (on(json!(["gpu/fast"])), &[(&path("requests[0]"), Invalid, REFERENCE)]),
            (on(json!(["nic/fast/er"])), &[(&path("requests[0]"), Invalid, REFERENCE)]),
            (
                on(json!(["nic/"])),
                &[(&path("requests[0]"), Invalid, "RFC 1123 label"), (&path("requests[0]"), Invalid, REFERENCE)],
            ),
            (on(json!(vec!["gpu"; 33])), &[(&path("requests"), TooMany, "must have at most 32 items")]),
            (only(json!({"matchAttribute": "c"})), &[(&path("matchAttribute"), Invalid, "a fully qualified name")]),
            (
                only(json!({"distinctAttribute": "c"})),
                &[(&path("distinctAttribute"), Invalid, "a fully qualified name")],
            ),
            (only(json!({"matchAttribute": "A.b/c"})), &[(&path("matchAttribute"), Invalid, "RFC 1123 subdomain")]),
            (only(json!({"matchAttribute": "a.b/c/d"})), &[(&path("matchAttribute"), Invalid, "more than one slash")]),
            (only(json!({"distinctAttribute": "A.b/c"})), &[]),
            (only(json!({"distinctAttribute": "a.b/c/d"})), &[(&path("distinctAttribute"), Invalid, "one slash")]),
            // Nothing validates the second of two names.
            (only(json!({"matchAttribute": "a.b/c", "distinctAttribute": "a.b/c"})), &[]),
            (only(json!({"matchAttribute": "a.b/c", "distinctAttribute": "c"})), &[]),
            (only(json!({"matchAttribute": "a.b/c", "distinctAttribute": "é"})), &[]),
            (only(json!({})), &[("spec.devices.constraints[0]", Required, "but multiple fields are set")]),
        ],
    );
    let gate_off = ApiServer::new(Component::new(Profile::V1_37, GateSet::all().without(Gate::ConsumableCapacity)));
    let object = changed(&claim(), only(json!({})));
    expect::<ResourceClaim>("gate off", create(gate_off, object), &[(&path("matchAttribute"), Required, "")]);
}

#[test]
fn configuration() {
    let config = |list: Value| json!({"/spec/devices/config": list});
    let opaque =
        |driver: &str, parameters: Value| config(json!([{"opaque": {"driver": driver, "parameters": parameters}}]));
    let path = |field: &str| format!("spec.devices.config[0].{field}");
    let sized = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    let many = |count: usize| config(json!(vec![json!({"opaque": {"driver": "d", "parameters": {}}}); count]));
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (many(32), &[]),
            (many(33), &[("spec.devices.config", TooMany, "must have at most 32 items")]),
            (config(json!([{}])), &[(&path("opaque"), Required, "")]),
            (
                config(json!([{"requests": ["x"], "opaque": {"driver": "d", "parameters": {}}}])),
                &[(&path("requests[0]"), Invalid, "must be the name of a request")],
            ),
            (opaque("", json!({})), &[(&path("opaque.driver"), Required, "")]),
            (opaque("a_b", json!({})), &[(&path("opaque.driver"), Invalid, "RFC 1123 subdomain")]),
            (opaque("d", json!(null)), &[(&path("opaque.parameters"), Required, "")]),
            (opaque("d", json!([1])), &[(&path("opaque.parameters"), Invalid, "must be a valid JSON object")]),
            (opaque("d", sized(10 * 1024)), &[]),
            (opaque("d", sized(10 * 1024 + 1)), &[(&path("opaque.parameters"), TooLong, "10240 bytes")]),
        ],
    );
}

#[test]
fn numbers_of_parameters_are_doubles_beyond_64_bits() {
    let with_serial = |serial: &str| {
        let parameters: Value = serde_json::from_str(&format!(r#"{{"serial": {serial}}}"#)).unwrap();
        let config = json!([{"opaque": {"driver": "d", "parameters": parameters}}]);
        changed(&claim(), json!({"/spec/devices/config": config}))
    };
    let is_same =
        |one: &str, other: &str| update::<ResourceClaim>(shipped(), with_serial(one), with_serial(other)).is_ok();
    assert!(!is_same("18446744073709551614", "18446744073709551615"));
    assert!(is_same("12345678901234567890123", "12345678901234567890124"));
}

#[test]
fn the_spec_of_a_claim_stays_and_is_not_looked_at_again() {
    let bad = changed(&claim(), exact("selectors", json!([{"cel": {"expression": "device.name"}}])));
    let relabelled = changed(&bad, json!({"/metadata/labels": {"a": "b"}}));
    expect("labels", update::<ResourceClaim>(shipped(), bad.clone(), relabelled), &[]);
    let fixed = update::<ResourceClaim>(shipped(), bad, claim());
    expect("spec", fixed, &[("spec", Invalid, "field is immutable")]);
    let amounts = |amount: &str| changed(&claim(), exact("capacity", json!({"requests": {"memory": amount}})));
    expect("amount", update::<ResourceClaim>(shipped(), amounts("1Gi"), amounts("1024Mi")), &[]);
    let more = update::<ResourceClaim>(shipped(), amounts("1Gi"), amounts("2Gi"));
    expect("amount", more, &[("spec", Invalid, "field is immutable")]);
}

#[test]
fn what_is_filled_in_or_empty_is_no_change() {
    let as_stored = [
        exact("allocationMode", json!("ExactCount")),
        exact("count", json!(1)),
        exact("tolerations", json!([{"key": "a", "operator": "Equal", "value": "", "effect": ""}])),
    ];
    let as_written = [json!({}), json!({}), exact("tolerations", json!([{"key": "a"}]))];
    for (stored, written) in as_stored.into_iter().zip(as_written) {
        let (stored, written) = (changed(&claim(), stored), changed(&claim(), written));
        expect("claim", update::<ResourceClaim>(shipped(), stored.clone(), written.clone()), &[]);
        expect("claim", update::<ResourceClaim>(shipped(), written, stored), &[]);
    }
    let bare = |spec: Value| json!({"metadata": {"name": "bare"}, "spec": spec});
    expect("devices", update::<ResourceClaim>(shipped(), bare(json!({"devices": {}})), bare(json!({}))), &[]);
    let annotated = changed(&template(), json!({"/spec/metadata": {}}));
    let plain = changed(&template(), json!({"/spec/metadata": null}));
    expect("template", update::<ResourceClaimTemplate>(shipped(), annotated, plain), &[]);
    let capacity = |capacity: Value| changed(&claim(), exact("capacity", capacity));
    let (stored, written) = (capacity(json!({})), capacity(json!({"requests": {}})));
    expect("capacity", update::<ResourceClaim>(shipped(), stored, written), &[]);
    let (stored, written) = (template(), changed(&template(), json!({"/spec/metadata": {"name": ""}})));
    expect("template", update::<ResourceClaimTemplate>(shipped(), stored, written), &[]);
    let two = changed(&claim(), exact("count", json!(2)));
    expect("two", update::<ResourceClaim>(shipped(), claim(), two), &[("spec", Invalid, "field is immutable")]);
}

#[test]
fn what_is_there_without_content_is_not_what_is_left_out() {
    let all = changed(&claim(), exact("allocationMode", json!("All")));
    let all = changed(&all, exact("count", json!(null)));
    let constraint = |constraint: Value| changed(&claim(), json!({"/spec/devices/constraints/1": constraint}));
    for (what, old, new) in [
        // 1 is the default of `count` only for the allocation mode `ExactCount`, and the mode here is `All`.
        ("count", all.clone(), changed(&all, exact("count", json!(1)))),
        ("capacity", claim(), changed(&claim(), exact("capacity", json!({})))),
        (
            "attribute",
            constraint(json!({"matchAttribute": "a.b/c"})),
            constraint(json!({"matchAttribute": "a.b/c", "distinctAttribute": ""})),
        ),
    ] {
        let there = update::<ResourceClaim>(shipped(), old.clone(), new.clone());
        expect(what, there, &[("spec", Invalid, "field is immutable")]);
        expect(what, update::<ResourceClaim>(shipped(), new, old), &[("spec", Invalid, "field is immutable")]);
    }
    let none = changed(&all, exact("count", json!(0)));
    expect("no count", update::<ResourceClaim>(shipped(), all, none), &[]);
}

#[test]
fn what_a_driver_wrote_is_compared_as_it_is() {
    let opaque = |parameters: Value| {
        let config = json!([{"opaque": {"driver": "d", "parameters": parameters}}]);
        changed(&claim(), json!({"/spec/devices/config": config}))
    };
    for (old, new) in [
        (json!({"capacity": "1Gi"}), json!({"capacity": "1024Mi"})),
        (json!({"x": 1, "y": []}), json!({"x": 1})),
        (json!({"count": 1}), json!({})),
    ] {
        let update = update::<ResourceClaim>(shipped(), opaque(old), opaque(new));
        expect("parameters", update, &[("spec", Invalid, "field is immutable")]);
    }
}

#[test]
fn a_template_is_a_claim_one_level_down() {
    check_rows::<ResourceClaimTemplate>(
        &template(),
        &[
            (json!({"/metadata/name": "A"}), &[("metadata.name", Invalid, "RFC 1123 subdomain")]),
            (
                json!({"/spec/spec/devices/requests/0/exactly/deviceClassName": ""}),
                &[("spec.spec.devices.requests[0].exactly.deviceClassName", Required, "")],
            ),
            (
                json!({"/spec/spec/devices/config/0/opaque": null}),
                &[("spec.spec.devices.config[0].opaque", Required, "")],
            ),
        ],
    );
    let bad = changed(&template(), json!({"/spec/spec/devices/requests/0/exactly/deviceClassName": ""}));
    // A stored template is validated again.
    let same = update::<ResourceClaimTemplate>(shipped(), bad.clone(), bad.clone());
    expect("same", same, &[("spec.spec.devices.requests[0].exactly.deviceClassName", Required, "")]);
    let fixed = update::<ResourceClaimTemplate>(shipped(), bad, template());
    expect("changed", fixed, &[("spec", Invalid, "field is immutable")]);
}

#[test]
fn a_template_gives_its_claims_labels_and_annotations_only() {
    let given = |field: &str, value: Value| json!({format!("/spec/metadata/{field}"): value});
    let path = |field: &str| format!("spec.metadata.{field}");
    let metadata = json!({"labels": {"a": "b"}, "annotations": {"A.b/C": "any text"}, "name": ""});
    let template = changed(&template(), json!({"/spec/metadata": metadata}));
    check_rows::<ResourceClaimTemplate>(
        &template,
        &[
            (json!({}), &[]),
            (given("labels", json!({"a b": "c"})), &[(&path("labels"), Invalid, "name part must consist of")]),
            (given("labels", json!({"a": "b c"})), &[(&path("labels"), Invalid, "a valid label must be")]),
            (given("annotations", json!({"a b": ""})), &[(&path("annotations"), Invalid, "name part must consist of")]),
            (given("annotations", json!({"a": text(256 * 1024 - 1)})), &[]),
            (
                given("annotations", json!({"a": text(256 * 1024)})),
                &[(&path("annotations"), TooLong, "may not be more than 262144 bytes")],
            ),
            (given("name", json!("n")), &[(&path("name"), Forbidden, "cannot be set")]),
            (given("generateName", json!("n-")), &[(&path("generateName"), Forbidden, "cannot be set")]),
            (given("finalizers", json!(["a.b/c"])), &[(&path("finalizers"), Forbidden, "cannot be set")]),
            (given("uid", json!("u")), &[(&path("uID"), Forbidden, "cannot be set")]),
        ],
    );
}

#[test]
fn admin_access_needs_a_namespace_with_the_label() {
    let admin = changed(&claim(), exact("adminAccess", json!(true)));
    let field = "spec.devices.requests[0].adminAccess";
    let refused: &[Expected<'_>] =
        &[(field, Forbidden, "requires the `resource.kubernetes.io/admin-access: true` label")];
    let labelled = |value: &str| {
        let mut namespace = Namespace::default();
        namespace.metadata.labels = Some([("resource.kubernetes.io/admin-access".to_owned(), value.to_owned())].into());
        NamespaceAccess::from_namespace(&namespace)
    };
    for (access, expected) in [
        (NamespaceAccess::Unknown, &[][..]),
        (NamespaceAccess::from_namespace(&Namespace::default()), refused),
        (labelled("false"), refused),
        (labelled("true"), &[]),
    ] {
        expect::<ResourceClaim>("claim", create(shipped().with_namespace(access), admin.clone()), expected);
    }
    let ordinary = shipped().with_namespace(NamespaceAccess::Ordinary);
    expect::<ResourceClaim>("no admin access", create(ordinary, claim()), &[]);
    let no = changed(&claim(), exact("adminAccess", json!(false)));
    expect::<ResourceClaim>("false", create(ordinary, no), &[]);
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": admin["spec"]}});
    expect::<ResourceClaimTemplate>("template", create(ordinary, template), &[(field, Forbidden, "admin access")]);
    let misnamed = changed(&admin, json!({"/metadata/name": "A"}));
    expect::<ResourceClaim>(
        "before all else",
        create(ordinary, misnamed),
        &[(field, Forbidden, "admin access"), ("metadata.name", Invalid, "RFC 1123 subdomain")],
    );
    expect("update", update::<ResourceClaim>(ordinary, admin.clone(), admin), &[]);
}

#[test]
fn subrequests_are_checked_like_requests() {
    let sub = |field: &str, value: Value| json!({format!("/spec/devices/requests/1/firstAvailable/1/{field}"): value});
    let path = |field: &str| format!("{SUB}[1].{field}");
    check_rows::<ResourceClaim>(
        &claim(),
        &[
            (sub("count", json!(2)), &[]),
            (sub("count", json!(-2)), &[(&path("count"), Invalid, "must be greater than zero")]),
            (sub("allocationMode", json!("x")), &[(&path("allocationMode"), NotSupported, "")]),
            (sub("selectors", json!([{}])), &[(&path("selectors[0].cel"), Required, "")]),
            (sub("tolerations", json!([{"operator": "x"}])), &[(&path("tolerations[0].operator"), NotSupported, "")]),
        ],
    );
}

#[test]
fn an_absent_spec_is_an_empty_one() {
    let metadata = || json!({"metadata": {"namespace": "default", "name": "c"}});
    let with = |spec: Value| {
        let mut object = metadata();
        object["spec"] = spec;
        object
    };
    let claims = [json!({}), json!({"devices": {}}), json!({"devices": {"requests": [], "constraints": []}})];
    for spec in claims.clone() {
        expect("taken away", update::<ResourceClaim>(shipped(), with(spec.clone()), metadata()), &[]);
        expect("added", update::<ResourceClaim>(shipped(), metadata(), with(spec)), &[]);
    }
    for spec in claims {
        let template = with(json!({"metadata": {}, "spec": spec}));
        expect("template", update::<ResourceClaimTemplate>(shipped(), template.clone(), metadata()), &[]);
        expect("template", update::<ResourceClaimTemplate>(shipped(), metadata(), template), &[]);
    }
    for spec in [json!({}), json!({"selectors": [], "config": []})] {
        let stored = update::<DeviceClass>(shipped(), with(spec), metadata()).unwrap().object;
        assert_eq!(stored.metadata.generation, None, "nothing has changed");
    }
}
