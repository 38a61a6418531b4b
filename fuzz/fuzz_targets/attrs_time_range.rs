//! Times beyond the range of the types: what is replaced can be read, is replaced once, and nothing else changes.
#![no_main]

use dra_attrs::{has_saturated_time, saturate_times};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// A text as the value of a field that is a time.
fn field(text: &str) {
    let mut object = json!({"timeAdded": text, "message": text, "annotations": {"time": text}});
    let before = object.clone();
    let count = saturate_times(&mut object);
    assert_eq!((&object["message"], &object["annotations"]), (&before["message"], &before["annotations"]));
    assert_eq!(count, usize::from(object != before));
    if count > 0 {
        assert!(has_saturated_time(&before) && has_saturated_time(&object));
        assert!(serde_json::from_value::<Time>(object["timeAdded"].clone()).is_ok());
        assert!(serde_json::from_value::<MicroTime>(object["timeAdded"].clone()).is_ok());
    }
}

fuzz_target!(|text: &[u8]| {
    let Ok(text) = str::from_utf8(text) else { return };
    field(text);
    field(&format!("9999-12-{text}"));
    let Ok(mut object) = serde_json::from_str::<Value>(text) else { return };
    let found = has_saturated_time(&object);
    let count = saturate_times(&mut object);
    assert!(found || count == 0);
    assert_eq!(has_saturated_time(&object), found);
    assert_eq!(saturate_times(&mut object), 0);
});
