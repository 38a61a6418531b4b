//! Patches with any body of any object: nothing panics, an apply gives what it wants, and a second one changes nothing.
#![no_main]

use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use object_patches::managed_fields::{Operation, Writer, applied, managers_of};
use object_patches::{OnConflict, Patch, apply, syntax_error, unknown_fields};
use serde_json::{Value, json};

const FORMS: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

const KINDS: [&str; 4] = ["Deployment", "Node", "Pod", "ResourceClaim"];

fn apply_twice(kind: &str, mut object: Value, config: &Value) {
    let mut once = None;
    for _ in 0..2 {
        let mut entries = managers_of(&object);
        let Ok(fields) = apply(kind, &mut object, config, ("fuzz", OnConflict::Take), &mut entries) else { return };
        let writer = Writer {
            manager: "fuzz".to_owned(),
            operation: Operation::Apply,
            api_version: "v1".to_owned(),
            subresource: String::new(),
            now: Timestamp::UNIX_EPOCH,
        };
        applied(kind, entries, &mut object, fields, &writer);
        let _ = unknown_fields(config, &object);
        if let Some(once) = &once {
            assert_eq!(&object, once);
        }
        once = Some(object.clone());
    }
}

fuzz_target!(|input: (u8, u8, &[u8], &[u8])| {
    let (form, kind, before, body) = input;
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    let object = serde_json::from_slice(before).unwrap_or_else(|_| json!({"metadata": {"name": "a"}}));
    if serde_json::from_slice::<Value>(body).is_ok() {
        assert_eq!(syntax_error(body), None);
    }
    match Patch::parse(FORMS[usize::from(form) % FORMS.len()], body) {
        Ok(Patch::Apply(config)) if config.is_object() && object.is_object() => apply_twice(kind, object, &config),
        Ok(patch) => drop(patch.patched(kind, &object)),
        Err(_) => {}
    }
});
