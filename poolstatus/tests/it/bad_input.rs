//! Objects that no API server would store: nothing panics, and unreadable values count as zero.

use dra_attrs::Profile;
use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use poolstatus::{Cluster, Query};
use serde_json::{Value, from_value, json};

use crate::cluster::{DRIVER, claim_with, gpus, kep_counts, now, query, report, slice};

#[test]
fn empty_objects() {
    let slices: Vec<ResourceSlice> = vec![from_value(json!({})).unwrap(); 2];
    let claims: Vec<ResourceClaim> = [
        json!({}),
        json!({"status": {}}),
        json!({"status": {"allocation": {}}}),
        json!({"status": {"allocation": {"devices": {}}}}),
        json!({"status": {"allocation": {"devices": {"results": [{}]}}}}),
    ]
    .into_iter()
    .map(|claim| from_value(claim).unwrap())
    .collect();
    let report = Cluster::new(Profile::V1_37, &slices, &claims).report(&Query::new(""), now());
    assert_eq!((report.matching_pools, report.pools[0].slice_count, report.pools[0].expected_slice_count), (1, 2, 0));
    assert_eq!(
        report.pools[0].counts(Profile::V1_37).allocated,
        1,
        "a result without names is a device without a name"
    );
}

#[test]
fn a_claim_without_results_counts_as_nothing() {
    let slices = [slice("s", "p", json!({"devices": gpus(2)}))];
    assert_eq!(kep_counts(&report(&slices, &[claim_with("team", "c", json!([]))])), [[2, 0, 2, 0]]);
}

#[test]
fn numbers_at_the_ends_of_their_types() {
    let pool = |generation: i64, count: i64| json!({"pool": {"generation": generation, "resourceSliceCount": count}});
    for (generation, count) in [(i64::MIN, i64::MIN), (i64::MAX, i64::MAX), (-1, 0), (0, -1)] {
        let report = report(&[slice("s", "p", pool(generation, count))], &[]);
        assert_eq!(report.to_kep().pools[0].generation, generation);
        assert_eq!(report.pools[0].is_incomplete(), count > 1);
    }
    let older = [slice("a", "p", pool(i64::MIN, 1)), slice("b", "p", pool(-1, 1))];
    assert_eq!(report(&older, &[]).pools[0].generation, -1);
}

#[test]
fn sums_stop_at_the_ends_of_their_range() {
    let huge = "170000000000000000000000000000";
    let device = |name: &str, value: &str| json!({"name": name, "allowMultipleAllocations": true, "capacity": {"memory": {"value": value}}});
    let devices = json!([device("a", huge), device("b", huge), device("c", "-1"), device("d", "?")]);
    let result = |device: &str, value: &str| -> Value {
        json!({"request": "r", "driver": DRIVER, "pool": "p", "device": device, "consumedCapacity": {"memory": value}})
    };
    let results = json!([result("a", huge), result("b", huge), result("c", "-170000000000000000000000000000")]);
    let report = report(&[slice("s", "p", json!({"devices": devices}))], &[claim_with("team", "c", results)]);
    let summary = report.pools[0].shareable.clone().unwrap().unwrap();
    let amounts = &summary.capacity.unwrap()[0];
    let nanos = |amount| Quantity::from_kube(amount).unwrap().nanos();
    assert_eq!(nanos(&amounts.total), i128::MAX - 1_000_000_000);
    assert_eq!(nanos(&amounts.consumed), i128::MAX - 170_000_000_000_000_000_000_000_000_000 * 1_000_000_000);
    assert_eq!(nanos(&amounts.available), nanos(&amounts.total) - nanos(&amounts.consumed));
}

#[test]
fn counters_that_are_no_quantities() {
    let partition = json!({
        "name": "a", "attributes": {"profile": {"string": "Half"}},
        "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "half"}}}],
    });
    let pool = json!({"resourceSliceCount": 2});
    let slices = [
        slice(
            "a",
            "p",
            json!({"pool": pool, "sharedCounters": [{"name": "card", "counters": {"memory": {"value": "all"}}}]}),
        ),
        slice(
            "b",
            "p",
            json!({"pool": pool, "devices": [partition], "partitionTypeAttribute": "gpu.example.com/profile"}),
        ),
    ];
    let report = report(&slices, &[]);
    let partitions = report.pools[0].partitions.clone().unwrap();
    assert_eq!((partitions[0].total, partitions[0].allocatable), (1, 0), "what can't be read does not fit");
}

#[test]
fn slices_without_names_all_count() {
    let slices: Vec<ResourceSlice> = (0..3)
        .map(|index| {
            let device = json!([{"name": format!("gpu-{index}")}]);
            let mut slice = slice("", "p", json!({"devices": device, "pool": {"resourceSliceCount": index}}));
            slice.metadata.name = None;
            slice
        })
        .collect();
    let backwards: Vec<ResourceSlice> = slices.iter().rev().cloned().collect();
    let report = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, []).report(&query(), now());
    assert_eq!(report.to_kep().pools[0].total_devices, 3);
    assert_eq!(report, Cluster::new::<_, ResourceClaim>(Profile::V1_37, &backwards, []).report(&query(), now()));
}
