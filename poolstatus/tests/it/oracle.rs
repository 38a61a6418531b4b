//! Second implementation, which reads all objects again for each value and follows the text of the rules.

use std::collections::BTreeSet;

use dra_attrs::Profile;
use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::{Device, DeviceRequestAllocationResult, ResourceSlice};
use poolstatus::{Cluster, Query, RequestOutcome};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cluster::now;
use crate::random::{Objects, objects, query};

struct Oracle<'a> {
    objects: &'a Objects,
    driver: &'a str,
    pool: String,
    default: Option<&'a str>,
}

impl<'a> Oracle<'a> {
    fn slices(&self) -> Vec<&'a ResourceSlice> {
        let of_pool = || {
            self.objects
                .slices
                .iter()
                .filter(|slice| slice.spec.driver == self.driver && slice.spec.pool.name == self.pool)
        };
        let newest = of_pool().map(|slice| slice.spec.pool.generation).max();
        let mut slices: Vec<_> = of_pool().filter(|slice| Some(slice.spec.pool.generation) == newest).collect();
        slices.sort_by_key(|slice| slice.metadata.name.clone());
        slices
    }

    /// Returns the devices with their slices.
    fn devices(&self) -> Vec<(&'a ResourceSlice, &'a Device)> {
        let slices = self.slices().into_iter();
        slices.flat_map(|slice| slice.spec.devices.iter().flatten().map(move |device| (slice, device))).collect()
    }

    fn results(&self) -> Vec<&'a DeviceRequestAllocationResult> {
        let mut results = Vec::new();
        for claim in &self.objects.claims {
            let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else {
                continue;
            };
            for result in allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten()) {
                if result.driver == self.driver && result.pool == self.pool && result.admin_access != Some(true) {
                    results.push(result);
                }
            }
        }
        results
    }

    fn is_held(&self, device: &Device) -> bool {
        self.results().iter().any(|result| result.device == device.name)
    }

    fn is_tainted(&self, device: &Device) -> bool {
        let blocks = |effect: &str| effect == "NoSchedule" || effect == "NoExecute";
        let fits = |wanted: &Option<String>, actual: &str| wanted.as_ref().is_none_or(|wanted| wanted == actual);
        device.taints.iter().flatten().any(|taint| blocks(&taint.effect))
            || self.objects.rules.iter().any(|rule| {
                blocks(&rule.spec.taint.effect)
                    && rule.spec.device_selector.as_ref().is_some_and(|selector| {
                        fits(&selector.driver, self.driver)
                            && fits(&selector.pool, &self.pool)
                            && fits(&selector.device, &device.name)
                    })
            })
    }

    fn kep_counts(&self) -> [usize; 5] {
        let devices = self.devices();
        let held: BTreeSet<_> =
            devices.iter().filter(|(_, device)| self.is_held(device)).map(|(_, device)| &device.name).collect();
        let unavailable = devices.iter().filter(|(_, device)| self.is_tainted(device) && !self.is_held(device)).count();
        [devices.len(), held.len(), devices.len() - held.len() - unavailable, unavailable, self.slices().len()]
    }

    fn v1alpha3_pool(&self) -> Value {
        let (slices, devices) = (self.slices(), self.devices());
        let nodes: BTreeSet<_> = slices.iter().map(|slice| slice.spec.node_name.clone().unwrap_or_default()).collect();
        let node = nodes.first().filter(|node| nodes.len() == 1 && !node.is_empty());
        let mut pool =
            json!({"driver": self.driver, "poolName": self.pool, "generation": slices[0].spec.pool.generation});
        if let Some(node) = node {
            pool["nodeName"] = json!(node);
        }
        let expected_slice_count = slices[0].spec.pool.resource_slice_count;
        if i64::try_from(slices.len()).unwrap() < expected_slice_count {
            let (driver, name, number, generation) =
                (self.driver, &self.pool, slices.len(), slices[0].spec.pool.generation);
            pool["validationError"] = json!(format!(
                "PoolIncomplete: pool {driver}/{name} is incomplete: observed {number}/{expected_slice_count} slices at generation {generation}"
            ));
            return pool;
        }
        let held: BTreeSet<_> = self.results().iter().map(|result| result.device.clone()).collect();
        let tainted = devices.iter().filter(|(_, device)| self.is_tainted(device)).count();
        pool["totalDevices"] = json!(devices.len());
        pool["allocatedDevices"] = json!(held.len());
        pool["unavailableDevices"] = json!(tainted);
        pool["availableDevices"] = json!(devices.len().saturating_sub(held.len() + tainted));
        pool["resourceSliceCount"] = json!(slices.len());
        match self.partitions() {
            Ok(types) if types.is_empty() => {}
            Ok(types) => pool["partitionSummary"] = json!(types),
            Err(prefix) => pool["validationError"] = json!(prefix),
        }
        let shareable = self.shareable();
        if !shareable.is_null() {
            pool["shareableSummary"] = shareable;
        }
        pool
    }

    fn attribute(&self, slice: &'a ResourceSlice) -> Option<&'a str> {
        let declared = |slice: &'a ResourceSlice| slice.spec.partition_type_attribute.as_deref();
        if self.devices().iter().any(|(slice, _)| declared(slice).is_some()) { declared(slice) } else { self.default }
    }

    /// Returns the entries of the partition summary, or the prefix of the error.
    fn partitions(&self) -> Result<Vec<Value>, &'static str> {
        let devices = self.devices();
        if !devices.iter().any(|(slice, _)| self.attribute(slice).is_some()) {
            return Ok(Vec::new());
        }
        let sets = || self.slices().into_iter().flat_map(|slice| slice.spec.shared_counters.iter().flatten());
        if sets().count() == 0 {
            return Err("PartitionTypeMissing: pool");
        }
        let mut types: Vec<(String, String, String)> = Vec::new();
        let mut of_type: Vec<Vec<&Device>> = Vec::new();
        for (slice, device) in &devices {
            let Some(attribute) = self.attribute(slice) else { continue };
            if device.consumes_counters.iter().flatten().count() == 0 {
                continue;
            }
            let attributes = device.attributes.clone().unwrap_or_default();
            let bare = attribute.strip_prefix(&format!("{}/", self.driver)).unwrap_or(attribute);
            let value = attributes.get(attribute).or_else(|| attributes.get(bare));
            let value = value.and_then(|value| value.string.clone()).ok_or("PartitionTypeMissing: device")?;
            let cost = cost_key(device);
            match types.iter().position(|known| (known.0.as_str(), &known.1) == (attribute, &value)) {
                Some(known) if types[known].2 != cost => return Err("PartitionCostMismatch: "),
                Some(known) => of_type[known].push(device),
                None => {
                    types.push((attribute.to_owned(), value, cost));
                    of_type.push(vec![device]);
                }
            }
        }
        let mut left: Vec<(String, i128)> = Vec::new();
        for set in sets() {
            for (name, counter) in &set.counters {
                let key = format!("{}/{name}", set.name);
                left.retain(|(known, _)| *known != key);
                left.push((key, Quantity::from_kube(&counter.value).unwrap().nanos()));
            }
        }
        for (_, device) in devices.iter().filter(|(_, device)| self.is_held(device)) {
            take(&mut left, device);
        }
        let mut entries: Vec<_> = types.into_iter().zip(of_type).collect();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        let entries = entries.into_iter().map(|((attribute, value, _), devices)| {
            let (mut left, mut allocatable) = (left.clone(), 0);
            for device in devices.iter().filter(|device| !self.is_held(device)) {
                let fits = costs(device)
                    .iter()
                    .all(|(key, need)| left.iter().any(|(known, have)| known == key && have >= need));
                if fits {
                    take(&mut left, device);
                    allocatable += 1;
                }
            }
            json!({"attribute": attribute, "type": value, "total": devices.len(), "allocatable": allocatable})
        });
        Ok(entries.collect())
    }

    fn shareable(&self) -> Value {
        let devices: Vec<_> = self.devices().into_iter().map(|(_, device)| device).collect();
        let devices: Vec<_> =
            devices.into_iter().filter(|device| device.allow_multiple_allocations == Some(true)).collect();
        if devices.is_empty() {
            return Value::Null;
        }
        let partial = devices.iter().filter(|device| self.is_held(device)).count();
        let keys: BTreeSet<&String> =
            devices.iter().flat_map(|device| device.capacity.iter().flatten()).map(|(key, _)| key).collect();
        let sum = |amounts: Vec<Quantity>| -> i128 { amounts.iter().map(|amount| amount.nanos()).sum() };
        let capacity: Vec<Value> = keys
            .into_iter()
            .map(|key| {
                let total = devices.iter().filter_map(|device| device.capacity.as_ref()?.get(key));
                let total = sum(total.map(|capacity| Quantity::from_kube(&capacity.value).unwrap()).collect());
                let consumed =
                    self.results().into_iter().filter_map(|result| result.consumed_capacity.as_ref()?.get(key));
                let consumed = sum(consumed.map(|amount| Quantity::from_kube(amount).unwrap()).collect());
                json!({"name": key, "total": total, "consumed": consumed, "available": (total - consumed).max(0)})
            })
            .collect();
        json!({
            "fullyAvailableDevices": devices.len() - partial, "partiallyAvailableDevices": partial,
            "capacity": capacity,
        })
    }
}

