//! Watch events from damaged JSON: whatever can be read is followed, and the index reports what a computation from scratch
//! over the same objects does.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::ApplyOutcome;
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use poolstatus::{Cluster, PoolIndex, PoolIndexEvent, Query};
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let mut index = PoolIndex::new(Profile::V1_37);
    let (mut slices, mut claims) = (BTreeMap::new(), BTreeMap::new());
    // One object a line: a slice, a claim, or a name of a slice that is deleted.
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
        if let Some(name) = value.as_str() {
            index
                .apply(PoolIndexEvent::SliceDeleted { name: name.to_owned(), uid: None })
                .expect("a deletion is no error");
            slices.remove(name);
        } else if let Ok(slice) = serde_json::from_value::<ResourceSlice>(value.clone()) {
            let name = slice.metadata.name.clone().unwrap_or_default();
            if index.apply(PoolIndexEvent::Slice(Arc::new(slice.clone()))) == Ok(ApplyOutcome::Applied) {
                slices.insert(name, slice);
            }
        } else if let Ok(claim) = serde_json::from_value::<ResourceClaim>(value) {
            let metadata = &claim.metadata;
            let key = (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
            if index.apply(PoolIndexEvent::Claim(Arc::new(claim.clone()))) == Ok(ApplyOutcome::Applied) {
                claims.insert(key, claim);
            }
        }
    }
    let (slices, claims): (Vec<_>, Vec<_>) = (slices.into_values().collect(), claims.into_values().collect());
    let driver = slices.first().map(|slice| slice.spec.driver.clone()).unwrap_or_default();
    let (query, now) = (Query::new(&driver), Timestamp::UNIX_EPOCH);
    let from_scratch = Cluster::new(Profile::V1_37, &slices, &claims).report(&query, now);
    assert_eq!(index.report(&query, now).to_kep(), from_scratch.to_kep());
});
