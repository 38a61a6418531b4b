//! Any pair of objects in every validator: no panic, and a stored object can be written again unchanged.
#![no_main]

use dra_alloc::validate::{Accepted, ApiServer, Write};
use dra_alloc::{DraGate, GateSet};
use dra_attrs::{FieldErrors, Profile};
use k8s_openapi::serde::de::DeserializeOwned;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

type Write<T> = fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>;

fn check<T: DeserializeOwned + PartialEq>(server: ApiServer, old: &Value, new: &Value, write: Write<T>) {
    let Ok(new) = serde_json::from_value::<T>(new.clone()) else { return };
    let _ = serde_json::from_value(old.clone()).map(|old| write(server, Write::update(&old, &new)));
    if let Ok(first) = write(server, Write::create(&new)) {
        let again = write(server, Write::update(&first.object, &first.object)).expect("it is stored already");
        assert!(again.object == first.object && again.dropped.is_empty());
    }
}

fuzz_target!(|text: &[u8]| {
    let Ok((gates, kep, old, new)) = serde_json::from_slice::<(u32, bool, Value, Value)>(text) else { return };
    let on = DraGate::all().enumerate().filter(|(bit, _)| gates & (1 << bit) != 0);
    let gates: GateSet<DraGate> = on.map(|(_, feature)| feature).collect();
    let server = ApiServer::new(if kep { Profile::Kep } else { Profile::V1_37 }, features);
    check(server, &old, &new, ApiServer::slice);
    check(server, &old, &new, ApiServer::claim);
    check(server, &old, &new, ApiServer::claim_status);
    check(server, &old, &new, ApiServer::claim_template);
    check(server, &old, &new, ApiServer::class);
    check(server, &old, &new, ApiServer::taint_rule);
    check(server, &old, &new, ApiServer::taint_rule_status);
});
