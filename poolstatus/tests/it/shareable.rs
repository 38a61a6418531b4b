//! Shareable summary: remaining capacity of devices that claims share.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::ResourceClaim;
use poolstatus::PoolWarning;
use serde_json::{Value, json};

use crate::cluster::{DRIVER, claim_with, pool, report, slice};

fn shared(name: &str, capacity: Value) -> Value {
    let capacity: serde_json::Map<String, Value> =
        capacity.as_object().unwrap().iter().map(|(name, value)| (name.clone(), json!({"value": value}))).collect();
    json!({"name": name, "allowMultipleAllocations": true, "capacity": capacity})
}

fn share(name: &str, device: &str, consumed: Value) -> ResourceClaim {
    let result = json!({"request": "r", "driver": DRIVER, "pool": "p", "device": device, "shareID": name, "consumedCapacity": consumed});
    claim_with("team", name, json!([result]))
}

fn summary(devices: Value, claims: &[ResourceClaim]) -> Value {
    let pool = pool(&report(&[slice("s", "p", json!({"devices": devices}))], claims));
    serde_json::to_value(pool.shareable_summary).unwrap()
}

#[test]
fn worked_numbers() {
    // req: 5677-CALC-10
    let nic = |name| shared(name, json!({"bandwidth": "10Gi"}));
    let claims = [
        share("a", "nic-0", json!({"bandwidth": "5Gi"})),
        share("b", "nic-0", json!({"bandwidth": "2Gi"})),
        share("c", "nic-1", json!({"bandwidth": "2Gi"})),
    ];
    let expected = json!({
        "fullyAvailableDevices": 1, "partiallyAvailableDevices": 2,
        "capacity": [{"name": "bandwidth", "total": "30Gi", "consumed": "9Gi", "available": "21Gi"}],
    });
    assert_eq!(summary(json!([nic("nic-0"), nic("nic-1"), nic("nic-2")]), &claims), expected);

    let gpu = |name| shared(name, json!({"memory": "40Gi"}));
    let expected = json!({
        "fullyAvailableDevices": 1, "partiallyAvailableDevices": 1,
        "capacity": [{"name": "memory", "total": "80Gi", "consumed": "10Gi", "available": "70Gi"}],
    });
    assert_eq!(summary(json!([gpu("a"), gpu("b")]), &[share("c", "a", json!({"memory": "10Gi"}))]), expected);
}

#[test]
fn capacities_by_their_names() {
    let devices = json!([shared("a", json!({"memory": "1Gi", "gpu.example.com/memory": "2Gi"})), {"name": "plain"}]);
    let claims = [share("c", "a", json!({"memory": "2Gi", "unknown": "1"}))];
    let summary = summary(devices, &claims);
    let capacity = |name: &str, total: &str, consumed: &str, available: &str| json!({"name": name, "total": total, "consumed": consumed, "available": available});
    let expected =
        json!([capacity("gpu.example.com/memory", "2Gi", "0", "2Gi"), capacity("memory", "1Gi", "2Gi", "0"),]);
    assert_eq!(summary["capacity"], expected);
    assert_eq!((&summary["fullyAvailableDevices"], &summary["partiallyAvailableDevices"]), (&json!(0), &json!(1)));
}

#[test]
fn a_total_that_was_zero_takes_the_next_format() {
    let amounts = ["1", "-1", "40Gi"].map(|amount| json!({"memory": amount}));
    let devices: Vec<Value> =
        amounts.into_iter().enumerate().map(|(index, amount)| shared(&format!("d{index}"), amount)).collect();
    assert_eq!(summary(json!(devices), &[])["capacity"][0]["total"], "40Gi");
}

#[test]
fn what_is_consumed_is_the_sum_over_the_pool() {
    let claims = [
        share("gone", "gone", json!({"memory": "1Gi"})),
        share("here", "a", json!({"memory": "512Mi"})),
        share("mixed", "a", json!({"memory": "1000"})),
    ];
    let expected = json!([{"name": "memory", "total": "4Gi", "consumed": "1610613736", "available": "2684353560"}]);
    assert_eq!(summary(json!([shared("a", json!({"memory": "4Gi"}))]), &claims)["capacity"], expected);
}

#[test]
fn what_is_available_has_the_format_of_the_total_or_of_what_is_consumed_where_the_total_is_nothing() {
    let devices = json!([shared("a", json!({"some": "10", "none": "0", "all": "0"}))]);
    let claims = [share("c", "a", json!({"some": "-5Ki", "none": "-5Ki", "all": "5Ki"}))];
    let summary = summary(devices, &claims);
    let capacity = |name: &str, total: &str, consumed: &str, available: &str| json!({"name": name, "total": total, "consumed": consumed, "available": available});
    let expected = json!([
        capacity("all", "0", "5Ki", "0"),
        capacity("none", "0", "-5Ki", "5Ki"),
        capacity("some", "10", "-5Ki", "5130"),
    ]);
    assert_eq!(summary["capacity"], expected);
}

#[test]
fn pools_without_shares_and_devices_without_capacity() {
    assert_eq!(summary(json!([{"name": "a"}, {"name": "b", "allowMultipleAllocations": false}]), &[]), Value::Null);
    let expected = json!({"fullyAvailableDevices": 1, "partiallyAvailableDevices": 0});
    assert_eq!(summary(json!([{"name": "a", "allowMultipleAllocations": true}]), &[]), expected);
}

#[test]
fn more_than_32_capacities() {
    let device = |count: usize| {
        let capacity: serde_json::Map<String, Value> =
            (0..count).map(|index| (format!("c{index:02}"), json!("1"))).collect();
        slice("s", "p", json!({"devices": [shared("a", Value::Object(capacity))]}))
    };
    assert_eq!(pool(&report(&[device(32)], &[])).shareable_summary.unwrap().capacity.unwrap().len(), 32);
    let over = pool(&report(&[device(33)], &[]));
    let expected =
        format!("ShareableSummaryOverCap: pool {DRIVER}/p has 33 shareable capacity keys, exceeding the maximum of 32");
    assert_eq!((over.validation_error, over.shareable_summary), (Some(expected), None));
    assert_eq!(over.total_devices, Some(1));
}

#[test]
fn an_error_of_partitions_leaves_the_shares() {
    let mut device = shared("a", json!({"memory": "1Gi"}));
    device["consumesCounters"] = json!([{"counterSet": "c", "counters": {}}]);
    let slices = [slice("s", "p", json!({"devices": [device], "partitionTypeAttribute": "gpu.example.com/t"}))];
    let pool = pool(&report(&slices, &[]));
    assert!(pool.validation_error.is_some_and(|error| error.starts_with("PartitionTypeMissing: pool")));
    assert!(pool.shareable_summary.is_some());
}

#[test]
fn a_device_that_is_partly_used_is_reported() {
    let devices = json!([shared("nic-0", json!({"bandwidth": "10Gi"})), shared("nic-1", json!({}))]);
    let slices = [slice("s", "p", json!({"devices": devices}))];
    let warnings = |claims: &[ResourceClaim], profile| -> Vec<PoolWarning> {
        report(&slices, claims).warnings(profile).map(|(_, warning)| warning.clone()).collect()
    };
    let claims = [share("a", "nic-0", json!({"bandwidth": "1Gi"}))];
    assert_eq!(warnings(&claims, Profile::Kep), [PoolWarning::ShareableInUse { count: 1 }]);
    assert_eq!(warnings(&claims, Profile::V1_37), [], "its summary tells what is left");
    assert_eq!(warnings(&[], Profile::Kep), []);
}
