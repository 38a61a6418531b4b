//! Objects in any form that any release knows: what was read is read again as it is, and is validated by each release.
#![no_main]

use dra_alloc::validate::{ApiServer, Write, read};
use dra_attrs::{Component, GateSet, Profile};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn validate(object: Value, profile: Profile) {
    let server = ApiServer::new(Component::new(profile, GateSet::all()));
    match object.get("kind").and_then(Value::as_str) {
        Some("ResourceSlice") => {
            if let Ok(slice) = serde_json::from_value::<ResourceSlice>(object) {
                let _ = server.validate_slice(Write::create(&slice));
                let _ = server.validate_slice(Write::update(&slice, &slice));
            }
        }
        Some("ResourceClaim") => {
            if let Ok(claim) = serde_json::from_value::<ResourceClaim>(object) {
                let _ = server.validate_claim(Write::create(&claim));
                let _ = server.validate_claim_status(Write::update(&claim, &claim));
            }
        }
        Some("ResourceClaimTemplate") => {
            if let Ok(template) = serde_json::from_value::<ResourceClaimTemplate>(object) {
                let _ = server.validate_claim_template(Write::create(&template));
            }
        }
        Some("DeviceClass") => {
            if let Ok(class) = serde_json::from_value::<DeviceClass>(object) {
                let _ = server.validate_class(Write::create(&class));
            }
        }
        Some("DeviceTaintRule") => {
            if let Ok(rule) = serde_json::from_value::<DeviceTaintRule>(object) {
                let _ = server.validate_taint_rule(Write::create(&rule));
            }
        }
        _ => {}
    }
}

fuzz_target!(|text: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(text) else { return };
    for profile in Profile::ALL {
        let Ok(found) = read(json.clone(), profile) else { continue };
        let again = read(found.object.clone(), Profile::V1_37).expect("what was read can be read");
        assert!(again.converted.is_none() && again.dropped.is_empty(), "{again:?}");
        validate(found.object, profile);
    }
});
