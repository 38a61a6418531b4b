//! Arbitrary slices, claims and taint rules: nothing panics, the KEP's counts add up, and the index accepts named objects.
#![no_main]

use std::sync::Arc;

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use poolstatus::{Cluster, PoolIndex, PoolIndexEvent, Query};

type Input = (Vec<ResourceSlice>, Vec<ResourceClaim>, Vec<DeviceTaintRule>, Option<String>);

fuzz_target!(|text: &[u8]| {
    let Ok((slices, claims, rules, attribute)) = serde_json::from_slice::<Input>(text) else { return };
    let driver = slices.first().map(|slice| slice.spec.driver.clone()).unwrap_or_default();
    let query = Query::new(&driver).with_partition_type_attribute(attribute.as_deref().unwrap_or("d.example/type"));
    let report =
        Cluster::new(Profile::V1_37, &slices, &claims).with_taint_rules(&rules).report(&query, Timestamp::UNIX_EPOCH);
    let (status, _) = (report.to_kep(), report.to_v1alpha3());
    for pool in &status.pools {
        let parts = [pool.allocated_devices, pool.available_devices, pool.unavailable_devices];
        assert_eq!(parts.iter().sum::<i32>(), pool.total_devices);
    }
    let mut index = PoolIndex::new(Profile::V1_37);
    let slices = slices.into_iter().map(|slice| PoolIndexEvent::Slice(Arc::new(slice)));
    let claims = claims.into_iter().map(|claim| PoolIndexEvent::Claim(Arc::new(claim)));
    let applied = slices.chain(claims).filter(|event| index.apply(event.clone()).is_ok()).count();
    assert!(index.report(&query, Timestamp::UNIX_EPOCH).matching_pools <= applied);
});
