//! Index of slices and claims by pool, kept up to date by watch events, for repeated reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_attrs::Component;
use dra_device::ApplyOutcome;
use dra_device::InventoryError;
use dra_device::internal::ResourceVersion;
use dra_device::pool::LatestGeneration;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;

use crate::availability_report::AvailabilityReport;
use crate::cluster::{has_device, is_in_namespace, pool_report};
use crate::in_use::results;
use crate::pool_report::PoolReport;
use crate::query::Query;
use crate::taint::TaintRules;

/// Change of an object that a [`PoolIndex`] follows, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PoolIndexEvent {
    /// A slice was added or changed.
    Slice(Arc<ResourceSlice>),
    /// A slice was deleted.
    SliceDeleted {
        /// Name of the deleted slice.
        name: String,
        /// UID of the deleted slice. With it, a late deletion leaves an object alone that was created anew under the name;
        /// without it, whatever has the name is deleted.
        uid: Option<String>,
    },
    /// A claim was added or changed.
    Claim(Arc<ResourceClaim>),
    /// A claim was deleted.
    ClaimDeleted {
        /// Namespace of the deleted claim.
        namespace: String,
        /// Name of the deleted claim.
        name: String,
        /// UID of the deleted claim, as that of a slice.
        uid: Option<String>,
    },
    /// A `DeviceTaintRule` was added or changed.
    TaintRule(Arc<DeviceTaintRule>),
    /// A `DeviceTaintRule` was deleted.
    TaintRuleDeleted {
        /// Name of the deleted rule.
        name: String,
        /// UID of the deleted rule, as that of a slice.
        uid: Option<String>,
    },
}

/// Values of pools, by driver name and pool name.
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
/// use dra_attrs::Profile;
/// use poolstatus::{PoolIndex, PoolIndexEvent, Query};
/// use serde_json::{from_value, json};
///
/// let mut index = PoolIndex::new(Profile::V1_37);
/// index.apply(PoolIndexEvent::Slice(Arc::new(from_value(json!({"metadata": {"name": "node-1-gpus"}, "spec": {
///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
///     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
/// }}))?)))?;
/// let report = index.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
/// assert_eq!(report.pools[0].counts(Profile::V1_37).available, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PoolIndex {
    slices: BTreeMap<String, Arc<ResourceSlice>>,
    /// Slices of each pool, by name. A pool without slices has no entry.
    pools: ByPool<BTreeMap<String, Arc<ResourceSlice>>>,
    claims: BTreeMap<(String, String), (ClaimId, Arc<ResourceClaim>)>,
    /// Claims that hold devices of each pool, including pools without slices.
    users: ByPool<BTreeMap<ClaimId, Arc<ResourceClaim>>>,
    rules: BTreeMap<String, Arc<DeviceTaintRule>>,
    next: ClaimId,
    controllers: Component,
}

impl PoolIndex {
    /// Creates an empty index for the controller manager `controllers`: taint rules count if it reads them
    /// ([`Component::reads_taint_rules`]).
    #[must_use]
    pub fn new(controllers: impl Into<Component>) -> Self {
        Self {
            slices: BTreeMap::new(),
            pools: ByPool::default(),
            claims: BTreeMap::new(),
            users: ByPool::default(),
            rules: BTreeMap::new(),
            next: ClaimId::default(),
            controllers: controllers.into(),
        }
    }

    /// Updates the index by one watch event, and tells what came of it.
    ///
    /// Events may be repeated and late, as for `Inventory::apply` of the crate `dra-alloc`: an older version of a known
    /// object changes nothing, nor does the deletion of an object that is not known or has been created anew.
    ///
    /// # Errors
    /// An object without a name. The index stays as it was.
    ///
    /// # Complexity
    /// Logarithmic in the number of objects, linear in the results of the claim.
    pub fn apply(&mut self, event: PoolIndexEvent) -> Result<ApplyOutcome, InventoryError> {
        match event {
            PoolIndexEvent::Slice(slice) => self.set_slice(&slice),
            PoolIndexEvent::SliceDeleted { name, uid } => Ok(self.delete_slice(&name, uid.as_deref())),
            PoolIndexEvent::Claim(claim) => self.set_claim(&claim),
            PoolIndexEvent::ClaimDeleted { namespace, name, uid } => {
                Ok(self.delete_claim(&(namespace, name), uid.as_deref()))
            }
            PoolIndexEvent::TaintRule(rule) => self.set_taint_rule(rule),
            PoolIndexEvent::TaintRuleDeleted { name, uid } => Ok(self.delete_taint_rule(&name, uid.as_deref())),
        }
    }

