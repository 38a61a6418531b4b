//! The one-shot computation: the objects of a cluster in, a report out.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::inventory::pool::{Newest, devices_of, grouped};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;

use crate::gate::{Gate, Gates};
use crate::in_use::results;
use crate::pool::PoolReport;
use crate::report::Report;
use crate::request::Query;
use crate::taint::TaintRules;

/// The objects of a cluster, borrowed.
///
/// Claims are those of all namespaces, whoever asks: what a requester may read does not change what is allocated.
#[derive(Clone, Debug, Default)]
pub struct Cluster<'a> {
    slices: Vec<&'a ResourceSlice>,
    claims: Vec<&'a ResourceClaim>,
    rules: Vec<&'a DeviceTaintRule>,
    gates: Gates,
}

impl<'a> Cluster<'a> {
    /// Slices and claims, with the gates that Kubernetes 1.37 has on.
    pub fn new(
        slices: impl IntoIterator<Item = &'a ResourceSlice>,
        claims: impl IntoIterator<Item = &'a ResourceClaim>,
    ) -> Self {
        let (slices, claims) = (slices.into_iter().collect(), claims.into_iter().collect());
        Self { slices, claims, ..Self::default() }
    }

    /// With taint rules. They count if their gate is on.
    #[must_use]
    pub fn with_taint_rules(self, rules: impl IntoIterator<Item = &'a DeviceTaintRule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..self }
    }

    /// With other gates.
    #[must_use]
    pub fn with_gates(self, gates: Gates) -> Self {
        Self { gates, ..self }
    }

    /// The pools that a query asks for.
    ///
    /// Only slices of the newest generation of a pool count. A pool that only claims name is none. `now` becomes the time
    /// of the status.
    ///
    /// # Complexity
    /// Linear in slices, claims and rules, and in the devices and results of the listed pools, with logarithms from
    /// sorting. No object is copied.
    ///
    /// ```
    /// use k8s_openapi::jiff::Timestamp;
    /// use poolstatus::compute::Cluster;
    /// use poolstatus::request::Query;
    /// use serde_json::{from_value, json};
    ///
    /// let slice = |generation: i64| from_value(json!({"metadata": {"name": format!("gen-{generation}")}, "spec": {
    ///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
    ///     "pool": {"name": "node-1", "generation": generation, "resourceSliceCount": 1},
    /// }}));
    /// let slices = [slice(1)?, slice(2)?];
    /// let report = Cluster::new(&slices, []).report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
    /// assert_eq!((report.matching, report.pools[0].generation, report.pools[0].slices), (1, 2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn report(&self, query: &Query, now: Timestamp) -> Report {
        let mut slices: Vec<&ResourceSlice> = self
            .slices
            .iter()
            .copied()
            .filter(|slice| query.selects(&slice.spec.driver, &slice.spec.pool.name))
            .collect();
        // Without names the order is decided by what the slices say.
        slices.sort_by(|left, right| order(left).cmp(&order(right)).then_with(|| devices(left).cmp(devices(right))));
        let mut pools: Vec<Newest<'_, &'a ResourceSlice>> = grouped(&mut slices).filter_map(Newest::of).collect();
        if let Some(namespace) = query.namespace() {
            let used = self.used_from(namespace, query);
            pools.retain(|pool| has_any(*pool, |device| used.contains(&(pool.pool(), device))));
        }
        let matching = pools.len();
        pools.truncate(query.limit());
        let results = self.results(query, &pools);
        let rules = if self.gates.has(Gate::DeviceTaintRules) { self.rules.as_slice() } else { &[] };
        let rules = TaintRules::of(rules.iter().copied());
        let pools =
            pools.into_iter().zip(&results).map(|(pool, results)| report(pool, results, &rules, query)).collect();
        Report { driver: query.driver().to_owned(), now, pools, matching }
    }

    /// What claims of a namespace hold, as pool and device.
    fn used_from(&self, namespace: &str, query: &Query) -> BTreeSet<(&'a str, &'a str)> {
        let claims = self.claims.iter().copied().filter(|claim| is_in(claim, namespace));
        let results = claims.flat_map(results).filter(|result| query.selects(&result.driver, &result.pool));
        results.map(|result| (result.pool.as_str(), result.device.as_str())).collect()
    }

    /// The allocation results of each pool.
    fn results(
        &self,
        query: &Query,
        pools: &[Newest<'_, &'a ResourceSlice>],
    ) -> Vec<Vec<&'a DeviceRequestAllocationResult>> {
        let places: BTreeMap<&str, usize> =
            pools.iter().enumerate().map(|(index, pool)| (pool.pool(), index)).collect();
        let mut by_pool = vec![Vec::new(); pools.len()];
        for result in self.claims.iter().copied().flat_map(results) {
            let place = places.get(result.pool.as_str()).filter(|_| result.driver == query.driver());
            if let Some(results) = place.and_then(|place| by_pool.get_mut(*place)) {
                results.push(result);
            }
        }
        by_pool
    }
}

pub(crate) fn report(
    pool: Newest<'_, &ResourceSlice>,
    results: &[&DeviceRequestAllocationResult],
    rules: &TaintRules<'_>,
    query: &Query,
) -> PoolReport {
    PoolReport::of(pool, results, &rules.for_pool(pool.driver(), pool.pool()), query.default_partition_type())
}

/// Whether the pool has a device of a name that fits.
pub(crate) fn has_any(pool: Newest<'_, &ResourceSlice>, fits: impl Fn(&str) -> bool) -> bool {
    pool.slices().flat_map(devices_of).any(|device| fits(&device.name))
}

pub(crate) fn is_in(claim: &ResourceClaim, namespace: &str) -> bool {
    claim.metadata.namespace.as_deref().unwrap_or_default() == namespace
}

fn order(slice: &ResourceSlice) -> (&str, i64, &str) {
    let name = slice.metadata.name.as_deref().unwrap_or_default();
    (name, slice.spec.pool.resource_slice_count, slice.spec.node_name.as_deref().unwrap_or_default())
}

fn devices(slice: &ResourceSlice) -> impl Iterator<Item = &str> {
    devices_of(slice).iter().map(|device| device.name.as_str())
}
