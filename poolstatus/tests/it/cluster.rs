//! Small clusters for tests.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{PoolStatus, ResourcePoolStatusRequestStatus};
use k8s_openapi::jiff::Timestamp;
use poolstatus::{AvailabilityReport, Cluster, Query, RequestOutcome};
use serde_json::{Value, from_value, json};

pub(crate) const DRIVER: &str = "gpu.example.com";
pub(crate) const NOW: &str = "2026-02-07T10:30:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Builds a slice of a pool of the driver. Fields of `spec` are added or replace the defaults.
pub(crate) fn slice(name: &str, pool: &str, spec: Value) -> ResourceSlice {
    let mut all = json!({"driver": DRIVER, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}});
    merge(&mut all, spec);
    from_value(json!({"metadata": {"name": name}, "spec": all})).unwrap()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Builds devices of the given names.
pub(crate) fn devices(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// Builds devices `gpu-0`, `gpu-1` and so on.
pub(crate) fn gpus(count: usize) -> Value {
    (0..count).map(|index| json!({"name": format!("gpu-{index}")})).collect()
}

/// Builds the slice of one node's GPUs.
pub(crate) fn node(name: &str, count: usize) -> ResourceSlice {
    slice(&format!("{name}-gpus"), name, json!({"nodeName": name, "devices": gpus(count)}))
}

/// Builds a claim with allocation results.
pub(crate) fn claim_with(namespace: &str, name: &str, results: Value) -> ResourceClaim {
    from_value(json!({"metadata": {"namespace": namespace, "name": name}, "spec": {},
        "status": {"allocation": {"devices": {"results": results}}}}))
    .unwrap()
}

/// Builds a claim that holds devices, each given as `pool/device`.
pub(crate) fn claim(name: &str, held: &[&str]) -> ResourceClaim {
    claim_with("team", name, held.iter().map(|held| result(held)).collect())
}

/// Builds the allocation result for a device, given as `pool/device`.
pub(crate) fn result(held: &str) -> Value {
    let (pool, device) = held.rsplit_once('/').unwrap();
    json!({"request": "r", "driver": DRIVER, "pool": pool, "device": device})
}

pub(crate) fn rule(name: &str, selector: Value, effect: &str) -> DeviceTaintRule {
    let taint = json!({"key": "health", "effect": effect});
    from_value(json!({"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}})).unwrap()
}

pub(crate) fn query() -> Query {
    Query::new(DRIVER)
}

pub(crate) fn report(slices: &[ResourceSlice], claims: &[ResourceClaim]) -> AvailabilityReport {
    Cluster::new(Profile::V1_37, slices, claims).report(&query(), now())
}

/// Returns the `v1alpha3` status of a report without incomplete pools.
pub(crate) fn ready(report: &AvailabilityReport) -> ResourcePoolStatusRequestStatus {
    match report.to_v1alpha3() {
        RequestOutcome::Ready(status) => status,
        other => panic!("{other:?}"),
    }
}

/// Returns the `v1alpha3` status of the only pool.
pub(crate) fn pool(report: &AvailabilityReport) -> PoolStatus {
    let mut pools = ready(report).pools.unwrap();
    assert_eq!(pools.len(), 1);
    pools.remove(0)
}

/// Returns total, allocated, available and unavailable devices of each pool in the KEP's form.
pub(crate) fn kep_counts(report: &AvailabilityReport) -> Vec<[i32; 4]> {
    let pools = report.to_kep().pools.into_iter();
    pools
        .map(|pool| [pool.total_devices, pool.allocated_devices, pool.available_devices, pool.unavailable_devices])
        .collect()
}

/// Returns total, allocated, available and unavailable devices of each pool that has counts in `v1alpha3`.
pub(crate) fn shipped_counts(report: &AvailabilityReport) -> Vec<[i32; 4]> {
    let (RequestOutcome::Ready(status) | RequestOutcome::Incomplete { preview: status, .. }) = report.to_v1alpha3()
    else {
        panic!("failed")
    };
    let counts = |pool: PoolStatus| {
        Some([pool.total_devices?, pool.allocated_devices?, pool.available_devices?, pool.unavailable_devices?])
    };
    status.pools.unwrap_or_default().into_iter().filter_map(counts).collect()
}