    /// Replaces all slices, as after a re-list of a watch. The list is taken as it is, and so must not be older than what
    /// events have shown.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
    /// use k8s_openapi::jiff::Timestamp;
    /// use dra_attrs::Profile;
    /// use poolstatus::{PoolIndex, Query};
    /// use serde_json::{from_value, json};
    ///
    /// let mut slices: BTreeMap<&str, Arc<ResourceSlice>> = BTreeMap::new();
    /// slices.insert("node-1-gpus", Arc::new(from_value(json!({"metadata": {"name": "node-1-gpus"}, "spec": {
    ///     "driver": "gpu.example.com", "devices": [{"name": "gpu-0"}],
    ///     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
    /// }}))?));
    /// let claims: BTreeMap<&str, Arc<ResourceClaim>> = BTreeMap::new();
    /// let rules: BTreeMap<&str, Arc<DeviceTaintRule>> = BTreeMap::new();
    /// let mut index = PoolIndex::new(Profile::V1_37);
    /// index.replace_slices(slices.values().cloned())?;
    /// index.replace_claims(claims.values().cloned())?;
    /// index.replace_taint_rules(rules.values().cloned())?;
    /// assert_eq!(Arc::strong_count(&slices["node-1-gpus"]), 3);
    /// assert_eq!(index.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH).matching_pools, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A slice without a name. The index stays as it was.
    pub fn replace_slices(
        &mut self,
        slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>,
    ) -> Result<(), InventoryError> {
        let mut listed = Self::new(self.controllers);
        slices.into_iter().try_for_each(|slice| listed.set_slice(&slice.into()).map(drop))?;
        (self.slices, self.pools) = (listed.slices, listed.pools);
        Ok(())
    }

    /// Replaces all claims, as after a re-list of a watch.
    ///
    /// # Errors
    /// A claim without a name. The index stays as it was.
    pub fn replace_claims(
        &mut self,
        claims: impl IntoIterator<Item = impl Into<Arc<ResourceClaim>>>,
    ) -> Result<(), InventoryError> {
        let mut listed = Self::new(self.controllers);
        claims.into_iter().try_for_each(|claim| listed.set_claim(&claim.into()).map(drop))?;
        (self.claims, self.users, self.next) = (listed.claims, listed.users, listed.next);
        Ok(())
    }

    /// Replaces all taint rules, as after a re-list of a watch.
    ///
    /// # Errors
    /// A rule without a name. The index stays as it was.
    pub fn replace_taint_rules(
        &mut self,
        rules: impl IntoIterator<Item = impl Into<Arc<DeviceTaintRule>>>,
    ) -> Result<(), InventoryError> {
        let mut listed = Self::new(self.controllers);
        rules.into_iter().try_for_each(|rule| listed.set_taint_rule(rule.into()).map(drop))?;
        self.rules = listed.rules;
        Ok(())
    }

