//! Random clusters, rich in inconsistencies.

use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use poolstatus::Query;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use crate::cluster::DRIVER;

const DRIVERS: [&str; 2] = [DRIVER, "nic.example.com"];
const ATTRIBUTE: &str = "gpu.example.com/profile";

#[derive(Clone, Debug)]
pub(crate) struct Objects {
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) claims: Vec<ResourceClaim>,
    pub(crate) rules: Vec<DeviceTaintRule>,
}

fn effect() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("NoSchedule"), Just("NoExecute"), Just("None")]
}

fn amount() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("1Gi"), 2 => Just("2Gi"), 1 => Just("0"), 1 => Just("1024Mi"), 1 => Just("1073741824"), 1 => Just("-1Gi")]
}

fn device() -> impl Strategy<Value = Value> {
    let name = (0..6_u8).prop_map(|name| format!("dev-{name}"));
    let consumed = weighted(0.5, (0..2_u8, 0..2_u8, amount()));
    let capacity = weighted(0.4, (0..2_u8, amount()));
    let of_type = weighted(0.8, 0..2_u8);
    (name, weighted(0.2, effect()), consumed, capacity, of_type).prop_map(
        |(name, taint, consumed, capacity, of_type)| {
            let mut device = json!({"name": name});
            if let Some(effect) = taint {
                device["taints"] = json!([{"key": "health", "effect": effect}]);
            }
            if let Some((set, counter, value)) = consumed {
                let counters = json!({format!("counter-{counter}"): {"value": value}});
                device["consumesCounters"] = json!([{"counterSet": format!("set-{set}"), "counters": counters}]);
            }
            if let Some((key, value)) = capacity {
                device["allowMultipleAllocations"] = json!(true);
                device["capacity"] = json!({format!("capacity-{key}"): {"value": value}});
            }
            if let Some(of_type) = of_type {
                device["attributes"] = json!({"profile": {"string": format!("type-{of_type}")}});
            }
            device
        },
    )
}

/// Generates a slice under one of a few names.
pub(crate) fn slice() -> impl Strategy<Value = ResourceSlice> {
    let place = (0..8_u8, 0..8_u8, 0..3_u8, 1..3_i64, 0..3_i64);
    let sets = weighted(0.4, vec((0..2_u8, 0..2_u8, amount()), 0..3));
    (place, weighted(0.7, 0..2_u8), vec(device(), 0..5), sets, weighted(0.4, Just(ATTRIBUTE))).prop_map(
        |((name, driver, pool, generation, count), node, devices, sets, attribute)| {
            let driver = DRIVERS[usize::from(driver == 7)];
            let mut spec = json!({
                "driver": driver, "devices": devices,
                "pool": {"name": format!("pool-{pool}"), "generation": generation, "resourceSliceCount": count},
            });
            if let Some(node) = node {
                spec["nodeName"] = json!(format!("node-{node}"));
            }
            if let Some(sets) = sets {
                let sets = sets.into_iter().map(|(set, counter, value)| {
                    json!({"name": format!("set-{set}"), "counters": {format!("counter-{counter}"): {"value": value}}})
                });
                spec["sharedCounters"] = sets.collect();
            }
            if let Some(attribute) = attribute {
                spec["partitionTypeAttribute"] = json!(attribute);
            }
            from_value(json!({"metadata": {"name": format!("slice-{name}")}, "spec": spec})).unwrap()
        },
    )
}

fn result() -> impl Strategy<Value = Value> {
    (0..8_u8, 0..4_u8, 0..7_u8, weighted(0.2, any::<bool>()), weighted(0.3, (0..2_u8, amount()))).prop_map(
        |(driver, pool, device, admin, consumed)| {
            let driver = DRIVERS[usize::from(driver == 7)];
            let mut result =
                json!({"request": "r", "driver": driver, "pool": format!("pool-{pool}"), "device": format!("dev-{device}")});
            if let Some(admin) = admin {
                result["adminAccess"] = json!(admin);
            }
            if let Some((key, value)) = consumed {
                result["shareID"] = json!("share");
                result["consumedCapacity"] = json!({format!("capacity-{key}"): value});
            }
            result
        },
    )
}

/// Generates a claim under one of a few names, usually allocated.
pub(crate) fn claim() -> impl Strategy<Value = ResourceClaim> {
    (0..2_u8, 0..4_u8, weighted(0.9, vec(result(), 0..4))).prop_map(|(namespace, name, results)| {
        let mut claim =
            json!({"metadata": {"namespace": format!("ns-{namespace}"), "name": format!("claim-{name}")}, "spec": {}});
        if let Some(results) = results {
            claim["status"] = json!({"allocation": {"devices": {"results": results}}});
        }
        from_value(claim).unwrap()
    })
}

/// Generates a taint rule under one of a few names.
pub(crate) fn rule() -> impl Strategy<Value = DeviceTaintRule> {
    let selector = (weighted(0.5, 0..2_usize), weighted(0.5, 0..3_u8), weighted(0.8, 0..6_u8));
    (0..3_u8, weighted(0.9, selector), effect()).prop_map(|(name, selector, effect)| {
        let mut spec = json!({"taint": {"key": "health", "effect": effect}});
        if let Some((driver, pool, device)) = selector {
            spec["deviceSelector"] = json!({
                "driver": driver.map(|driver| DRIVERS[driver]), "pool": pool.map(|pool| format!("pool-{pool}")),
                "device": device.map(|device| format!("dev-{device}")),
            });
        }
        from_value(json!({"metadata": {"name": format!("rule-{name}")}, "spec": spec})).unwrap()
    })
}

/// Keeps the last object of each name.
fn unique<T: k8s_openapi::Metadata<Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>>(
    objects: Vec<T>,
) -> Vec<T> {
    let name = |object: &T| (object.metadata().namespace.clone(), object.metadata().name.clone());
    let mut kept: Vec<T> = Vec::new();
    for object in objects {
        kept.retain(|other| name(other) != name(&object));
        kept.push(object);
    }
    kept
}

pub(crate) fn objects() -> impl Strategy<Value = Objects> {
    (vec(slice(), 0..10), vec(claim(), 0..10), vec(rule(), 0..4)).prop_map(|(slices, claims, rules)| Objects {
        slices: unique(slices),
        claims: unique(claims),
        rules: unique(rules),
    })
}

pub(crate) fn query() -> impl Strategy<Value = Query> {
    (weighted(0.2, 0..4_u8), weighted(0.3, Just(ATTRIBUTE)), 1..5_usize, weighted(0.2, 0..2_u8)).prop_map(
        |(pool, attribute, limit, namespace)| {
            let mut query = Query::new(DRIVER).with_limit(limit);
            if let Some(pool) = pool {
                query = query.with_pool(&format!("pool-{pool}"));
            }
            if let Some(attribute) = attribute {
                query = query.with_partition_type_attribute(attribute);
            }
            if let Some(namespace) = namespace {
                query = query.with_namespace(&format!("ns-{namespace}"));
            }
            query
        },
    )
}
