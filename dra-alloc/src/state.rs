//! What is allocated already: devices held by claims, shares of devices, and the capacity that shares consume.
//!
//! A device result of a claim's allocation counts as follows:
//!
//! | result | counts as |
//! |---|---|
//! | `adminAccess: true` | nothing: admin access takes no device away |
//! | with a `shareID` | a share, which consumes `consumedCapacity` |
//! | any other | the device is held exclusively |
//!
//! Without the feature `ConsumableCapacity` nobody looks at shares. A claim that has one, from the time when the gate was on,
//! holds the device exclusively.
//!
//! Source: `AllocatedState` of kube-scheduler 1.37.

use std::collections::BTreeMap;

use dra_attrs::quantity::{Quantity, QuantityError};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};

use crate::device_id::DeviceId;
use crate::features::{Feature, Features};

/// The devices that are in use in a cluster. The default is the empty state of a cluster with shared devices.
///
/// ```
/// use dra_alloc::device_id::DeviceId;
/// use dra_alloc::state::AllocatedState;
/// use k8s_openapi::api::resource::v1::{AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult};
///
/// let device = DeviceRequestAllocationResult {
///     driver: "gpu.example.com".into(), pool: "node-1".into(), device: "gpu-0".into(), ..Default::default()
/// };
/// let devices = DeviceAllocationResult { results: Some(vec![device]), ..Default::default() };
/// let result = AllocationResult { devices: Some(devices), ..Default::default() };
///
/// let mut state = AllocatedState::default();
/// state.assume([&result])?;
/// let gpu = DeviceId::new("gpu.example.com", "node-1", "gpu-0");
/// assert!(state.is_allocated(&gpu));
/// state.forget([&result])?;
/// assert_eq!(state, AllocatedState::default());
/// # Ok::<(), dra_alloc::state::StateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatedState {
    drivers: BTreeMap<String, BTreeMap<String, PoolUse>>,
    shares: Shares,
}

/// What a result with a `shareID` counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shares {
    #[default]
    Apart,
    Exclusive,
}

/// The devices of one pool that are in use.
pub(crate) type PoolUse = BTreeMap<String, DeviceUse>;

/// How one device is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceUse {
    /// Claims that hold the device exclusively: one in a sound cluster.
    holders: u32,
    /// By id, how often it was counted: once in a sound cluster.
    shares: BTreeMap<String, u32>,
    /// What all shares consume together.
    pub(crate) consumed: BTreeMap<String, Quantity>,
}

impl DeviceUse {
    pub(crate) const fn is_exclusive(&self) -> bool {
        self.holders > 0
    }

    pub(crate) fn is_shared(&self) -> bool {
        !self.shares.is_empty() || !self.consumed.is_empty()
    }

    fn is_unused(&self) -> bool {
        !self.is_exclusive() && !self.is_shared()
    }

    /// Adds to a sum; one that does not fit stays at the largest value, so that nothing more fits beside it.
    fn consume(&mut self, capacity: &str, amount: Quantity) {
        let sum = self.consumed.entry(capacity.to_owned()).or_insert(Quantity::ZERO);
        *sum = sum.checked_add(amount).unwrap_or_else(|| Quantity::from_nanos(i128::MAX, sum.format()));
    }

    /// Takes back from a sum, if there is one.
    fn release(&mut self, capacity: &str, amount: Quantity) {
        if let Some(sum) = self.consumed.get_mut(capacity) {
            *sum = sum.checked_sub(amount).unwrap_or(Quantity::ZERO);
        }
    }
}

/// Why an allocation can't be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A consumed capacity is not a quantity.
    #[error("devices.results[{index}].consumedCapacity[{capacity}] of device {device}: {error}")]
    ConsumedCapacity {
        /// The device.
        device: Box<DeviceId>,
        /// Position of the device result.
        index: usize,
        /// Name of the capacity.
        capacity: String,
        /// What is wrong.
        error: QuantityError,
    },
}

/// A device result as it counts.
enum Holding {
    Nothing,
    Exclusive,
    Share { id: String, consumed: Vec<(String, Quantity)> },
}

impl Holding {
    fn of(result: &DeviceRequestAllocationResult, index: usize, shares: Shares) -> Result<Self, StateError> {
        if result.admin_access == Some(true) {
            return Ok(Self::Nothing);
        }
        let share = result.share_id.as_ref().filter(|_| shares == Shares::Apart);
        let Some(id) = share else { return Ok(Self::Exclusive) };
        let amounts = result.consumed_capacity.iter().flatten().map(|(capacity, amount)| {
            let amount = Quantity::from_kube(amount);
            amount.map(|amount| (capacity.clone(), amount)).map_err(|error| StateError::ConsumedCapacity {
                device: Box::new(DeviceId::new(&result.driver, &result.pool, &result.device)),
                index,
                capacity: capacity.clone(),
                error,
            })
        });
        Ok(Self::Share { id: id.clone(), consumed: amounts.collect::<Result<_, _>>()? })
    }

    fn add_to(self, device: &mut DeviceUse) {
        match self {
            Self::Nothing => {}
            Self::Exclusive => device.holders = device.holders.saturating_add(1),
            Self::Share { id, consumed } => {
                let times = device.shares.entry(id).or_default();
                *times = times.saturating_add(1);
                for (capacity, amount) in consumed {
                    device.consume(&capacity, amount);
                }
            }
        }
    }

