//! One-shot computation of a report from the objects of a cluster.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Component;
use dra_device::pool::{LatestGeneration, group_by_pool, slice_devices};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;

use crate::availability_report::AvailabilityReport;
use crate::in_use::results;
use crate::pool_report::PoolReport;
use crate::query::Query;
use crate::taint::TaintRules;

/// Borrowed objects of a cluster, from which reports are computed.
///
/// The claims must be those of all namespaces, whoever sends the request: a device is allocated even if the requester may
/// not read its claim.
#[derive(Clone, Debug)]
pub struct Cluster<'a> {
    slices: Vec<&'a ResourceSlice>,
    claims: Vec<&'a ResourceClaim>,
    rules: Vec<&'a DeviceTaintRule>,
    controllers: Component,
}

impl<'a> Cluster<'a> {
    /// Collects slices and claims, without taint rules, for the controller manager `controllers`: rules count if it reads them
    /// ([`Component::reads_taint_rules`]).
    ///
    /// The objects are borrowed, whatever holds them: `&[ResourceSlice]`, `&Vec<Arc<ResourceSlice>>` and the values of
    /// a map of a watch cache all do.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
    /// use k8s_openapi::jiff::Timestamp;
    /// use dra_attrs::Profile;
    /// use poolstatus::{Cluster, Query};
    /// use serde_json::{from_value, json};
    ///
    /// let mut slices: BTreeMap<&str, Arc<ResourceSlice>> = BTreeMap::new();
    /// slices.insert("node-1-gpus", Arc::new(from_value(json!({"metadata": {"name": "node-1-gpus"}, "spec": {
    ///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
    ///     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
    /// }}))?));
    /// let claims: BTreeMap<&str, Arc<ResourceClaim>> = BTreeMap::new();
    /// let rules: Vec<Arc<DeviceTaintRule>> = Vec::new();
    /// let cluster = Cluster::new(Profile::V1_37, slices.values(), claims.values()).with_taint_rules(&rules);
    /// assert_eq!(cluster.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH).matching_pools, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new<S, C>(
        controllers: impl Into<Component>,
        slices: impl IntoIterator<Item = &'a S>,
        claims: impl IntoIterator<Item = &'a C>,
    ) -> Self
    where
        S: Borrow<ResourceSlice> + 'a,
        C: Borrow<ResourceClaim> + 'a,
    {
        let slices = slices.into_iter().map(Borrow::borrow).collect();
        let claims = claims.into_iter().map(Borrow::borrow).collect();
        Self { slices, claims, rules: Vec::new(), controllers: controllers.into() }
    }

    /// Sets the taint rules. They are ignored by a controller manager that does not read them.
    #[must_use]
    pub fn with_taint_rules<R>(self, rules: impl IntoIterator<Item = &'a R>) -> Self
    where
        R: Borrow<DeviceTaintRule> + 'a,
    {
        Self { rules: rules.into_iter().map(Borrow::borrow).collect(), ..self }
    }

    /// Computes the report on the pools that a query selects.
    ///
    /// Only slices of the latest generation of a pool count. Pools that appear only in claims (no slice) are not listed.
    /// `now` becomes the observation time of the status.
    ///
    /// # Complexity
    /// Linear in slices, claims and rules, and in the devices and results of the listed pools, with logarithms from
    /// sorting. No object is copied.
    ///
    /// ```
    /// use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
    /// use k8s_openapi::jiff::Timestamp;
    /// use dra_attrs::Profile;
    /// use poolstatus::{Cluster, Query};
    /// use serde_json::{from_value, json};
    ///
    /// let slice = |generation: i64| from_value(json!({"metadata": {"name": format!("gen-{generation}")}, "spec": {
    ///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
    ///     "pool": {"name": "node-1", "generation": generation, "resourceSliceCount": 1},
    /// }}));
    /// let slices: [ResourceSlice; 2] = [slice(1)?, slice(2)?];
    /// let cluster = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, []);
    /// let report = cluster.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
    /// assert_eq!((report.matching_pools, report.pools[0].generation, report.pools[0].slice_count), (1, 2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn report(&self, query: &Query, now: Timestamp) -> AvailabilityReport {
        let mut slices: Vec<&ResourceSlice> = self
            .slices
            .iter()
            .copied()
            .filter(|slice| query.selects(&slice.spec.driver, &slice.spec.pool.name))
            .collect();
        // Slices without names are sorted by their content.
        slices.sort_by(|left, right| {
            sort_key(left).cmp(&sort_key(right)).then_with(|| device_names(left).cmp(device_names(right)))
        });
        let mut pools: Vec<LatestGeneration<'_, &'a ResourceSlice>> =
            group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices).collect();
        if let Some(namespace) = query.namespace() {
            let held = self.held_by(namespace, query);
            pools.retain(|pool| has_device(*pool, |device| held.contains(&(pool.pool(), device))));
        }
        let matching_pools = pools.len();
        pools.truncate(query.limit());
        let results = self.results_by_pool(query, &pools);
        let rules = if self.controllers.reads_taint_rules() { self.rules.as_slice() } else { &[] };
        let rules = TaintRules::new(rules.iter().copied());
        let pools =
            pools.into_iter().zip(&results).map(|(pool, results)| pool_report(pool, results, &rules, query)).collect();
        AvailabilityReport { driver: query.driver().to_owned(), now, pools, matching_pools }
    }

    /// Returns the devices that claims of a namespace hold, as pairs of pool and device.
    fn held_by(&self, namespace: &str, query: &Query) -> BTreeSet<(&'a str, &'a str)> {
        let claims = self.claims.iter().copied().filter(|claim| is_in_namespace(claim, namespace));
        let results = claims.flat_map(results).filter(|result| query.selects(&result.driver, &result.pool));
        results.map(|result| (result.pool.as_str(), result.device.as_str())).collect()
    }

    /// Returns the allocation results of claims for each of `pools`, in the order of `pools`.
    fn results_by_pool(
        &self,
        query: &Query,
        pools: &[LatestGeneration<'_, &'a ResourceSlice>],
    ) -> Vec<Vec<&'a DeviceRequestAllocationResult>> {
        let positions: BTreeMap<&str, usize> =
            pools.iter().enumerate().map(|(index, pool)| (pool.pool(), index)).collect();
        let mut by_pool = vec![Vec::new(); pools.len()];
        for result in self.claims.iter().copied().flat_map(results) {
            let position = positions.get(result.pool.as_str()).filter(|_| result.driver == query.driver());
            if let Some(results) = position.and_then(|position| by_pool.get_mut(*position)) {
                results.push(result);
            }
        }
        by_pool
    }
}

