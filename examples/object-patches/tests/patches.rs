//! Patches as their documents have them, and properties that hold for any object.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use k8s_openapi::jiff::Timestamp;
use object_patches::managed_fields::{self, Operation, Writer, managers_of};
use object_patches::{ApplyError, OnConflict, Patch, PatchError, apply};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";

fn patched(form: &str, kind: &str, object: &Value, patch: &Value) -> Result<Value, PatchError> {
    Patch::parse(form, patch.to_string().as_bytes())?.patched(kind, object)
}

#[test]
fn a_merge_patch_is_that_of_its_rfc() {
    // Appendix A of RFC 7396.
    let rows = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ];
    for (object, patch, expected) in rows {
        assert_eq!(patched(MERGE, "Pod", &object, &patch), Ok(expected), "{object} {patch}");
    }
}

#[test]
fn a_strategic_patch_follows_its_directives() {
    let pod = |containers: Value| json!({"spec": {"containers": containers}});
    let (a, b) = (json!({"name": "a", "image": "1"}), json!({"name": "b", "image": "1"}));
    let both = pod(json!([a, b]));
    let rows = [
        ("a new entry follows", json!([{"name": "c"}]), json!([a, b, {"name": "c"}])),
        ("an entry goes", json!([{"name": "a", "$patch": "delete"}]), json!([b])),
        ("the list is replaced", json!([{"$patch": "replace"}, {"name": "c"}]), json!([{"name": "c"}])),
        ("a field goes", json!([{"name": "a", "image": null}]), json!([{"name": "a"}, b])),
    ];
    for (told, patch, expected) in rows {
        assert_eq!(patched(STRATEGIC, "Pod", &both, &pod(patch)), Ok(pod(expected)), "{told}");
    }
    let order = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}});
    assert_eq!(patched(STRATEGIC, "Pod", &both, &order), Ok(pod(json!([b, a]))));
    let finalizers = json!({"metadata": {"finalizers": ["x", "y"]}});
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"]}});
    assert_eq!(patched(STRATEGIC, "Node", &finalizers, &gone).unwrap()["metadata"]["finalizers"], json!(["y", "z"]));
    let strategy = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}});
    let kept = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let expected = json!({"spec": {"strategy": {"type": "Recreate"}}});
    assert_eq!(patched(STRATEGIC, "Deployment", &strategy, &kept), Ok(expected));
}

#[test]
fn the_lists_of_a_pod_template_are_those_of_a_pod() {
    let containers = |image: &str| json!({"spec": {"containers": [{"name": "a", "image": image}]}});
    let rows = [
        ("Deployment", json!({"template": containers("1")}), json!({"template": containers("2")})),
        (
            "CronJob",
            json!({"jobTemplate": {"spec": {"template": containers("1")}}}),
            json!({"jobTemplate": {"spec": {"template": containers("2")}}}),
        ),
    ];
    for (kind, mut before, change) in rows {
        let place = if kind == "CronJob" { "/jobTemplate/spec/template" } else { "/template" };
        let list = before.pointer_mut(&format!("{place}/spec/containers")).unwrap().as_array_mut().unwrap();
        list.push(json!({"name": "b"}));
        let new = patched(STRATEGIC, kind, &json!({"spec": before}), &json!({"spec": change})).unwrap();
        let list = new.pointer(&format!("/spec{place}/spec/containers")).unwrap();
        assert_eq!(*list, json!([{"name": "a", "image": "2"}, {"name": "b"}]), "{kind}");
    }
}

