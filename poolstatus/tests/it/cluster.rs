//! Small clusters for the tests.

use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{PoolStatus, ResourcePoolStatusRequestStatus};
use k8s_openapi::jiff::Timestamp;
use poolstatus::compute::Cluster;
use poolstatus::outcome::Outcome;
use poolstatus::report::Report;
use poolstatus::request::Query;
use serde_json::{Value, from_value, json};

pub(crate) const DRIVER: &str = "gpu.example.com";
pub(crate) const NOW: &str = "2026-02-07T10:30:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A slice of a pool of the driver; `spec` adds to it or replaces what it has.
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

/// Devices of these names.
pub(crate) fn devices(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// Devices `gpu-0`, `gpu-1` and so on.
pub(crate) fn gpus(count: usize) -> Value {
    (0..count).map(|index| json!({"name": format!("gpu-{index}")})).collect()
}

/// The GPUs of one node.
pub(crate) fn node(name: &str, count: usize) -> ResourceSlice {
    slice(&format!("{name}-gpus"), name, json!({"nodeName": name, "devices": gpus(count)}))
}

/// A claim in a namespace that holds results.
pub(crate) fn claim_with(namespace: &str, name: &str, results: Value) -> ResourceClaim {
    from_value(json!({"metadata": {"namespace": namespace, "name": name}, "spec": {},
        "status": {"allocation": {"devices": {"results": results}}}}))
    .unwrap()
}

/// A claim that holds devices, each as `pool/device`.
pub(crate) fn claim(name: &str, held: &[&str]) -> ResourceClaim {
    claim_with("team", name, held.iter().map(|held| result(held)).collect())
}

/// The result for a device, as `pool/device`.
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

pub(crate) fn report(slices: &[ResourceSlice], claims: &[ResourceClaim]) -> Report {
    Cluster::new(slices, claims).report(&query(), now())
}

/// The shipped status of a cluster in which no pool is incomplete.
pub(crate) fn ready(report: &Report) -> ResourcePoolStatusRequestStatus {
    match report.shipped() {
        Outcome::Ready(status) => status,
        other => panic!("{other:?}"),
    }
}

/// The shipped status of the only pool.
pub(crate) fn pool(report: &Report) -> PoolStatus {
    let mut pools = ready(report).pools.unwrap();
    assert_eq!(pools.len(), 1);
    pools.remove(0)
}

/// Total, allocated, available, unavailable of each pool in the KEP's form.
pub(crate) fn kep_counts(report: &Report) -> Vec<[i32; 4]> {
    let pools = report.kep().pools.into_iter();
    pools
        .map(|pool| [pool.total_devices, pool.allocated_devices, pool.available_devices, pool.unavailable_devices])
        .collect()
}

/// The same in the shipped form, where the pool has counts.
pub(crate) fn shipped_counts(report: &Report) -> Vec<[i32; 4]> {
    let (Outcome::Ready(status) | Outcome::Incomplete { preview: status, .. }) = report.shipped() else {
        panic!("failed")
    };
    let counts = |pool: PoolStatus| {
        Some([pool.total_devices?, pool.allocated_devices?, pool.available_devices?, pool.unavailable_devices?])
    };
    status.pools.unwrap_or_default().into_iter().filter_map(counts).collect()
}
