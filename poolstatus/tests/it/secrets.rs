//! Confidentiality: no output names the user of a device.

use std::sync::Arc;

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim};
use poolstatus::{Cluster, PoolIndex, PoolIndexEvent};
use proptest::prelude::*;
use serde_json::{from_value, json};

use crate::cluster::{DRIVER, node, now, query, slice};

/// Builds a claim in which every text about its user contains a secret.
fn claim(secret: &str, pool: &str, device: &str) -> ResourceClaim {
    let consumer = json!({"resource": "pods", "name": format!("pod-{secret}"), "uid": format!("uid-{secret}")});
    let result = json!({
        "request": format!("request-{secret}"), "driver": DRIVER, "pool": pool, "device": device,
        "shareID": secret, "consumedCapacity": {format!("capacity-{secret}"): "no quantity"},
    });
    from_value(json!({
        "metadata": {
            "namespace": format!("ns-{secret}"), "name": format!("claim-{secret}"), "uid": secret,
            "labels": {"team": secret}, "annotations": {"note": secret},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": secret, "uid": secret}],
        },
        "spec": {"devices": {"requests": [{"name": format!("request-{secret}")}]}},
        "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]},
    }))
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_name_of_a_consumer(secret in "[a-z]{8}[0-9]{4}", pool in 0..3_u8, other in "[a-z]{8}[0-9]{4}") {
        // req: 5677-SEC-1
        let shared = json!({"name": "gpu-0", "allowMultipleAllocations": true, "capacity": {"memory": {"value": "1Gi"}}});
        let incomplete = json!({"pool": {"resourceSliceCount": 2}});
        let slices = [node("pool-0", 2), slice("s", "pool-1", json!({"devices": [shared]})), slice("i", "pool-2", incomplete)];
        let pool = format!("pool-{pool}");
        // A device that the pool does not have may be named after its user.
        let claims = [claim(&secret, &pool, "gpu-0"), claim(&other, &pool, &format!("device-{secret}"))];
        let rules: [DeviceTaintRule; 0] = [];

        let mut index = PoolIndex::new(Profile::V1_37);
        for slice in &slices {
            index.apply(PoolIndexEvent::Slice(Arc::new(slice.clone()))).unwrap();
        }
        for claim in &claims {
            index.apply(PoolIndexEvent::Claim(Arc::new(claim.clone()))).unwrap();
        }
        let reports = [
            Cluster::new(Profile::V1_37, &slices, &claims).with_taint_rules(&rules).report(&query(), now()),
            index.report(&query(), now()),
        ];
        for report in reports {
            let warnings: Vec<_> = [Profile::Kep, Profile::V1_37].into_iter().flat_map(|profile| report.warnings(profile)).collect();
            let kep = serde_json::to_string(&report.to_kep()).unwrap();
            let observed = serde_json::to_string(&report.metric_increments(Profile::Kep)).unwrap();
            let output = format!("{kep}\n{observed}\n{:?}\n{warnings:?}\n{report:?}", report.to_v1alpha3());
            prop_assert!(!output.contains(&secret) && !output.contains(&other), "{}", output);
            prop_assert!(!warnings.is_empty(), "the unknown device is reported, without its name");
        }
    }
}
