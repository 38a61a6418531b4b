//! Any pair of objects into every validator: nothing panics, and what is stored can be written again as it is.
#![no_main]

use dra_alloc::features::{Feature, Features};
use dra_alloc::validate::{Admission, Admitted, ApiServer};
use dra_attrs::field::FieldErrors;
use dra_attrs::profile::Profile;
use k8s_openapi::serde::de::DeserializeOwned;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

type Write<T> = fn(ApiServer, Admission<'_, T>) -> Result<Admitted<T>, FieldErrors>;

fn check<T: DeserializeOwned + PartialEq>(server: ApiServer, old: &Value, new: &Value, write: Write<T>) {
    let Ok(new) = serde_json::from_value::<T>(new.clone()) else { return };
    let _ = serde_json::from_value(old.clone()).map(|old| write(server, Admission::update(&old, &new)));
    if let Ok(first) = write(server, Admission::create(&new)) {
        let again = write(server, Admission::update(&first.object, &first.object)).expect("it is stored already");
        assert!(again.object == first.object && again.dropped.is_empty());
    }
}

fuzz_target!(|text: &[u8]| {
    let Ok((gates, kep, old, new)) = serde_json::from_slice::<(u32, bool, Value, Value)>(text) else { return };
    let on = Feature::all().enumerate().filter(|(bit, _)| gates & (1 << bit) != 0);
    let features: Features = on.map(|(_, feature)| feature).collect();
    let server = ApiServer::new(if kep { Profile::Kep } else { Profile::V1_37 }, features);
    check(server, &old, &new, ApiServer::slice);
    check(server, &old, &new, ApiServer::claim);
    check(server, &old, &new, ApiServer::claim_status);
    check(server, &old, &new, ApiServer::claim_template);
    check(server, &old, &new, ApiServer::class);
    check(server, &old, &new, ApiServer::taint_rule);
    check(server, &old, &new, ApiServer::taint_rule_status);
});