/// Computes the report on one pool from its slices, the allocation results and the taint rules.
pub(crate) fn pool_report(
    pool: LatestGeneration<'_, &ResourceSlice>,
    results: &[&DeviceRequestAllocationResult],
    rules: &TaintRules<'_>,
    query: &Query,
) -> PoolReport {
    PoolReport::new(pool, results, &rules.for_pool(pool.driver(), pool.pool()), query.partition_type_attribute())
}

/// Returns true if the pool has a device whose name satisfies `predicate`.
pub(crate) fn has_device(pool: LatestGeneration<'_, &ResourceSlice>, predicate: impl Fn(&str) -> bool) -> bool {
    pool.slices().flat_map(slice_devices).any(|device| predicate(&device.name))
}

pub(crate) fn is_in_namespace(claim: &ResourceClaim, namespace: &str) -> bool {
    claim.metadata.namespace.as_deref().unwrap_or_default() == namespace
}

fn sort_key(slice: &ResourceSlice) -> (&str, i64, &str) {
    let name = slice.metadata.name.as_deref().unwrap_or_default();
    (name, slice.spec.pool.resource_slice_count, slice.spec.node_name.as_deref().unwrap_or_default())
}

fn device_names(slice: &ResourceSlice) -> impl Iterator<Item = &str> {
    slice_devices(slice).iter().map(|device| device.name.as_str())
}
