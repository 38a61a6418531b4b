//! The same answers from an index that takes changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_alloc::inventory::ChangeError;
use dra_alloc::inventory::pool::Newest;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;

use crate::compute::{has_any, is_in, report};
use crate::gate::{Gate, Gates};
use crate::in_use::results;
use crate::pool::PoolReport;
use crate::report::Report;
use crate::request::Query;
use crate::taint::TaintRules;

/// A change of a cluster's objects, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// A slice was added, or the slice of that name was changed.
    Slice(Arc<ResourceSlice>),
    /// The slice of that name was deleted.
    SliceDeleted(String),
    /// A claim was added, or the claim of that name was changed.
    Claim(Arc<ResourceClaim>),
    /// The claim of that namespace and name was deleted.
    ClaimDeleted {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A taint rule was added, or the rule of that name was changed.
    TaintRule(Arc<DeviceTaintRule>),
    /// The taint rule of that name was deleted.
    TaintRuleDeleted(String),
}

/// By driver, then by pool.
type ByPool<T> = BTreeMap<String, BTreeMap<String, T>>;

/// The number of a claim in the index.
type ClaimId = u64;

/// Slices and claims by pool, for many queries.
///
/// A query looks at the slices and claims of the pools that it lists and at nothing else. Its answer is that of
/// [`Cluster::report`](crate::compute::Cluster::report) over the objects that the changes have left.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::jiff::Timestamp;
/// use poolstatus::index::{Change, PoolIndex};
/// use poolstatus::request::Query;
/// use serde_json::{from_value, json};
///
/// let mut index = PoolIndex::default();
/// index.apply(Change::Slice(Arc::new(from_value(json!({"metadata": {"name": "node-1-gpus"}, "spec": {
///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
///     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
/// }}))?)))?;
/// let report = index.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
/// assert_eq!(report.kep().pools[0].available_devices, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PoolIndex {
    slices: BTreeMap<String, Arc<ResourceSlice>>,
    /// The slices of each pool, by name. There are no empty pools.
    pools: ByPool<BTreeMap<String, Arc<ResourceSlice>>>,
    claims: BTreeMap<(String, String), (ClaimId, Arc<ResourceClaim>)>,
    /// The claims that hold devices of each pool. The pool need not be there.
    users: ByPool<BTreeMap<ClaimId, Arc<ResourceClaim>>>,
    rules: BTreeMap<String, Arc<DeviceTaintRule>>,
    next: ClaimId,
    gates: Gates,
}

impl PoolIndex {
    /// An empty index with gates. The default has those that Kubernetes 1.37 has on.
    #[must_use]
    pub fn new(gates: Gates) -> Self {
        Self { gates, ..Self::default() }
    }

    /// Applies one change.
    ///
    /// # Errors
    /// A name that is missing or unknown. The index is as before.
    ///
    /// # Complexity
    /// Logarithmic in the number of objects, linear in the results of the claim.
    pub fn apply(&mut self, change: Change) -> Result<(), ChangeError> {
        match change {
            Change::Slice(slice) => self.set_slice(&slice),
            Change::SliceDeleted(name) => self.delete_slice(name),
            Change::Claim(claim) => self.set_claim(&claim),
            Change::ClaimDeleted { namespace, name } => self.delete_claim(&(namespace, name)),
            Change::TaintRule(rule) => {
                let name = name_of("DeviceTaintRule", rule.metadata.name.as_deref())?;
                self.rules.insert(name, rule);
                Ok(())
            }
            Change::TaintRuleDeleted(name) => {
                let removed = self.rules.remove(&name);
                removed.map(|_| ()).ok_or(ChangeError::NotFound { kind: "DeviceTaintRule", name })
            }
        }
    }

    /// The pools that a query asks for.
    ///
    /// # Complexity
    /// Linear in the slices, devices and results of the listed pools and in the taint rules; whatever the number of other
    /// pools and claims. A query for a namespace looks at the claims of every pool of the driver.
    #[must_use]
    pub fn report(&self, query: &Query, now: Timestamp) -> Report {
        let pools = self.pools.get(query.driver());
        let named = query.pool().and_then(|name| pools?.get_key_value(name));
        let all = pools.filter(|_| query.pool().is_none()).into_iter().flatten();
        let matching = || all.clone().chain(named).filter(|(name, slices)| self.is_used(query, name, slices));
        // Without a namespace nothing is filtered, and the number is known.
        let count = match (query.namespace(), query.pool()) {
            (None, None) => pools.map_or(0, BTreeMap::len),
            _ => matching().count(),
        };
        let rules = self.rules.values().map(|rule| &**rule).filter(|_| self.gates.has(Gate::DeviceTaintRules));
        let rules = TaintRules::of(rules);
        let shown = matching().take(query.limit());
        let pools = shown.filter_map(|(name, slices)| self.pool(query, name, slices, &rules)).collect();
        Report { driver: query.driver().to_owned(), now, pools, matching: count }
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
        Some(report(Newest::of(&slices)?, &results, rules, query))
    }

    fn users(&self, driver: &str, pool: &str) -> impl Iterator<Item = &ResourceClaim> {
        let users = self.users.get(driver).and_then(|pools| pools.get(pool));
        users.into_iter().flatten().map(|(_, claim)| &**claim)
    }

    fn is_used(&self, query: &Query, pool: &str, slices: &BTreeMap<String, Arc<ResourceSlice>>) -> bool {
        let Some(namespace) = query.namespace() else { return true };
        let claims = self.users(query.driver(), pool).filter(|claim| is_in(claim, namespace));
        let held = claims.flat_map(results).filter(|result| query.driver() == result.driver && pool == result.pool);
        let held: BTreeSet<&str> = held.map(|result| result.device.as_str()).collect();
        if held.is_empty() {
            return false;
        }
        let slices: Vec<&ResourceSlice> = slices.values().map(|slice| &**slice).collect();
        Newest::of(&slices).is_some_and(|newest| has_any(newest, |device| held.contains(device)))
    }

    fn set_slice(&mut self, slice: &Arc<ResourceSlice>) -> Result<(), ChangeError> {
        let name = name_of("ResourceSlice", slice.metadata.name.as_deref())?;
        if let Some(old) = self.slices.insert(name.clone(), Arc::clone(slice)) {
            remove(&mut self.pools, pool_of(&old), &name);
        }
        entry(&mut self.pools, pool_of(slice)).insert(name, Arc::clone(slice));
        Ok(())
    }

    fn delete_slice(&mut self, name: String) -> Result<(), ChangeError> {
        let Some(slice) = self.slices.remove(&name) else {
            return Err(ChangeError::NotFound { kind: "ResourceSlice", name });
        };
        remove(&mut self.pools, pool_of(&slice), &name);
        Ok(())
    }

    fn set_claim(&mut self, claim: &Arc<ResourceClaim>) -> Result<(), ChangeError> {
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

    fn delete_claim(&mut self, key: &(String, String)) -> Result<(), ChangeError> {
        let Some((id, claim)) = self.claims.remove(key) else {
            return Err(ChangeError::NotFound { kind: "ResourceClaim", name: format!("{}/{}", key.0, key.1) });
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

fn name_of(kind: &'static str, name: Option<&str>) -> Result<String, ChangeError> {
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(ChangeError::NoName { kind })
}

/// The objects of a pool.
fn entry<'m, T: Default>(pools: &'m mut ByPool<T>, [driver, pool]: [&str; 2]) -> &'m mut T {
    pools.entry(driver.to_owned()).or_default().entry(pool.to_owned()).or_default()
}

/// Takes an object out, and the pool with its last one.
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
