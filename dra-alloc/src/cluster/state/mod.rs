//! Allocated devices of a cluster: which claim holds which device, and which amounts its shares consume.
//!
//! A device result of a claim's allocation counts as follows:
//!
//! | result | counts as |
//! |---|---|
//! | `adminAccess: true` | nothing: admin access takes no device away |
//! | with a `shareID` | a share, which consumes `consumedCapacity` |
//! | any other | the device is held exclusively |
//!
//! While the gate [`Gate::ConsumableCapacity`] is off, a share counts as the whole device: a claim with a share,
//! allocated while the gate was on, holds the device exclusively.
//!
//! The state remembers what each claim holds, and gives back just that when the claim is forgotten. It is made of
//! persistent tables, so that a copy shares everything with the original until one of the two changes.
//!
//! Source: `AllocatedState` of kube-scheduler 1.37.
//!
//! Tests: `tests/it/state.rs`.

mod claim_id;
mod device_usage;
mod holding;
mod larger_use;
mod layer;
mod occupancy;
mod pool_use;
mod state_error;

use std::sync::Arc;

use dra_attrs::{Component, Quantity};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};

pub use claim_id::ClaimId;
pub use device_usage::DeviceUsage;
pub use layer::Layer;
pub(crate) use occupancy::Occupancy;
pub(crate) use pool_use::{CountersLeft, PoolUse};
pub use state_error::StateError;

use device_usage::Holder;
use dra_attrs::Gate;
use dra_device::DeviceId;
use dra_device::internal::of_allocation;
use holding::{Holding, Share, Shares, holdings};
use smallvec::SmallVec;

use super::stamp::Stamp;
use super::trie::{Trie, hash};

/// Devices in use in a cluster. The default is the empty state of a cluster with [`Gate::ConsumableCapacity`] on.
///
/// A clone is a snapshot: it costs no more than a reference, and a change afterwards copies what it changes.
/// [`AllocatedState::layer`] makes changes that can be dropped again.
///
/// ```
/// use dra_alloc::{AllocatedState, AssumeOutcome, DeviceId};
/// use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
/// use serde_json::{from_value, json};
///
/// let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ml", "name": "training"}}))?;
/// let device = json!({"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"});
/// let allocation: AllocationResult = from_value(json!({"devices": {"results": [device]}}))?;
///
/// let mut state = AllocatedState::default();
/// assert_eq!(state.assume(&claim, &allocation)?, AssumeOutcome::Added);
/// assert_eq!(state.assume(&claim, &allocation)?, AssumeOutcome::Unchanged);
/// let gpu = DeviceId::new("gpu.example.com", "node-1", "gpu-0");
/// let holders: Vec<String> = state.device(&gpu).into_iter().flat_map(|gpu| gpu.holders()).map(ToString::to_string).collect();
/// assert_eq!(holders, ["ml/training"]);
/// assert!(state.forget(&claim));
/// assert!(!state.forget(&claim));
/// assert_eq!(state, AllocatedState::default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AllocatedState {
    pools: Trie<Arc<PoolUse>>,
    claims: Trie<Arc<ClaimUse>>,
    shares: Shares,
    /// Number of devices in use.
    devices: usize,
    /// Devices that are held twice.
    held_twice: Trie<HeldTwice>,
    /// Last change of the state.
    stamp: Stamp,
}

/// Use of all pools at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolUses(Trie<Arc<PoolUse>>);

impl PoolUses {
    /// Returns the hashes of driver and name of the pools whose use differs, some of them twice.
    pub(crate) fn differences(&self, other: &Self) -> Vec<u64> {
        self.0.differences(&other.0).into_iter().map(|(hash, _)| hash).collect()
    }
}

/// Holdings of one claim.
#[derive(Clone, Debug)]
struct ClaimUse {
    id: Arc<ClaimId>,
    held: Vec<Held>,
}

/// One device that a claim holds, or a share of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    driver: Arc<str>,
    pool: Arc<str>,
    device: Arc<str>,
    holding: Holding,
}

/// Device that a claim holds, or has a share of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldDevice<'s> {
    pub(crate) driver: &'s str,
    pub(crate) pool: &'s str,
    pub(crate) device: &'s str,
    /// Amounts that a share consumes; `None` for the whole device.
    pub(crate) share: Option<&'s [(String, Quantity)]>,
}

