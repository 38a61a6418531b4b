//! Any pair of objects in every validator: no panic, and a stored object can be written again unchanged. What is decoded
//! is decoded again as it is.
#![no_main]

use dra_alloc::validate::{Accepted, ApiServer, Write, read};
use dra_alloc::{Gate, GateSet};
use dra_attrs::{Component, FieldErrors, Profile};
use k8s_openapi::serde::de::DeserializeOwned;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

type Validate<T> = fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>;

fn check<T: DeserializeOwned + PartialEq>(server: ApiServer, old: &Value, new: &Value, validate: Validate<T>) {
    let Ok(new) = serde_json::from_value::<T>(new.clone()) else { return };
    let _ = serde_json::from_value(old.clone()).map(|old| validate(server, Write::update(&old, &new)));
    if let Ok(first) = validate(server, Write::create(&new)) {
        let again = validate(server, Write::update(&first.object, &first.object)).expect("it is stored already");
        assert!(again.object == first.object && again.dropped.is_empty());
    }
}

fuzz_target!(|text: &[u8]| {
    let Ok((gates, kep, old, new)) = serde_json::from_slice::<(u32, bool, Value, Value)>(text) else { return };
    let on = Gate::ALL.iter().enumerate().filter(|(bit, _)| gates & (1 << bit) != 0);
    let gates: GateSet = on.map(|(_, gate)| *gate).collect();
    let server = ApiServer::new(Component::new(if kep { Profile::Kep } else { Profile::V1_37 }, gates));
    if let Ok(once) = read(new.clone(), Profile::V1_37) {
        assert_eq!(read(once.object.clone(), Profile::V1_37).map(|again| again.object).as_ref(), Ok(&once.object));
    }
    check(server, &old, &new, ApiServer::validate_slice);
    check(server, &old, &new, ApiServer::validate_claim);
    check(server, &old, &new, ApiServer::validate_claim_status);
    check(server, &old, &new, ApiServer::validate_claim_template);
    check(server, &old, &new, ApiServer::validate_class);
    check(server, &old, &new, ApiServer::validate_taint_rule);
    check(server, &old, &new, ApiServer::validate_taint_rule_status);
});
