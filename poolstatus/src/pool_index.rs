//! Index of slices and claims by pool, for many reports while objects change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_alloc::InventoryError;
use dra_alloc::pool::LatestGeneration;
use dra_attrs::GateSet;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;

use crate::availability_report::AvailabilityReport;
use crate::cluster::{has_device, is_in_namespace, pool_report};
use crate::gates::PoolStatusGate;
use crate::in_use::results;
use crate::pool_report::PoolReport;
use crate::query::Query;
use crate::taint::TaintRules;

/// Change of an object that a [`PoolIndex`] follows, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PoolIndexEvent {
    /// A slice was added, or the slice of that name was changed.
    Slice(Arc<ResourceSlice>),
    /// The slice of that name was deleted.
    SliceDeleted(String),
    /// A claim was added, or the claim of that name was changed.
    Claim(Arc<ResourceClaim>),
    /// The claim of that namespace and name was deleted.
    ClaimDeleted {
        /// Namespace of the claim.
        namespace: String,
        /// Name of the claim.
        name: String,
    },
    /// A taint rule was added, or the rule of that name was changed.
    TaintRule(Arc<DeviceTaintRule>),
    /// The taint rule of that name was deleted.
    TaintRuleDeleted(String),
}

/// Values by driver, then by pool.
type ByPool<T> = BTreeMap<String, BTreeMap<String, T>>;

/// Number of a claim within the index. A claim that changes gets a new number.
type ClaimId = u64;

/// Index of slices, claims and taint rules by pool.
///
/// A report reads only the slices and claims of the pools that it lists. It equals the report of
/// [`Cluster::report`](crate::Cluster::report) over the objects as they are after all events.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::jiff::Timestamp;
/// use poolstatus::{PoolIndex, PoolIndexEvent, Profile, Query};
/// use serde_json::{from_value, json};
///
/// let mut index = PoolIndex::default();
/// index.apply(PoolIndexEvent::Slice(Arc::new(from_value(json!({"metadata": {"name": "node-1-gpus"}, "spec": {
///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
///     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
/// }}))?)))?;
/// let report = index.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
/// assert_eq!(report.pools[0].tally.counts(Profile::V1_37).available, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PoolIndex {
    slices: BTreeMap<String, Arc<ResourceSlice>>,
    /// Slices of each pool, by name. A pool without slices has no entry.
    pools: ByPool<BTreeMap<String, Arc<ResourceSlice>>>,
    claims: BTreeMap<(String, String), (ClaimId, Arc<ResourceClaim>)>,
    /// Claims that hold devices of each pool, including pools without slices.
    users: ByPool<BTreeMap<ClaimId, Arc<ResourceClaim>>>,
    rules: BTreeMap<String, Arc<DeviceTaintRule>>,
    next: ClaimId,
    gates: GateSet<PoolStatusGate>,
}

impl PoolIndex {
    /// Creates an empty index. [`PoolIndex::default`] has the gates that Kubernetes 1.37 has on by default.
    #[must_use]
    pub fn new(gates: GateSet<PoolStatusGate>) -> Self {
        Self { gates, ..Self::default() }
    }

    /// Applies one event.
    ///
    /// # Errors
    /// An object without a name, or a deletion of an object that the index does not have. The index stays as it was.
    ///
    /// # Complexity
    /// Logarithmic in the number of objects, linear in the results of the claim.
    pub fn apply(&mut self, event: PoolIndexEvent) -> Result<(), InventoryError> {
        match event {
            PoolIndexEvent::Slice(slice) => self.set_slice(&slice),
            PoolIndexEvent::SliceDeleted(name) => self.delete_slice(name),
            PoolIndexEvent::Claim(claim) => self.set_claim(&claim),
            PoolIndexEvent::ClaimDeleted { namespace, name } => self.delete_claim(&(namespace, name)),
            PoolIndexEvent::TaintRule(rule) => {
                let name = name_of("DeviceTaintRule", rule.metadata.name.as_deref())?;
                self.rules.insert(name, rule);
                Ok(())
            }
            PoolIndexEvent::TaintRuleDeleted(name) => {
                let removed = self.rules.remove(&name);
                removed.map(|_| ()).ok_or(InventoryError::NotFound { kind: "DeviceTaintRule", name })
            }
        }
    }

    /// Computes the report on the pools that a query selects.
    ///
    /// # Complexity
    /// Linear in the slices, devices and results of the listed pools and in the taint rules, independent of the number of
    /// other pools and claims. A query for a namespace also reads the claims of every pool of the driver.
    #[must_use]
    pub fn report(&self, query: &Query, now: Timestamp) -> AvailabilityReport {
        let pools = self.pools.get(query.driver());
        let named = query.pool().and_then(|name| pools?.get_key_value(name));
        let all = pools.filter(|_| query.pool().is_none()).into_iter().flatten();
        let matching = || all.clone().chain(named).filter(|(name, slices)| self.is_used(query, name, slices));
        // A query for all pools of all namespaces filters nothing, so that the number is known.
        let matching_pools = match (query.namespace(), query.pool()) {
            (None, None) => pools.map_or(0, BTreeMap::len),
            _ => matching().count(),
        };
        let rules =
            self.rules.values().map(|rule| &**rule).filter(|_| self.gates.has(PoolStatusGate::DeviceTaintRules));
        let rules = TaintRules::new(rules);
        let listed = matching().take(query.limit());
        let pools = listed.filter_map(|(name, slices)| self.pool(query, name, slices, &rules)).collect();
        AvailabilityReport { driver: query.driver().to_owned(), now, pools, matching_pools }
    }