/// Name of a device that is held twice.
#[derive(Clone, Debug)]
struct HeldTwice {
    driver: Arc<str>,
    pool: Arc<str>,
    device: Arc<str>,
}

impl HeldTwice {
    fn texts(&self) -> [&str; 3] {
        [&self.driver, &self.pool, &self.device]
    }
}

/// Answer of [`AllocatedState::assume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssumeOutcome {
    /// The claim held nothing before.
    Added,
    /// The claim held just this before.
    Unchanged,
    /// The claim held something else before, which it has given back.
    Replaced,
}

impl AllocatedState {
    /// Creates the empty state of a cluster, as its scheduler counts.
    #[must_use]
    pub fn new(scheduler: impl Into<Component>) -> Self {
        let shares = if scheduler.into().has(Gate::ConsumableCapacity) { Shares::Apart } else { Shares::Exclusive };
        Self { shares, ..Self::default() }
    }

    /// Creates the state of a cluster from its claims. Claims without an
    /// allocation are ignored. Claims of one identity, which hand-made input may have, hold together what each of them
    /// holds.
    ///
    /// # Errors
    /// A consumed capacity is not a quantity, or below zero.
    ///
    /// # Complexity
    /// Linear in the number of device results.
    pub fn from_claims<'c>(
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
        scheduler: impl Into<Component>,
    ) -> Result<Self, StateError> {
        let mut state = Self::new(scheduler);
        for claim in claims {
            let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else {
                continue;
            };
            let held = holdings(allocation, state.shares)?;
            state.add(claim, held);
        }
        Ok(state)
    }

    /// Adds the allocation of a claim, as a scheduler does between its decision and the write to the API server. A claim
    /// that is known holds the new allocation instead of the one before, so that it may be seen any number of times.
    ///
    /// # Errors
    /// A consumed capacity is not a quantity, or below zero. The state is unchanged then.
    ///
    /// # Complexity
    /// Logarithmic in the size of the state, for each device result.
    pub fn assume(
        &mut self,
        claim: &ResourceClaim,
        allocation: &AllocationResult,
    ) -> Result<AssumeOutcome, StateError> {
        let held = holdings(allocation, self.shares)?;
        let known = self.claim_use(claim_id::texts(claim));
        if let Some(known) = known
            && is_same(&known.held, &held)
        {
            return Ok(AssumeOutcome::Unchanged);
        }
        let was_known = self.forget(claim);
        self.add(claim, held);
        Ok(if was_known { AssumeOutcome::Replaced } else { AssumeOutcome::Added })
    }

    /// Removes a claim with everything that it holds. The answer tells if the claim was known.
    ///
    /// # Complexity
    /// Logarithmic in the size of the state, for each device that the claim holds.
    pub fn forget(&mut self, claim: &ResourceClaim) -> bool {
        self.forget_id(claim_id::texts(claim))
    }

    /// Removes a claim, known by its name, with everything that it holds. The answer tells if the claim was known.
    pub(crate) fn forget_claim(&mut self, claim: &ClaimId) -> bool {
        self.forget_id(claim.texts())
    }

    /// Marks a device as held exclusively, by a claim that is not known.
    pub fn hold(&mut self, device: &DeviceId) {
        self.add_to(device, Holding::Exclusive);
    }

    /// Adds a share of a device, of a claim that is not known. `share` is its ID. Does not add the capacity that the share
    /// consumes; see [`AllocatedState::consume`].
    pub fn share(&mut self, device: &DeviceId, share: &str) {
        self.add_to(device, Holding::Share(Share { id: Some(share.to_owned()), consumed: Vec::new() }));
    }

    /// Adds capacity that shares of a device consume. A negative amount counts as zero.
    pub fn consume(&mut self, device: &DeviceId, capacity: &str, amount: Quantity) {
        let consumed = vec![(capacity.to_owned(), amount.max(Quantity::ZERO))];
        self.add_to(device, Holding::Share(Share { id: None, consumed }));
    }

    /// Returns the number of devices in use.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.devices
    }

    /// Returns true if no device is in use.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.devices == 0
    }

    /// Returns true if a device is in use: held exclusively, shared, or with consumed capacity.
    #[must_use]
    pub fn is_allocated(&self, device: &DeviceId) -> bool {
        self.device(device).is_some()
    }

    /// Returns the use of a device; `None` if it is not in use.
    ///
    /// # Complexity
    /// Logarithmic in the size of the state.
    #[must_use]
    pub fn device(&self, device: &DeviceId) -> Option<&DeviceUsage> {
        self.pool(&device.driver, &device.pool)?.device(&device.device)
    }

    /// Returns the devices of a pool that are in use, sorted by name.
    ///
    /// # Complexity
    /// `n log n` in the number of these devices.
    pub(crate) fn devices_of_pool(&self, driver: &str, pool: &str) -> impl Iterator<Item = &DeviceUsage> {
        self.pool(driver, pool).map(PoolUse::sorted).into_iter().flatten()
    }

    /// Returns the devices in use of all pools with their uses, sorted by driver, pool and name.
    ///
    /// # Complexity
    /// `n log n` in the number of devices in use.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId, &DeviceUsage)> {
        let mut pools: Vec<&PoolUse> = self.pools.iter().map(|pool| &**pool).collect();
        pools.sort_unstable_by(|left, right| (&left.driver, &left.pool).cmp(&(&right.driver, &right.pool)));
        let with_id = |pool: &PoolUse, device: &DeviceUsage| DeviceId::new(&pool.driver, &pool.pool, device.name());
        pools
            .into_iter()
            .flat_map(move |pool| pool.sorted().into_iter().map(move |device| (with_id(pool, device), device)))
    }

    /// Returns the devices that a claim holds exclusively while another one holds them too, or has a share of them, with
    /// their uses, sorted by driver, pool and name.
    ///
    /// There is none in a consistent cluster. The API server never compares claims: two schedulers that give out the same
    /// devices, or the restore of a backup, allocate a device twice. Such a device is free once all of its claims have
    /// given it back.
    ///
    /// ```
    /// use dra_attrs::Component;
    /// use dra_attrs::Profile;
    /// use dra_alloc::{AllocatedState, Gate, GateSet};
    /// use k8s_openapi::api::resource::v1::ResourceClaim;
    /// use serde_json::{from_value, json};
    ///
    /// let claim = |name: &str| from_value::<ResourceClaim>(json!({"metadata": {"namespace": "ml", "name": name},
    ///     "status": {"allocation": {"devices": {"results": [
    ///         {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]}}}}));
    /// let claims = [claim("training")?, claim("inference")?];
    /// let mut state = AllocatedState::from_claims(&claims, Component::of(Profile::V1_37))?;
    /// let told: Vec<String> = state
    ///     .held_twice()
    ///     .map(|(device, usage)| {
    ///         let claims: Vec<String> = usage.claims().iter().map(ToString::to_string).collect();
    ///         format!("{device} is held by {} claims: {}", usage.claim_count(), claims.join(", "))
    ///     })
    ///     .collect();
    /// assert_eq!(told, ["gpu.example.com/node-1/gpu-0 is held by 2 claims: ml/inference, ml/training"]);
    /// state.forget(&claims[0]);
    /// assert_eq!(state.held_twice().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Complexity
    /// `n log n` in the number of these devices, whatever the size of the state.
    pub fn held_twice(&self) -> impl Iterator<Item = (DeviceId, &DeviceUsage)> {
        let mut names: Vec<[&str; 3]> = self.held_twice.iter().map(HeldTwice::texts).collect();
        names.sort_unstable();
        let with_use = |[driver, pool, device]: [&str; 3]| {
            Some((DeviceId::new(driver, pool, device), self.pool(driver, pool)?.device(device)?))
        };
        names.into_iter().filter_map(with_use)
    }

    /// Returns the devices that a claim holds or shares, in the order of its allocation; `None` if the claim is not
    /// known.
    ///
    /// # Complexity
    /// Logarithmic in the number of claims.
    #[must_use]
    pub fn devices_of_claim(&self, claim: &ClaimId) -> Option<Vec<DeviceId>> {
        let known = self.claim_use(claim.texts())?;
        Some(known.held.iter().map(|held| DeviceId::new(&held.driver, &held.pool, &held.device)).collect())
    }

    /// Returns what a claim holds, in the order of its allocation.
    pub(crate) fn held_by(&self, claim: &ClaimId) -> impl Iterator<Item = HeldDevice<'_>> {
        let known = self.claim_use(claim.texts());
        known.into_iter().flat_map(|known| &known.held).map(|held| HeldDevice {
            driver: &held.driver,
            pool: &held.pool,
            device: &held.device,
            share: match &held.holding {
                Holding::Exclusive => None,
                Holding::Share(share) => Some(&share.consumed),
            },
        })
    }

    /// Returns the claims that the state knows, sorted.
    ///
    /// # Complexity
    /// `n log n` in the number of claims.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimId> {
        let mut claims: Vec<&ClaimId> = self.claims.iter().map(|claim| &*claim.id).collect();
        claims.sort_unstable();
        claims.into_iter()
    }

    /// Returns the last change of the state. Two states with one stamp are equal.
    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns the use of all pools, as it is now: a copy shares everything with the state.
    pub(crate) fn uses(&self) -> PoolUses {
        PoolUses(self.pools.clone())
    }

    pub(crate) fn pool(&self, driver: &str, pool: &str) -> Option<&PoolUse> {
        self.pool_hashed(hash([driver, pool]), driver, pool)
    }

    /// Returns the use of a pool, with the hash of its driver and name.
    pub(crate) fn pool_hashed(&self, hash: u64, driver: &str, pool: &str) -> Option<&PoolUse> {
        self.kept_pool(hash, driver, pool).map(|pool| &**pool)
    }

    fn kept_pool(&self, hash: u64, driver: &str, pool: &str) -> Option<&Arc<PoolUse>> {
        self.pools.find(hash, |other| other.is(driver, pool))
    }

    /// Returns the use of some pools alone, each given by the hash of driver and name and by both, with some of the claims that
    /// hold devices there. It costs little to change. Claims that are left out can't be forgotten.
    pub(crate) fn excerpt<'e>(
        &self,
        pools: impl Iterator<Item = (u64, &'e str, &'e str)>,
        claims: impl Iterator<Item = &'e ResourceClaim>,
    ) -> Self {
        let mut excerpt = Self { shares: self.shares, stamp: Stamp::next(), ..Self::default() };
        for (hash, driver, pool) in pools {
            if let Some(used) = self.kept_pool(hash, driver, pool) {
                excerpt.devices += used.len();
                excerpt.pools.insert(hash, Arc::clone(used));
            }
        }
        for texts in claims.map(claim_id::texts) {
            if let Some(known) = self.claim_use(texts) {
                excerpt.claims.insert(hash(texts), Arc::clone(known));
            }
        }
        excerpt
    }

    /// Returns true if nobody but some claims uses devices of some pools, and each of these devices is held by one of the claims,
    /// exclusively.
    pub(crate) fn is_used_by<'e>(
        &self,
        pools: impl Iterator<Item = (u64, &'e str, &'e str)>,
        claims: impl Iterator<Item = (&'e ResourceClaim, &'e AllocationResult)>,
    ) -> bool {
        let used: SmallVec<[&PoolUse; 2]> =
            pools.filter_map(|(hash, driver, pool)| self.pool_hashed(hash, driver, pool)).collect();
        let held: usize = claims
            .map(|(claim, allocation)| {
                let texts = claim_id::texts(claim);
                let is_held = |result: &&DeviceRequestAllocationResult| {
                    let pool = used.iter().find(|pool| pool.is(&result.driver, &result.pool));
                    let usage = pool.and_then(|pool| pool.device(&result.device));
                    result.admin_access != Some(true) && usage.is_some_and(|usage| usage.is_held_by(texts))
                };
                of_allocation(allocation).iter().filter(is_held).count()
            })
            .sum();
        held == used.iter().map(|pool| pool.len()).sum::<usize>()
    }

    fn claim_use(&self, id: [&str; 3]) -> Option<&Arc<ClaimUse>> {
        self.claims.find(hash(id), |claim| claim.id.texts() == id)
    }

    fn add(&mut self, claim: &ResourceClaim, holdings: Vec<(&DeviceRequestAllocationResult, Holding)>) {
        let texts = claim_id::texts(claim);
        let id = self.claim_use(texts).map_or_else(|| Arc::new(ClaimId::from(claim)), |known| Arc::clone(&known.id));
        let mut added = Vec::with_capacity(holdings.len());
        for (result, holding) in holdings {
            let names = [&*result.driver, &*result.pool, &*result.device];
            let [driver, pool, device] = self.add_use(names, Some(Arc::clone(&id)), holding.clone()).map(Arc::clone);
            added.push(Held { driver, pool, device, holding });
        }
        let is_it = |claim: &Arc<ClaimUse>| claim.id.texts() == texts;
        let make = || Arc::new(ClaimUse { id, held: Vec::new() });
        let held = &mut Arc::make_mut(self.claims.entry(hash(texts), is_it, make)).held;
        if held.is_empty() {
            // Not extended, which would make room for more.
            *held = added;
        } else {
            held.extend(added);
        }
    }

    fn add_to(&mut self, device: &DeviceId, holding: Holding) {
        self.add_use([&device.driver, &device.pool, &device.device], None, holding);
    }

    /// Adds a holding to a device, which is named by driver, pool and device name. Returns the names as they are kept.
    fn add_use(&mut self, [driver, pool, device]: [&str; 3], holder: Holder, holding: Holding) -> [&Arc<str>; 3] {
        let make = || Arc::new(PoolUse::new(driver, pool));
        let found = self.pools.entry(hash([driver, pool]), |other| other.is(driver, pool), make);
        let added = Arc::make_mut(found).add(device, holder, holding);
        self.devices += usize::from(added.is_first);
        self.stamp = added.stamp;
        if added.is_twice {
            let [driver, pool, device] = added.names.map(Arc::clone);
            let twice = HeldTwice { driver, pool, device };
            self.held_twice.insert(hash(twice.texts()), twice);
        }
        added.names
    }

    fn forget_id(&mut self, id: [&str; 3]) -> bool {
        let Some(claim) = self.claims.remove(hash(id), |claim| claim.id.texts() == id) else {
            return false;
        };
        let holder = Some(Arc::clone(&claim.id));
        for held in &claim.held {
            self.remove_use(held, &holder);
        }
        self.stamp = Stamp::next();
        true
    }

    fn remove_use(&mut self, held: &Held, holder: &Holder) {
        let (key, is_it) =
            (hash([&*held.driver, &*held.pool]), |pool: &Arc<PoolUse>| pool.is(&held.driver, &held.pool));
        let make = || Arc::new(PoolUse::new(&held.driver, &held.pool));
        let found = Arc::make_mut(self.pools.entry(key, is_it, make));
        let before = (found.len(), found.held_twice());
        found.remove(&held.device, holder, &held.holding);
        self.devices -= before.0 - found.len();
        if found.held_twice() < before.1 {
            let texts = [&*held.driver, &*held.pool, &*held.device];
            self.held_twice.remove(hash(texts), |twice: &HeldTwice| twice.texts() == texts);
        }
        if found.len() == 0 {
            self.pools.remove(key, is_it);
        }
    }
}

/// Returns true if a claim holds just what an allocation gives it.
fn is_same(held: &[Held], allocated: &[(&DeviceRequestAllocationResult, Holding)]) -> bool {
    held.len() == allocated.len()
        && held.iter().zip(allocated).all(|(held, (result, holding))| {
            [&*held.driver, &*held.pool, &*held.device] == [&*result.driver, &*result.pool, &*result.device]
                && held.holding == *holding
        })
}

/// Two states are equal if the same claims hold the same devices, whatever their history.
impl PartialEq for AllocatedState {
    fn eq(&self, other: &Self) -> bool {
        let has_claim =
            |claim: &Arc<ClaimUse>| other.claim_use(claim.id.texts()).is_some_and(|known| known.held == claim.held);
        let has_pool = |pool: &Arc<PoolUse>| other.pool(&pool.driver, &pool.pool) == Some(&**pool);
        self.shares == other.shares
            && (self.stamp == other.stamp
                || self.claims.len() == other.claims.len()
                    && self.pools.len() == other.pools.len()
                    && self.claims.iter().all(has_claim)
                    && self.pools.iter().all(has_pool))
    }
}

impl Eq for AllocatedState {}
