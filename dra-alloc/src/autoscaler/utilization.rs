//! Utilization of a node's pools.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Quantity, QuantityError};
use dra_device::allocated_devices;
use dra_device::claims::ClaimKey;
use dra_device::pool::{LatestGeneration, group_by_pool, slice_devices};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, ResourceClaim, ResourceSlice};

/// One, in the unit of [`Utilization::billionths`].
const BILLION: u128 = 1_000_000_000;

/// Reason why the utilization of a node can't be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UtilizationError {
    /// A claim of the node's pods has no allocation.
    #[error("claim {claim} not allocated")]
    NotAllocated {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The slices of a pool are not as many as they should be.
    #[error(
        "pool {pool:?} error: newest generation: {generation}, slice count: {expected} - found only {found} slices"
    )]
    IncompletePool {
        /// Name of the driver.
        driver: String,
        /// Name of the pool.
        pool: String,
        /// Newest generation of the pool.
        generation: i64,
        /// Number of slices that the first one announces.
        expected: i64,
        /// Number of slices that are there.
        found: usize,
    },
    /// The value of a counter can't be read.
    #[error("pool {pool:?}: counter {counter:?} of counter set {counter_set:?}: {error}")]
    Counter {
        /// Name of the pool.
        pool: String,
        /// Name of the counter set.
        counter_set: String,
        /// Name of the counter.
        counter: String,
        /// Reason.
        #[source]
        error: QuantityError,
    },
}

/// Driver and name of a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "these two names identify a pool")]
pub struct PoolName {
    /// Name of the driver.
    pub driver: String,
    /// Name of the pool.
    pub name: String,
}

/// Part of something that is in use: devices of a pool, or the amount of a counter in billionths of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsedShare {
    /// Amount that is in use.
    pub used: u128,
    /// Amount that there is, at least 1.
    pub all: u128,
}

/// Utilization of a pool: the mean of the shares that are in use.
///
/// Of a pool without shared counters it has one share, the devices. Of other pools it has one for each counter set: that of
/// the counter that is used most. The mean is over the counter sets that some device consumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    shares: Vec<UsedShare>,
    consumed_sets: usize,
}

impl Utilization {
    /// Returns the shares that the utilization is the mean of, in the order of the counter sets; those of nothing are left
    /// out.
    #[must_use]
    pub fn shares(&self) -> &[UsedShare] {
        &self.shares
    }

    /// Returns the number by which the sum of the shares is divided; 0 if nothing can be used.
    #[must_use]
    pub const fn divisor(&self) -> usize {
        self.consumed_sets
    }

    /// Returns the utilization in billionths, rounded down. It is more than a billion only if counters are overdrawn.
    #[must_use]
    pub fn billionths(&self) -> u128 {
        let share = |share: &UsedShare| share.used.saturating_mul(BILLION).checked_div(share.all).unwrap_or_default();
        let sum = self.shares.iter().map(share).fold(0, u128::saturating_add);
        sum.checked_div(self.consumed_sets as u128).unwrap_or_default()
    }
}

/// Utilization of the pools of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeUtilization {
    /// Utilization by pool.
    pub pools: BTreeMap<PoolName, Utilization>,
}

impl NodeUtilization {
    /// Returns the pool that is used most, which stands for the node: CPU and memory are not looked at where there are
    /// slices. Of several, the first by driver and name; `None` without pools.
    #[must_use]
    pub fn highest(&self) -> Option<(&PoolName, &Utilization)> {
        self.pools.iter().min_by_key(|(name, used)| (Reverse(used.billionths()), *name))
    }

    /// Computes the utilization of a node's pools: its slices, and the claims of its pods.
    ///
    /// A device is in use if a result without admin access names it, once or more often; how much of its capacity is consumed
    /// makes no difference.
    ///
    /// # Errors
    /// A claim without an allocation, a pool that is not complete, or a counter that can't be read.
    ///
    /// # Complexity
    /// n log n in devices, counters and results.
    pub fn of_node<'a>(
        slices: impl IntoIterator<Item = &'a ResourceSlice>,
        claims: impl IntoIterator<Item = &'a ResourceClaim>,
    ) -> Result<Self, UtilizationError> {
        let mut held: BTreeMap<[&str; 2], BTreeSet<&str>> = BTreeMap::new();
        for claim in claims {
            if claim.status.as_ref().is_none_or(|status| status.allocation.is_none()) {
                return Err(UtilizationError::NotAllocated { claim: ClaimKey::from_metadata(&claim.metadata) });
            }
            for result in allocated_devices(claim).iter().filter(|result| result.admin_access != Some(true)) {
                held.entry([&result.driver, &result.pool]).or_default().insert(&result.device);
            }
        }
        let mut slices: Vec<&ResourceSlice> = slices.into_iter().collect();
        let mut used = Self::default();
        for pool in group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices) {
            let utilization =
                pool_utilization(pool, held.get(&[pool.driver(), pool.pool()]).unwrap_or(&BTreeSet::new()))?;
            used.pools.insert(PoolName { driver: pool.driver().to_owned(), name: pool.pool().to_owned() }, utilization);
        }
        Ok(used)
    }
}