    /// Returns the names of the drivers that have slices, sorted.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use poolstatus::PoolIndex;
    /// use serde_json::{from_value, json};
    /// let mut index = PoolIndex::new(Profile::V1_37);
    /// let slice: k8s_openapi::api::resource::v1::ResourceSlice = from_value(json!({"metadata": {"name": "node-1-gpus"},
    ///     "spec": {"driver": "gpu.example.com", "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}}}))?;
    /// index.replace_slices([slice])?;
    /// assert_eq!(index.drivers().collect::<Vec<_>>(), ["gpu.example.com"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drivers(&self) -> impl Iterator<Item = &str> {
        self.pools.keys().map(String::as_str)
    }

    /// Returns the claims of the index, sorted by namespace and name. They are the caller's own objects: no report names them.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use poolstatus::PoolIndex;
    /// use serde_json::{from_value, json};
    /// let mut index = PoolIndex::new(Profile::V1_37);
    /// let claim: k8s_openapi::api::resource::v1::ResourceClaim =
    ///     from_value(json!({"metadata": {"namespace": "ml", "name": "training"}, "spec": {}}))?;
    /// index.replace_claims([claim])?;
    /// let names: Vec<_> = index.claims().map(|claim| claim.metadata.name.as_deref()).collect();
    /// assert_eq!(names, [Some("training")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn claims(&self) -> impl Iterator<Item = &ResourceClaim> {
        self.claims.values().map(|(_, claim)| &**claim)
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
        let rules = self.rules.values().map(|rule| &**rule).filter(|_| self.controllers.reads_taint_rules());
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

    /// Returns true if claims of the query's namespace hold a device of the pool, or if the query names no namespace.
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

    fn set_slice(&mut self, slice: &Arc<ResourceSlice>) -> Result<ApplyOutcome, InventoryError> {
        let name = name_of("ResourceSlice", slice.metadata.name.as_deref())?;
        if self.slices.get(&name).is_some_and(|known| ResourceVersion::is_older(&slice.metadata, &known.metadata)) {
            return Ok(ApplyOutcome::Older);
        }
        if let Some(old) = self.slices.insert(name.clone(), Arc::clone(slice)) {
            remove(&mut self.pools, pool_of(&old), &name);
        }
        entry(&mut self.pools, pool_of(slice)).insert(name, Arc::clone(slice));
        Ok(ApplyOutcome::Applied)
    }

    fn delete_slice(&mut self, name: &str, uid: Option<&str>) -> ApplyOutcome {
        let outcome = deletion(self.slices.get(name).map(|known| &known.metadata), uid);
        if outcome == ApplyOutcome::Applied
            && let Some(slice) = self.slices.remove(name)
        {
            remove(&mut self.pools, pool_of(&slice), name);
        }
        outcome
    }

    fn set_claim(&mut self, claim: &Arc<ResourceClaim>) -> Result<ApplyOutcome, InventoryError> {
        let name = name_of("ResourceClaim", claim.metadata.name.as_deref())?;
        let key = (claim.metadata.namespace.clone().unwrap_or_default(), name);
        if self.claims.get(&key).is_some_and(|(_, known)| ResourceVersion::is_older(&claim.metadata, &known.metadata)) {
            return Ok(ApplyOutcome::Older);
        }
        let id = self.next;
        self.next = self.next.saturating_add(1);
        if let Some((old, claim)) = self.claims.insert(key, (id, Arc::clone(claim))) {
            self.release(old, &claim);
        }
        for result in results(claim) {
            entry(&mut self.users, [&result.driver, &result.pool]).insert(id, Arc::clone(claim));
        }
        Ok(ApplyOutcome::Applied)
    }

    fn delete_claim(&mut self, key: &(String, String), uid: Option<&str>) -> ApplyOutcome {
        let outcome = deletion(self.claims.get(key).map(|(_, known)| &known.metadata), uid);
        if outcome == ApplyOutcome::Applied
            && let Some((id, claim)) = self.claims.remove(key)
        {
            self.release(id, &claim);
        }
        outcome
    }

    fn set_taint_rule(&mut self, rule: Arc<DeviceTaintRule>) -> Result<ApplyOutcome, InventoryError> {
        let name = name_of("DeviceTaintRule", rule.metadata.name.as_deref())?;
        if self.rules.get(&name).is_some_and(|known| ResourceVersion::is_older(&rule.metadata, &known.metadata)) {
            return Ok(ApplyOutcome::Older);
        }
        self.rules.insert(name, rule);
        Ok(ApplyOutcome::Applied)
    }

    fn delete_taint_rule(&mut self, name: &str, uid: Option<&str>) -> ApplyOutcome {
        let outcome = deletion(self.rules.get(name).map(|known| &known.metadata), uid);
        if outcome == ApplyOutcome::Applied {
            self.rules.remove(name);
        }
        outcome
    }

    fn release(&mut self, id: ClaimId, claim: &ResourceClaim) {
        for result in results(claim) {
            remove(&mut self.users, [&result.driver, &result.pool], &id);
        }
    }
}

/// Returns the answer to a deletion, from the known object of its name.
fn deletion(known: Option<&ObjectMeta>, uid: Option<&str>) -> ApplyOutcome {
    match known {
        None => ApplyOutcome::Unknown,
        Some(known) if ResourceVersion::is_deleted_by(known, uid) => ApplyOutcome::Applied,
        Some(_) => ApplyOutcome::OtherObject,
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

/// Removes an object from a pool's entry, and the entry once it is empty.
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
