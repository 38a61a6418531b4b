//! Tests of the validation of `skipNodeOperations` in both profiles (KEP-5945).

use dra_attrs::ErrorType::*;
use dra_attrs::{Component, FieldErrors, Gate, GateSet, Profile};
use dra_validate::{ApiServer, Write};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

use super::world::{BOTH, Expected, Written, changed, claim, create, expect, fields, slice, update, update_status};

const SLICE: &str = "spec.skipNodeOperations";
const RESULTS: &str = "status.allocation.devices.results";

fn off(profile: Profile) -> ApiServer {
    ApiServer::new(Component::new(profile, GateSet::all().without(Gate::OptionalNodeOperations)))
}

fn on(profile: Profile) -> ApiServer {
    ApiServer::new(Component::new(profile, GateSet::all()))
}

fn skipping(declaration: Value) -> Value {
    changed(&slice(), json!({"/spec/skipNodeOperations": declaration}))
}

/// Creates a claim with one device result for each declaration.
fn results(declarations: &[Value]) -> Value {
    let results: Vec<Value> = declarations
        .iter()
        .enumerate()
        .map(|(index, declaration)| {
            json!({"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": format!("gpu-{index}"),
                "skipNodeOperations": declaration})
        })
        .collect();
    changed(&claim(), json!({"/status": {"allocation": {"devices": {"results": results}}}}))
}

fn declared(slice: &ResourceSlice) -> Option<Vec<String>> {
    slice.spec.skip_node_operations.clone()
}

fn declared_in(claim: &ResourceClaim) -> Vec<Option<Vec<String>>> {
    let allocation = claim.status.as_ref().unwrap().allocation.as_ref().unwrap();
    let results = allocation.devices.as_ref().unwrap().results.as_ref().unwrap();
    results.iter().map(|result| result.skip_node_operations.clone()).collect()
}

const REJECTED: Expected<'static> =
    (SLICE, Forbidden, "must not be set while the feature gate DRAOptionalNodePreparation is disabled");

#[test]
fn the_kep_rejects_what_is_new_while_the_gate_is_off() {
    // req: 5945-VAL-1, 5945-VAL-4, 5945-VAL-6
    let server = off(Profile::Kep);
    for unset in [json!(null), json!(false)] {
        expect::<ResourceSlice>("create unset", create(server, skipping(unset.clone())), &[]);
        for other in [json!(null), json!(false)] {
            let outcome = update::<ResourceSlice>(server, skipping(unset.clone()), skipping(other));
            expect("unset stays", outcome, &[]);
        }
        let outcome = update::<ResourceSlice>(server, skipping(unset.clone()), skipping(json!(true)));
        expect("enabled", outcome, &[REJECTED]);
        let outcome = update::<ResourceSlice>(server, skipping(json!(true)), skipping(unset));
        expect("cleared", outcome, &[]);
    }
    expect::<ResourceSlice>("create set", create(server, skipping(json!(true))), &[REJECTED]);
    let outcome = update::<ResourceSlice>(server, skipping(json!(true)), skipping(json!(true)));
    expect("stays", outcome, &[]);
}

#[test]
fn the_kep_rejects_a_new_allocation_with_the_field_while_the_gate_is_off() {
    // req: 5945-VAL-2
    let new = results(&[json!(false), json!(true), json!(null), json!(true)]);
    let (first, second) = (format!("{RESULTS}[1].skipNodeOperations"), format!("{RESULTS}[3].skipNodeOperations"));
    expect(
        "allocated",
        update_status(off(Profile::Kep), claim(), new.clone()),
        &[
            (&first, Forbidden, "DRAOptionalNodePreparation is disabled"),
            (&second, Forbidden, "DRAOptionalNodePreparation is disabled"),
        ],
    );
    let without_old = off(Profile::Kep).validate_claim_status(Write::create(&ResourceClaim::parse(new.clone())));
    assert_eq!(without_old.unwrap_err().len(), 2);
    expect("gate on", update_status(on(Profile::Kep), claim(), new), &[]);
}