fn pool_utilization(
    pool: LatestGeneration<'_, &ResourceSlice>,
    held: &BTreeSet<&str>,
) -> Result<Utilization, UtilizationError> {
    if !pool.is_complete() {
        return Err(UtilizationError::IncompletePool {
            driver: pool.driver().to_owned(),
            pool: pool.pool().to_owned(),
            generation: pool.generation(),
            expected: pool.expected_slice_count(),
            found: pool.count(),
        });
    }
    let devices: Vec<&Device> = pool.slices().flat_map(slice_devices).collect();
    let held: Vec<&Device> = devices.iter().copied().filter(|device| held.contains(device.name.as_str())).collect();
    let sets: Vec<&CounterSet> = pool.slices().flat_map(|slice| slice.spec.shared_counters.iter().flatten()).collect();
    if sets.is_empty() {
        let share = UsedShare { used: held.len() as u128, all: devices.len() as u128 };
        let shares = if devices.is_empty() { Vec::new() } else { vec![share] };
        return Ok(Utilization { consumed_sets: shares.len(), shares });
    }
    let consumed = devices.iter().flat_map(|device| device.consumes_counters.iter().flatten());
    let consumed_sets = consumed.map(|consumption| consumption.counter_set.as_str()).collect::<BTreeSet<_>>().len();
    if consumed_sets == 0 {
        return Ok(Utilization::default());
    }
    let used = used_counters(pool.pool(), &held)?;
    let mut shares = Vec::new();
    for set in sets {
        shares.extend(fullest_counter(pool.pool(), set, &used)?);
    }
    Ok(Utilization { shares, consumed_sets })
}

/// Amounts of counters in billionths, by counter set and counter.
type Amounts<'a> = BTreeMap<(&'a str, &'a str), i128>;

fn used_counters<'a>(pool: &str, held: &[&'a Device]) -> Result<Amounts<'a>, UtilizationError> {
    let mut used = Amounts::new();
    for consumption in held.iter().flat_map(|device| device.consumes_counters.iter().flatten()) {
        for (name, counter) in &consumption.counters {
            let amount = amount(pool, &consumption.counter_set, name, counter)?;
            let sum = used.entry((&consumption.counter_set, name)).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    Ok(used)
}

/// Returns the share of the counter of a set that is used most; counters of zero are left out.
fn fullest_counter(pool: &str, set: &CounterSet, used: &Amounts<'_>) -> Result<Option<UsedShare>, UtilizationError> {
    let mut fullest: Option<UsedShare> = None;
    for (name, counter) in &set.counters {
        let all = u128::try_from(amount(pool, &set.name, name, counter)?).unwrap_or_default();
        let used = used.get(&(set.name.as_str(), name.as_str())).copied().unwrap_or_default();
        let share = reduced(UsedShare { used: u128::try_from(used).unwrap_or_default(), all });
        if share.all > 0 && fullest.is_none_or(|fullest| is_less(fullest, share)) {
            fullest = Some(share);
        }
    }
    Ok(fullest)
}

fn amount(pool: &str, counter_set: &str, name: &str, counter: &Counter) -> Result<i128, UtilizationError> {
    let read = Quantity::from_kube(&counter.value);
    read.map(Quantity::nanos).map_err(|error| UtilizationError::Counter {
        pool: pool.to_owned(),
        counter_set: counter_set.to_owned(),
        counter: name.to_owned(),
        error,
    })
}

/// Returns true if one share is less than another. Products that are too large are compared after rounding.
fn is_less(left: UsedShare, right: UsedShare) -> bool {
    let products = left.used.checked_mul(right.all).zip(right.used.checked_mul(left.all));
    let rounded = |share: UsedShare| share.used.saturating_mul(BILLION).checked_div(share.all);
    products.map_or_else(|| rounded(left) < rounded(right), |(left, right)| left < right)
}

/// Returns the same share with the smallest numbers.
fn reduced(UsedShare { used, all }: UsedShare) -> UsedShare {
    let (mut divisor, mut rest) = (all, used);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let divisor = divisor.max(1);
    UsedShare { used: used / divisor, all: all / divisor }
}