#[test]
fn what_is_no_patch_is_refused_with_its_reason() {
    let rows = [
        ("application/json", "{}", PatchError::MediaType),
        (MERGE, "{,}", PatchError::Body("invalid character ',' looking for beginning of object key string".to_owned())),
        (OPERATIONS, r#"[{"op": "copy", "from": "/a", "path": "/b"}]"#, PatchError::Copy),
    ];
    for (form, body, expected) in rows {
        assert_eq!(Patch::parse(form, body.as_bytes()).unwrap_err(), expected, "{form} {body}");
    }
    let many = format!("[{}]", vec![r#"{"op": "remove", "path": "/a"}"#; 10_001].join(","));
    assert_eq!(Patch::parse(OPERATIONS, many.as_bytes()).unwrap_err(), PatchError::Operations);
    let missing = json!([{"op": "remove", "path": "/a"}]);
    assert_eq!(patched(OPERATIONS, "Pod", &json!({}), &missing), Err(PatchError::Operation));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(Patch::parse(STRATEGIC, deep.as_bytes()), Err(PatchError::Body(_))));
}

fn writer(manager: &str, operation: Operation) -> Writer {
    let manager = manager.to_owned();
    Writer { manager, operation, api_version: "v1".to_owned(), subresource: String::new(), now: Timestamp::UNIX_EPOCH }
}

/// Applies a configuration and records who has its fields.
fn applied(object: &mut Value, config: &Value, manager: &str, on_conflict: OnConflict) -> Result<(), ApplyError> {
    let mut entries = managers_of(object);
    let fields = apply("Pod", object, config, (manager, on_conflict), &mut entries)?;
    managed_fields::applied("Pod", entries, object, fields, &writer(manager, Operation::Apply));
    Ok(())
}

#[test]
fn a_field_has_the_manager_who_wrote_it_last() {
    let label = |value: &str| json!({"metadata": {"name": "p", "labels": {"a": value}}});
    let mut pod = label("1");
    managed_fields::updated("Pod", None, Vec::new(), &mut pod, &writer("first", Operation::Update));
    let error = applied(&mut pod, &label("2"), "second", OnConflict::Refuse).unwrap_err();
    let told =
        "Apply failed with 1 conflict: conflict with \"first\" using v1 at 1970-01-01T00:00:00Z: .metadata.labels.a";
    assert_eq!(error.to_string(), told);
    assert_eq!(pod["metadata"]["labels"]["a"], "1");
    applied(&mut pod, &label("2"), "second", OnConflict::Take).unwrap();
    assert_eq!(pod["metadata"]["labels"]["a"], "2");
    let has = |manager: &str| {
        managers_of(&pod).iter().any(|entry| {
            entry.manager == manager
                && entry.fields.contains(["metadata", "labels", "a"].map(|it| format!("f:{it}")).as_slice())
        })
    };
    assert_eq!([has("first"), has("second")], [false, true]);
}

/// Draws pods with labels, containers by name, and a list that is replaced as a whole.
fn pods() -> impl Strategy<Value = Value> {
    let labels = proptest::collection::btree_map("[a-c]", "[12]", 0..3);
    let containers = proptest::collection::btree_map("[a-c]", "[12]", 0..3);
    (labels, containers, proptest::collection::vec("[a-c]", 0..3)).prop_map(|(labels, containers, arguments)| {
        let labels: Map<String, Value> = labels.into_iter().map(|(key, value)| (key, value.into())).collect();
        let container = |(name, image): (String, String)| json!({"name": name, "image": image, "args": arguments});
        let containers: Vec<Value> = containers.into_iter().map(container).collect();
        json!({"metadata": {"name": "p", "labels": labels}, "spec": {"containers": containers}})
    })
}

proptest! {
    #[test]
    fn an_apply_gives_what_is_wanted_and_a_second_one_changes_nothing(first in pods(), second in pods(), other in pods()) {
        let mut pod = json!({"metadata": {"name": "p"}});
        applied(&mut pod, &first, "one", OnConflict::Take).unwrap();
        applied(&mut pod, &other, "two", OnConflict::Take).unwrap();
        applied(&mut pod, &second, "one", OnConflict::Take).unwrap();
        for (key, value) in second["metadata"]["labels"].as_object().unwrap() {
            prop_assert_eq!(&pod["metadata"]["labels"][key], value);
        }
        // A label that the first one no longer wants stays only if the other one does.
        for key in first["metadata"]["labels"].as_object().unwrap().keys() {
            let wanted = [&second, &other].iter().any(|it| it["metadata"]["labels"].get(key).is_some());
            prop_assert_eq!(pod["metadata"]["labels"].get(key).is_some(), wanted, "{}", key);
        }
        let before = pod.clone();
        applied(&mut pod, &second, "one", OnConflict::Refuse).unwrap();
        prop_assert_eq!(pod, before);
    }

    #[test]
    fn an_object_patched_with_itself_stays(pod in pods()) {
        for form in [MERGE, STRATEGIC] {
            prop_assert_eq!(&patched(form, "Pod", &pod, &pod).unwrap(), &pod);
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same(pod in pods(), other in pods()) {
        let mut stored = pod.clone();
        managed_fields::updated("Pod", None, Vec::new(), &mut stored, &writer("one", Operation::Update));
        let entries = managers_of(&stored);
        let mut new = other;
        managed_fields::updated("Pod", Some(&pod), entries, &mut new, &writer("two", Operation::Update));
        let written: Value = managed_fields::shown(&new);
        let again = managed_fields::sent_or_stored(Some(&written), &json!({}));
        prop_assert_eq!(again, managers_of(&new));
    }

    #[test]
    fn no_body_panics(body in "[\\[\\]{}:,\"a$p/1 ]{0,40}") {
        for form in [MERGE, STRATEGIC, OPERATIONS, "application/apply-patch+yaml"] {
            if let Ok(patch) = Patch::parse(form, body.as_bytes()) {
                let _ = patch.patched("Pod", &json!({"spec": {"containers": [{"name": "a"}]}}));
            }
        }
    }
}
