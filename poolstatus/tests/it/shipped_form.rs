//! Status in the form of Kubernetes 1.37, `v1alpha3`.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::ResourceClaim;
use poolstatus::{Cluster, InputKind, RequestOutcome};
use serde_json::json;

use crate::cluster::{DRIVER, NOW, claim, gpus, node, now, query, ready, report, slice};

#[test]
fn the_whole_status() {
    // req: 5677-FORM-1, 5677-COND-1
    let slices = [node("node-1", 4), node("node-2", 2)];
    let status = ready(
        &Cluster::new(Profile::V1_37, &slices, &[claim("c", &["node-1/gpu-0"])]).report(&query().with_limit(1), now()),
    );
    let expected = json!({
        "poolCount": 2,
        "pools": [{
            "driver": DRIVER, "poolName": "node-1", "nodeName": "node-1", "generation": 1, "resourceSliceCount": 1,
            "totalDevices": 4, "allocatedDevices": 1, "availableDevices": 3, "unavailableDevices": 0,
        }],
        "conditions": [{
            "type": "Complete", "status": "True", "reason": "CalculationComplete",
            "message": "Calculated status for 1 pools", "lastTransitionTime": NOW,
        }],
    });
    assert_eq!(serde_json::to_value(&status).unwrap(), expected);
}

#[test]
fn no_pool_is_no_error() {
    // req: 5677-COND-3
    let status = ready(&report(&[], &[]));
    assert_eq!((status.pool_count, status.pools), (0, None));
    assert_eq!(status.conditions.unwrap()[0].message, "Calculated status for 0 pools");
}

#[test]
fn an_incomplete_pool_holds_the_status_back() {
    // req: 5677-VALID-2
    let missing = slice("a", "node-2", json!({"pool": {"generation": 3, "resourceSliceCount": 2}, "devices": gpus(1)}));
    let slices = [node("node-1", 4), missing];
    let report_ = report(&slices, &[]);
    let RequestOutcome::Incomplete { pools, preview } = report_.to_v1alpha3() else { panic!("complete") };
    assert_eq!(pools, ["node-2"]);
    let expected = json!({
        "driver": DRIVER, "poolName": "node-2", "generation": 3, "validationError":
            format!("PoolIncomplete: pool {DRIVER}/node-2 is incomplete: observed 1/2 slices at generation 3"),
    });
    assert_eq!(serde_json::to_value(&preview.pools.unwrap()[1]).unwrap(), expected, "counts are unset");
    assert_eq!(preview.conditions.unwrap()[0].message, "Calculated status for 2 pools (1 incomplete)");
    assert_eq!(report_.metric_increments(Profile::V1_37).processed, 0);
    assert_eq!(report_.metric_increments(Profile::Kep).processed, 1, "the KEP's form has a status");

    let first = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, []).report(&query().with_limit(1), now());
    assert!(matches!(first.to_v1alpha3(), RequestOutcome::Ready(_)), "a pool beyond the limit holds nothing back");
}

#[test]
fn only_a_list_that_can_not_be_read_fails_a_request() {
    // req: 5677-COND-2
    let rows = [
        (InputKind::ResourceSlices, "ResourceSlices"),
        (InputKind::ResourceClaims, "ResourceClaims"),
        (InputKind::DeviceTaintRules, "DeviceTaintRules"),
    ];
    for (input, name) in rows {
        let RequestOutcome::Failed(status) = RequestOutcome::from_list_error(input, "timeout", now()) else {
            panic!("not failed")
        };
        let condition = json!({
            "type": "Failed", "status": "True", "reason": "CalculationFailed",
            "message": format!("Failed to list {name}: timeout"), "lastTransitionTime": NOW,
        });
        assert_eq!(serde_json::to_value(&status).unwrap(), json!({"poolCount": 0, "conditions": [condition]}));
    }
}

#[test]
fn errors_are_cut_at_256_bytes_between_characters() {
    let device = "ü".repeat(200);
    let devices = json!([{"name": device, "consumesCounters": [{"counterSet": "c", "counters": {}}]}]);
    let spec =
        |more| json!({"pool": {"resourceSliceCount": 2}, "partitionTypeAttribute": "a.example/t", "devices": more});
    let slices = [
        slice("a", "p", spec(devices)),
        slice("b", "p", json!({"pool": {"resourceSliceCount": 2}, "sharedCounters": [{"name": "c", "counters": {}}]})),
    ];
    let error = crate::cluster::pool(&report(&slices, &[])).validation_error.unwrap();
    assert!(error.starts_with("PartitionTypeMissing: device \"ü") && (255..=256).contains(&error.len()), "{error}");
}