#[test]
fn what_is_stored_stays_while_the_gate_is_off_also_when_other_fields_change() {
    // req: 5945-VAL-3, 5945-VAL-9
    for profile in BOTH {
        let stored = skipping(json!(true));
        let changed_too = changed(&stored, json!({"/spec/pool/generation": 5, "/metadata/labels": {"a": "b"}}));
        for new in [stored.clone(), changed_too] {
            let admitted = update::<ResourceSlice>(off(profile), stored.clone(), new).unwrap();
            assert_eq!(declared(&admitted.object), Some(vec!["*".to_owned()]));
            assert!(admitted.dropped.is_empty());
        }
        let stored = results(&[json!(true), json!(null)]);
        let reserved =
            changed(&stored, json!({"/status/reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}));
        let admitted = update_status(off(profile), stored.clone(), reserved).unwrap();
        assert_eq!(declared_in(&admitted.object), [Some(vec!["*".to_owned()]), None]);
        let relabelled = changed(&stored, json!({"/metadata/labels": {"a": "b"}, "/status": {}}));
        let admitted = update::<ResourceClaim>(off(profile), stored, relabelled).unwrap();
        assert_eq!(declared_in(&admitted.object), [Some(vec!["*".to_owned()]), None]);
    }
}

#[test]
fn the_gate_on_keeps_the_field() {
    // req: 5945-VAL-5
    for profile in BOTH {
        for declaration in [json!(null), json!(false), json!(true)] {
            let wanted = declared(&ResourceSlice::parse(skipping(declaration.clone())));
            let created = create::<ResourceSlice>(on(profile), skipping(declaration.clone())).unwrap();
            assert_eq!(declared(&created.object), wanted);
            for old in [json!(null), json!(false), json!(true)] {
                let updated = update::<ResourceSlice>(on(profile), skipping(old), skipping(declaration.clone()));
                assert_eq!(declared(&updated.unwrap().object), wanted);
            }
        }
        let allocated = update_status(on(profile), claim(), results(&[json!(true)])).unwrap();
        assert_eq!(declared_in(&allocated.object), [Some(vec!["*".to_owned()])]);
    }
}

#[test]
fn false_is_the_same_as_absent_in_what_is_stored() {
    for profile in BOTH {
        let (absent, said) = (results(&[json!(null)]), results(&[json!(false)]));
        expect("allocation", update_status(on(profile), absent, said), &[]);
        let admitted = update::<ResourceSlice>(on(profile), skipping(json!(null)), skipping(json!(false))).unwrap();
        let before = serde_json::from_value::<ResourceSlice>(skipping(json!(null))).unwrap();
        assert_eq!(admitted.object.metadata.generation, before.metadata.generation);
    }
}

#[test]
fn results_are_known_again_by_what_they_are() {
    // req: 5945-VAL-8
    // A stored allocation is immutable, so that each of these updates is also rejected for that reason.
    let immutable: Expected<'_> = ("status.allocation", Invalid, "field cannot be modified once set");
    let old = results(&[json!(true), json!(false)]);
    let newly = results(&[json!(true), json!(true)]);
    let field = format!("{RESULTS}[1].skipNodeOperations");
    let server = off(Profile::Kep);
    expect("newly", update_status(server, old.clone(), newly), &[immutable, (&field, Forbidden, "is disabled")]);
    // Stored results in another order are not new.
    let mut turned = old.clone();
    turned.pointer_mut("/status/allocation/devices/results").unwrap().as_array_mut().unwrap().reverse();
    expect("turned", update_status(server, old.clone(), turned), &[immutable]);
    // A result for another request, or for a device of the same name of another driver or pool, is new.
    let field = format!("{RESULTS}[0].skipNodeOperations");
    for (name, value) in [("request", "other"), ("driver", "other.example.com"), ("pool", "node-2")] {
        let pointer = format!("/status/allocation/devices/results/0/{name}");
        let other = changed(&old, json!({pointer: value}));
        expect(name, update_status(server, old.clone(), other), &[immutable, (&field, Forbidden, "is disabled")]);
    }
    // A result for another share of the same device is new.
    let shared = |share: &str| {
        let pointer = "/status/allocation/devices/results/0/shareID";
        changed(&old, json!({pointer: share}))
    };
    let one = "00000000-0000-0000-0000-000000000001";
    let two = "00000000-0000-0000-0000-000000000002";
    let field = format!("{RESULTS}[0].skipNodeOperations");
    expect("share", update_status(server, shared(one), shared(two)), &[immutable, (&field, Forbidden, "is disabled")]);
}

#[test]
fn what_is_stored_twice_for_one_device_may_stay() {
    // req: 5945-VAL-9
    let mut twice = results(&[json!(true), json!(null)]);
    let first = twice.pointer("/status/allocation/devices/results/0").unwrap().clone();
    let results = twice.pointer_mut("/status/allocation/devices/results").unwrap().as_array_mut().unwrap();
    for field in ["request", "driver", "pool", "device"] {
        results[1][field] = first[field].clone();
    }
    let reserved = changed(&twice, json!({"/status/reservedFor": [{"resource": "pods", "name": "q", "uid": "q-uid"}]}));
    expect("reserved", update_status(off(Profile::Kep), twice, reserved), &[]);
}

#[test]
fn names_of_operations_as_shipped() {
    // req: 5945-VAL-7
    const COUPLED: &str = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped";
    const KNOWN: &str = "supported values: \"*\", \"NodePrepareResources\", \"NodeUnprepareResources\"";
    let (p, u, all, future) = ("NodePrepareResources", "NodeUnprepareResources", "*", "NodeFutureResources");
    let second = format!("{SLICE}[1]");
    let first = format!("{SLICE}[0]");
    let rows: [(&[&str], &[Expected<'_>]); 13] = [
        (&[], &[]),
        (&[u], &[]),
        (&[p, u], &[]),
        (&[all], &[]),
        (&[p, all], &[]),
        (&[u, all], &[]),
        (&[p, u, all], &[]),
        (&[p], &[(SLICE, Invalid, COUPLED)]),
        (&[future], &[(&first, NotSupported, KNOWN)]),
        (&[u, future], &[(&second, NotSupported, KNOWN)]),
        (&[u, u], &[(&second, Duplicate, "")]),
        (&[p, p], &[(&second, Duplicate, ""), (SLICE, Invalid, COUPLED)]),
        (&[future, future], &[(&first, NotSupported, KNOWN), (&second, NotSupported, KNOWN), (&second, Duplicate, "")]),
    ];
    for (names, expected) in rows {
        let outcome = create::<ResourceSlice>(on(Profile::V1_37), skipping(json!(names)));
        expect(&format!("slice {names:?}"), outcome, expected);
        let below = |field: &str| field.replace(SLICE, &format!("{RESULTS}[0].skipNodeOperations"));
        let fields: Vec<String> = expected.iter().map(|(field, ..)| below(field)).collect();
        let expected: Vec<Expected<'_>> =
            expected.iter().zip(&fields).map(|((_, kind, detail), field)| (field.as_str(), *kind, *detail)).collect();
        let outcome = update_status(on(Profile::V1_37), claim(), results(&[json!(names)]));
        expect(&format!("claim {names:?}"), outcome, &expected);
    }
}

#[test]
fn what_a_stored_list_holds_is_tolerated_as_shipped() {
    // req: 5945-VAL-7
    let (u, future, later) = ("NodeUnprepareResources", "NodeFutureResources", "NodeLaterResources");
    let second = format!("{SLICE}[1]");
    let outcome = |old: Value, new: Value| update::<ResourceSlice>(on(Profile::V1_37), skipping(old), skipping(new));
    expect("unknown stays", outcome(json!([future]), json!([future])), &[]);
    expect("moved", outcome(json!([future]), json!([u, future])), &[]);
    expect("duplicates stay", outcome(json!([u, u]), json!([u, u])), &[]);
    expect("other unknown", outcome(json!([future]), json!([future, later])), &[(&second, NotSupported, "")]);
    expect("new duplicate", outcome(json!([u]), json!([u, u])), &[(&second, Duplicate, "")]);
    // Skipping prepare without unprepare is never tolerated in a slice.
    let alone = json!(["NodePrepareResources"]);
    expect("alone", outcome(alone.clone(), alone.clone()), &[(SLICE, Invalid, "cannot be skipped unless")]);
    // A stored allocation is not validated again.
    let stored = results(&[alone]);
    expect("stored", update_status(on(Profile::V1_37), stored.clone(), stored), &[]);
}

#[test]
fn the_gate_off_as_shipped_drops_what_is_not_in_use() {
    let server = off(Profile::V1_37);
    let all = Some(vec!["*".to_owned()]);
    for set in [json!(true), json!(["*"]), json!(["NodeUnprepareResources"]), json!(["NodePrepareResources"])] {
        let created = create::<ResourceSlice>(server, skipping(set.clone())).unwrap();
        assert_eq!((declared(&created.object), fields(&created)), (None, vec![SLICE]));
        let updated = update::<ResourceSlice>(server, skipping(json!(null)), skipping(set.clone())).unwrap();
        assert_eq!((declared(&updated.object), fields(&updated)), (None, vec![SLICE]));
        let allocated = update_status(server, claim(), results(&[set, json!(null)])).unwrap();
        assert_eq!(declared_in(&allocated.object), [None, None]);
        assert_eq!(fields(&allocated), [format!("{RESULTS}[0].skipNodeOperations")]);
    }
    let create_unset = create::<ResourceSlice>(server, skipping(json!(null))).unwrap();
    assert!(create_unset.dropped.is_empty());
    // In use: an equal value, another value and none are all stored unchanged.
    let unprepare = json!(["NodeUnprepareResources"]);
    let same = update::<ResourceSlice>(server, skipping(json!(["*"])), skipping(json!(["*"]))).unwrap();
    assert_eq!(declared(&same.object), all);
    let other = update::<ResourceSlice>(server, skipping(unprepare), skipping(json!(["*"]))).unwrap();
    assert_eq!(declared(&other.object), all);
    let cleared = update::<ResourceSlice>(server, skipping(json!(["*"])), skipping(json!(null))).unwrap();
    assert_eq!(declared(&cleared.object), None);
    // An allocation that differs only in dropped fields has not changed.
    let (old, new) = (results(&[json!(null)]), results(&[json!(["*"])]));
    assert_eq!(declared_in(&update_status(server, old, new).unwrap().object), [None]);
}

/// Returns true if the stored object skips node operations; none if the write is rejected.
fn stored(outcome: Result<dra_validate::Accepted<ResourceSlice>, FieldErrors>) -> Option<bool> {
    outcome.ok().map(|admitted| declared(&admitted.object).is_some_and(|names| !names.is_empty()))
}

#[test]
fn decisions_of_the_api_server_side_by_side() {
    // Columns: gate, old value, new value, result in the KEP, result in Kubernetes 1.37.
    let (t, f, n) = (json!(true), json!(false), json!(null));
    let rows: [(bool, Option<&Value>, &Value, Option<bool>, Option<bool>); 20] = [
        (false, None, &n, Some(false), Some(false)),
        (false, None, &f, Some(false), Some(false)),
        (false, None, &t, None, Some(false)),
        (false, Some(&n), &n, Some(false), Some(false)),
        (false, Some(&n), &t, None, Some(false)),
        (false, Some(&f), &n, Some(false), Some(false)),
        (false, Some(&f), &f, Some(false), Some(false)),
        (false, Some(&f), &t, None, Some(false)),
        (false, Some(&t), &t, Some(true), Some(true)),
        (false, Some(&t), &f, Some(false), Some(false)),
        (false, Some(&t), &n, Some(false), Some(false)),
        (true, None, &n, Some(false), Some(false)),
        (true, None, &f, Some(false), Some(false)),
        (true, None, &t, Some(true), Some(true)),
        (true, Some(&n), &t, Some(true), Some(true)),
        (true, Some(&f), &t, Some(true), Some(true)),
        (true, Some(&t), &t, Some(true), Some(true)),
        (true, Some(&t), &f, Some(false), Some(false)),
        (true, Some(&t), &n, Some(false), Some(false)),
        (true, Some(&n), &n, Some(false), Some(false)),
    ];
    for (gate, old, new, kep, shipped) in rows {
        for (profile, expected) in [(Profile::Kep, kep), (Profile::V1_37, shipped)] {
            let server = if gate { on(profile) } else { off(profile) };
            let outcome = match old {
                None => create(server, skipping(new.clone())),
                Some(old) => update(server, skipping(old.clone()), skipping(new.clone())),
            };
            assert_eq!(stored(outcome), expected, "{profile} gate {gate} old {old:?} new {new}");
        }
    }
}

#[test]
fn values_that_are_valid_and_what_becomes_of_invalid_ones() {
    // Columns: declaration, accepted by Kubernetes 1.37 when it is new, accepted when it is stored.
    for (declaration, new, old) in [
        (json!(null), true, true),
        (json!([]), true, true),
        (json!(true), true, true),
        (json!(["*"]), true, true),
        (json!(["NodePrepareResources", "NodeUnprepareResources"]), true, true),
        (json!(["NodeUnprepareResources"]), true, true),
        (json!(["NodePrepareResources"]), false, false),
        (json!(["NodePrepareResources", "*"]), true, true),
        (json!(["Future"]), false, true),
        (json!(["Future", "NodeUnprepareResources"]), false, true),
        (json!(["*", "*"]), false, true),
    ] {
        let server = on(Profile::V1_37);
        assert_eq!(create::<ResourceSlice>(server, skipping(declaration.clone())).is_ok(), new, "{declaration}");
        let update = update::<ResourceSlice>(server, skipping(declaration.clone()), skipping(declaration.clone()));
        assert_eq!(update.is_ok(), old, "{declaration}");
    }
}