    fn remove_from(self, device: &mut DeviceUse) {
        match self {
            Self::Nothing => {}
            Self::Exclusive => device.holders = device.holders.saturating_sub(1),
            Self::Share { id, consumed } => {
                let Some(times) = device.shares.get_mut(&id) else { return };
                *times = times.saturating_sub(1);
                if *times == 0 {
                    device.shares.remove(&id);
                }
                for (capacity, amount) in consumed {
                    device.release(&capacity, amount);
                }
            }
        }
        if device.consumed.values().all(|amount| amount.is_zero()) && device.shares.is_empty() {
            device.consumed.clear();
        }
    }
}

impl AllocatedState {
    /// The empty state of a cluster with these features.
    #[must_use]
    pub const fn new(features: Features) -> Self {
        let shares = if features.has(Feature::ConsumableCapacity) { Shares::Apart } else { Shares::Exclusive };
        Self { drivers: BTreeMap::new(), shares }
    }

    /// What the claims of a cluster with these features hold. Claims without an allocation count for nothing.
    ///
    /// # Errors
    /// A quantity that can't be read.
    pub fn from_claims<'c>(
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
        features: Features,
    ) -> Result<Self, StateError> {
        let mut state = Self::new(features);
        state.assume(claims.into_iter().filter_map(|claim| claim.status.as_ref()?.allocation.as_ref()))?;
        Ok(state)
    }

    /// Counts results as allocated, as a scheduler does between its decision and the write to the API server. What
    /// is counted twice, a share with its id or a device, consumes twice, and must be taken back twice.
    ///
    /// # Errors
    /// A quantity that can't be read; nothing is counted then.
    ///
    /// # Complexity
    /// Logarithmic in the number of devices in use, for each device result.
    pub fn assume<'r>(&mut self, results: impl IntoIterator<Item = &'r AllocationResult>) -> Result<(), StateError> {
        for (result, holding) in holdings(results, self.shares)? {
            if !matches!(holding, Holding::Nothing) {
                holding.add_to(self.device_mut(&result.driver, &result.pool, &result.device));
            }
        }
        Ok(())
    }

    /// Takes back what [`AllocatedState::assume`] counted. What is not in use stays so.
    ///
    /// # Errors
    /// A quantity that can't be read; nothing is taken back then.
    pub fn forget<'r>(&mut self, results: impl IntoIterator<Item = &'r AllocationResult>) -> Result<(), StateError> {
        for (result, holding) in holdings(results, self.shares)? {
            let Some(pools) = self.drivers.get_mut(&result.driver) else { continue };
            let Some(pool) = pools.get_mut(&result.pool) else { continue };
            let Some(device) = pool.get_mut(&result.device) else { continue };
            holding.remove_from(device);
            if device.is_unused() {
                pool.remove(&result.device);
            }
            if pool.is_empty() {
                pools.remove(&result.pool);
            }
            if pools.is_empty() {
                self.drivers.remove(&result.driver);
            }
        }
        Ok(())
    }

    /// Counts a device as held exclusively.
    pub fn hold(&mut self, device: &DeviceId) {
        Holding::Exclusive.add_to(self.device_mut(&device.driver, &device.pool, &device.device));
    }

    /// Counts a share of a device, without the capacity that it consumes.
    pub fn share(&mut self, device: &DeviceId, share: &str) {
        let share = Holding::Share { id: share.to_owned(), consumed: Vec::new() };
        share.add_to(self.device_mut(&device.driver, &device.pool, &device.device));
    }

    /// Counts capacity as consumed by the shares of a device.
    pub fn consume(&mut self, device: &DeviceId, capacity: &str, amount: Quantity) {
        self.device_mut(&device.driver, &device.pool, &device.device).consume(capacity, amount);
    }

    /// Whether a device is in use: held, shared, or with capacity consumed.
    #[must_use]
    pub fn is_allocated(&self, device: &DeviceId) -> bool {
        self.pool(&device.driver, &device.pool).is_some_and(|pool| pool.contains_key(&device.device))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    pub(crate) fn pool(&self, driver: &str, pool: &str) -> Option<&PoolUse> {
        self.drivers.get(driver)?.get(pool)
    }

    fn device_mut(&mut self, driver: &str, pool: &str, device: &str) -> &mut DeviceUse {
        let pools = self.drivers.entry(driver.to_owned()).or_default();
        pools.entry(pool.to_owned()).or_default().entry(device.to_owned()).or_default()
    }
}

/// Every device result with what it counts as; all are read before the first is counted.
fn holdings<'r>(
    results: impl IntoIterator<Item = &'r AllocationResult>,
    shares: Shares,
) -> Result<Vec<(&'r DeviceRequestAllocationResult, Holding)>, StateError> {
    let devices = results.into_iter().filter_map(|result| result.devices.as_ref()?.results.as_ref());
    let indexed = devices.flat_map(|devices| devices.iter().enumerate());
    indexed.map(|(index, result)| Ok((result, Holding::of(result, index, shares)?))).collect()
}