fn costs(device: &Device) -> Vec<(String, i128)> {
    let sets = device.consumes_counters.iter().flatten();
    sets.flat_map(|set| {
        set.counters.iter().map(|(name, counter)| {
            (format!("{}/{name}", set.counter_set), Quantity::from_kube(&counter.value).unwrap().nanos())
        })
    })
    .collect()
}

fn cost_key(device: &Device) -> String {
    let mut parts = Vec::new();
    for set in device.consumes_counters.iter().flatten() {
        for (name, counter) in &set.counters {
            parts.push(format!("{}/{name}={}", set.counter_set, Quantity::from_kube(&counter.value).unwrap()));
        }
    }
    parts.sort();
    parts.join(",")
}

fn take(left: &mut [(String, i128)], device: &Device) {
    for (key, need) in costs(device) {
        for (known, have) in left.iter_mut() {
            if *known == key {
                *have -= need;
            }
        }
    }
}

/// Converts a status of the library for comparison: amounts to numbers, summary errors to their prefix.
fn comparable(mut pool: Value, expected: &Value) -> Value {
    let capacities = pool.pointer_mut("/shareableSummary/capacity").and_then(Value::as_array_mut);
    for capacity in capacities.into_iter().flatten() {
        for field in ["total", "consumed", "available"] {
            let amount: Quantity = capacity[field].as_str().unwrap().parse().unwrap();
            capacity[field] = json!(amount.nanos());
        }
    }
    let (error, prefix) = (pool["validationError"].as_str(), expected["validationError"].as_str());
    if let (Some(error), Some(prefix)) = (error, prefix)
        && error.starts_with(prefix)
    {
        pool["validationError"] = json!(prefix);
    }
    if pool["validationError"].is_null() {
        pool.as_object_mut().unwrap().remove("validationError");
    }
    pool
}

