//! Tests of cases where the validation is more lenient than the API server, or does not change the object as it does.

use dra_alloc::GateSet;
use dra_alloc::validate::ApiServer;
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceSlice};
use serde_json::json;

use super::world::{changed, class, create, rule, shipped, slice, update};

#[test]
fn a_name_that_is_not_there_may_still_come() {
    for metadata in [json!({}), json!({"generateName": "gpu-"}), json!({"name": "", "generateName": "gpu-"})] {
        assert!(create::<ResourceSlice>(shipped(), changed(&slice(), json!({"/metadata": metadata}))).is_ok());
    }
}

#[test]
fn no_clock_fills_in_when_a_taint_was_added() {
    let stored = create::<DeviceTaintRule>(shipped(), rule()).unwrap().object;
    assert_eq!(stored.spec.taint.time_added, None);
    let timed = changed(&rule(), json!({"/spec/taint/timeAdded": "2026-01-01T00:00:00Z"}));
    let other = changed(&timed, json!({"/spec/taint/effect": "NoSchedule"}));
    let stored = update::<DeviceTaintRule>(shipped(), timed, other).unwrap().object;
    assert_eq!(stored.spec.taint.time_added.unwrap().0.to_string(), "2026-01-01T00:00:00Z");
}

#[test]
fn an_amount_without_text_is_nothing() {
    let empty = json!({"/spec/devices/0/capacity/memory": {"value": ""}});
    assert!(create::<ResourceSlice>(shipped(), changed(&slice(), empty)).is_ok());
}

#[test]
fn problems_in_maps_are_sorted_by_key() {
    let attributes = json!({"/spec/devices/0/attributes": {"z!": {"int": 1}, "a!": {"int": 1}, "m!": {"int": 1}}});
    let errors = create::<ResourceSlice>(shipped(), changed(&slice(), attributes)).unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert!(fields.len() >= 3 && fields.is_sorted(), "{fields:?}");
}

#[test]
fn selectors_may_use_what_only_gates_allow() {
    for expression in [
        "device.allowMultipleAllocations",
        "device.attributes['gpu.example.com'].model.includes('a100')",
        "device.attributes['gpu.example.com'].ids.size() == 1",
    ] {
        let selector = json!({"/spec/selectors/0/cel/expression": expression});
        for profile in [Profile::Kep, Profile::V1_37] {
            let server = ApiServer::new(profile, GateSet::default());
            assert!(create::<DeviceClass>(server, changed(&class(), selector.clone())).is_ok(), "{expression}");
        }
    }
}