    fn pool(
        &self,
        query: &Query,
        name: &str,
        slices: &BTreeMap<String, Arc<ResourceSlice>>,
        rules: &TaintRules<'_>,
    ) -> Option<PoolReport> {
        let slices: Vec<&ResourceSlice> = slices.values().map(|slice| &**slice).collect();
        let results: Vec<_> = self
            .users(query.driver(), name)
            .flat_map(results)
            .filter(|result| result.driver == query.driver() && result.pool == name)
            .collect();
        Some(pool_report(LatestGeneration::from_slices(&slices)?, &results, rules, query))
    }

    fn users(&self, driver: &str, pool: &str) -> impl Iterator<Item = &ResourceClaim> {
        let users = self.users.get(driver).and_then(|pools| pools.get(pool));
        users.into_iter().flatten().map(|(_, claim)| &**claim)
    }

    /// Returns true if the query names no namespace, or if claims of its namespace hold a device of the pool.
    fn is_used(&self, query: &Query, pool: &str, slices: &BTreeMap<String, Arc<ResourceSlice>>) -> bool {
        let Some(namespace) = query.namespace() else { return true };
        let claims = self.users(query.driver(), pool).filter(|claim| is_in_namespace(claim, namespace));
        let held = claims.flat_map(results).filter(|result| query.driver() == result.driver && pool == result.pool);
        let held: BTreeSet<&str> = held.map(|result| result.device.as_str()).collect();
        if held.is_empty() {
            return false;
        }
        let slices: Vec<&ResourceSlice> = slices.values().map(|slice| &**slice).collect();
        LatestGeneration::from_slices(&slices).is_some_and(|latest| has_device(latest, |device| held.contains(device)))
    }

    fn set_slice(&mut self, slice: &Arc<ResourceSlice>) -> Result<(), InventoryError> {
        let name = name_of("ResourceSlice", slice.metadata.name.as_deref())?;
        if let Some(old) = self.slices.insert(name.clone(), Arc::clone(slice)) {
            remove(&mut self.pools, pool_of(&old), &name);
        }
        entry(&mut self.pools, pool_of(slice)).insert(name, Arc::clone(slice));
        Ok(())
    }

    fn delete_slice(&mut self, name: String) -> Result<(), InventoryError> {
        let Some(slice) = self.slices.remove(&name) else {
            return Err(InventoryError::NotFound { kind: "ResourceSlice", name });
        };
        remove(&mut self.pools, pool_of(&slice), &name);
        Ok(())
    }

    fn set_claim(&mut self, claim: &Arc<ResourceClaim>) -> Result<(), InventoryError> {
        let name = name_of("ResourceClaim", claim.metadata.name.as_deref())?;
        let key = (claim.metadata.namespace.clone().unwrap_or_default(), name);
        let id = self.next;
        self.next = self.next.saturating_add(1);
        if let Some((old, claim)) = self.claims.insert(key, (id, Arc::clone(claim))) {
            self.release(old, &claim);
        }
        for result in results(claim) {
            entry(&mut self.users, [&result.driver, &result.pool]).insert(id, Arc::clone(claim));
        }
        Ok(())
    }

    fn delete_claim(&mut self, key: &(String, String)) -> Result<(), InventoryError> {
        let Some((id, claim)) = self.claims.remove(key) else {
            return Err(InventoryError::NotFound { kind: "ResourceClaim", name: format!("{}/{}", key.0, key.1) });
        };
        self.release(id, &claim);
        Ok(())
    }

    fn release(&mut self, id: ClaimId, claim: &ResourceClaim) {
        for result in results(claim) {
            remove(&mut self.users, [&result.driver, &result.pool], &id);
        }
    }
}

fn pool_of(slice: &ResourceSlice) -> [&str; 2] {
    [&slice.spec.driver, &slice.spec.pool.name]
}

fn name_of(kind: &'static str, name: Option<&str>) -> Result<String, InventoryError> {
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(InventoryError::NoName { kind })
}

/// Returns the entry of a pool, created if missing.
fn entry<'m, T: Default>(pools: &'m mut ByPool<T>, [driver, pool]: [&str; 2]) -> &'m mut T {
    pools.entry(driver.to_owned()).or_default().entry(pool.to_owned()).or_default()
}

/// Removes an object of a pool, and the pool's entry with its last object.
fn remove<K: Ord + ?Sized, L: Ord + std::borrow::Borrow<K>, T>(
    pools: &mut ByPool<BTreeMap<L, T>>,
    [driver, pool]: [&str; 2],
    key: &K,
) {
    let Some(of_driver) = pools.get_mut(driver) else { return };
    let Some(objects) = of_driver.get_mut(pool) else { return };
    objects.remove(key);
    if objects.is_empty() {
        of_driver.remove(pool);
    }
    if of_driver.is_empty() {
        pools.remove(driver);
    }
}