fn pools_of_namespace(objects: &Objects, namespace: &str, driver: &str) -> BTreeSet<String> {
    let only = Objects {
        claims: objects
            .claims
            .iter()
            .filter(|claim| claim.metadata.namespace.as_deref() == Some(namespace))
            .cloned()
            .collect(),
        ..objects.clone()
    };
    let pools = objects.slices.iter().map(|slice| slice.spec.pool.name.clone());
    pools
        .filter(|pool| Oracle { objects: &only, driver, pool: pool.clone(), default: None }.kep_counts()[1] > 0)
        .collect()
}

fn expected_pools(objects: &Objects, query: &Query) -> Vec<String> {
    let slices = objects.slices.iter().filter(|slice| slice.spec.driver == query.driver());
    let names: BTreeSet<String> = slices.map(|slice| slice.spec.pool.name.clone()).collect();
    let used = query.namespace().map(|namespace| pools_of_namespace(objects, namespace, query.driver()));
    let asked = names.into_iter().filter(|name| query.pool().is_none_or(|pool| pool == name));
    asked.filter(|name| used.as_ref().is_none_or(|used| used.contains(name))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_same_in_both_forms(objects in objects(), query in query()) {
        let report = Cluster::new(Profile::V1_37, &objects.slices, &objects.claims).with_taint_rules(&objects.rules).report(&query, now());
        let names = expected_pools(&objects, &query);
        prop_assert_eq!(report.matching_pools, names.len());
        let (RequestOutcome::Ready(status) | RequestOutcome::Incomplete { preview: status, .. }) = report.to_v1alpha3() else {
            return Err(TestCaseError::fail("failed"));
        };
        let (kep, shipped) = (report.to_kep().pools, status.pools.unwrap_or_default());
        prop_assert_eq!(kep.len(), names.len().min(query.limit()));
        for ((name, kep), shipped) in names.into_iter().zip(kep).zip(shipped) {
            let oracle = Oracle { objects: &objects, driver: query.driver(), pool: name, default: query.partition_type_attribute() };
            let counts = [kep.total_devices, kep.allocated_devices, kep.available_devices, kep.unavailable_devices, kep.slice_count];
            prop_assert_eq!(counts.map(|count| usize::try_from(count).unwrap()), oracle.kep_counts());
            let expected = oracle.v1alpha3_pool();
            prop_assert_eq!(comparable(serde_json::to_value(shipped).unwrap(), &expected), expected);
        }
    }
}
