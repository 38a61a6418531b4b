//! skipNodeOperations on the wire: a readable value is written and read back as the same.
#![no_main]

use dra_alloc::skip::{SkipField, WireForm};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceSlice};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn check<T: SkipField + PartialEq + std::fmt::Debug>(json: &Value) {
    if let Ok(list) = T::normalize_to_list(json.clone()) {
        assert_eq!(T::normalize_to_list(list.clone()).as_ref(), Ok(&list));
    }
    let Ok(object) = T::read(json.clone()) else { return };
    for form in [WireForm::Bool, WireForm::List] {
        let Ok(written) = SkipField::write(&object, form) else { continue };
        let again = T::read(written.clone()).expect("what was written can be read");
        assert_eq!(SkipField::write(&again, form).ok(), Some(written));
    }
}

fuzz_target!(|text: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(text) else { return };
    check::<ResourceSlice>(&json);
    check::<AllocationResult>(&json);
    check::<ResourceClaim>(&json);
});
