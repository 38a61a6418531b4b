//! Tests of cases where the validation is more lenient than the API server.

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_validate::ApiServer;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceSlice};
use serde_json::json;

use super::world::{changed, class, create, shipped, slice};

#[test]
fn a_name_that_is_not_there_may_still_come() {
    for metadata in [json!({}), json!({"generateName": "gpu-"}), json!({"name": "", "generateName": "gpu-"})] {
        assert!(create::<ResourceSlice>(shipped(), changed(&slice(), json!({"/metadata": metadata}))).is_ok());
    }
}

#[test]
fn problems_in_maps_are_sorted_by_key() {
    let attributes = json!({"/spec/devices/0/attributes": {"z!": {"int": 1}, "a!": {"int": 1}, "m!": {"int": 1}}});
    let errors = create::<ResourceSlice>(shipped(), changed(&slice(), attributes)).unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert!(fields.len() >= 3 && fields.is_sorted(), "{fields:?}");
}

#[test]
fn new_selectors_may_use_only_what_the_gates_allow() {
    for (expression, is_accepted) in [
        ("device.allowMultipleAllocations", false),
        ("device.attributes['gpu.example.com'].model.includes('a100')", false),
        ("device.attributes['gpu.example.com'].ids.exists(id, id == 1)", false),
        ("device.attributes['gpu.example.com'].ids.size() == 1", true),
    ] {
        let selector = json!({"/spec/selectors/0/cel/expression": expression});
        for profile in [Profile::Kep, Profile::V1_37] {
            let server =
                ApiServer::new(Component::new(profile, GateSet::of(Profile::V1_37).without(Gate::ConsumableCapacity)));
            let created = create::<DeviceClass>(server, changed(&class(), selector.clone()));
            assert_eq!(created.is_ok(), is_accepted, "{expression}");
        }
    }
}
