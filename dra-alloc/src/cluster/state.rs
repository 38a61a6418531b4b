//! Allocated devices of a cluster: devices held exclusively, shares of devices, and the capacity that shares consume.
//!
//! A device result of a claim's allocation counts as follows:
//!
//! | result | counts as |
//! |---|---|
//! | `adminAccess: true` | nothing: admin access takes no device away |
//! | with a `shareID` | a share, which consumes `consumedCapacity` |
//! | any other | the device is held exclusively |
//!
//! While the gate [`DraGate::ConsumableCapacity`] is off, a share counts as the whole device: a claim with a share,
//! allocated while the gate was on, holds the device exclusively.
//!
//! Source: `AllocatedState` of kube-scheduler 1.37.

use std::collections::BTreeMap;

use dra_attrs::{GateSet, Ix, Quantity, QuantityError};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};

use crate::config::gates::DraGate;
use crate::device::device_id::DeviceId;

/// Devices in use in a cluster. The default is the empty state of a cluster with [`DraGate::ConsumableCapacity`] on.
///
/// ```
/// use dra_alloc::{AllocatedState, DeviceId};
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
/// # Ok::<(), dra_alloc::StateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatedState {
    drivers: BTreeMap<String, BTreeMap<String, PoolUse>>,
    shares: Shares,
}

/// Treatment of device results with a `shareID`: as a share of the device, or as the whole device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shares {
    #[default]
    Apart,
    Exclusive,
}

/// Devices of one pool that are in use, by device name.
pub(crate) type PoolUse = BTreeMap<String, DeviceUse>;

/// Use of one device by claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceUse {
    /// Number of claims that hold the device exclusively; at most 1 in a consistent cluster.
    holders: u32,
    /// Number of allocation results with each share ID; 1 in a consistent cluster.
    shares: BTreeMap<String, u32>,
    /// Amount of each capacity that all shares together consume.
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

    /// Adds an amount to the consumed amount of a capacity. On overflow no further share fits.
    fn consume(&mut self, capacity: &str, amount: Quantity) {
        let sum = self.consumed.entry(capacity.to_owned()).or_insert(Quantity::ZERO);
        *sum = sum.checked_add(amount).unwrap_or_else(|| Quantity::from_nanos(i128::MAX, sum.format()));
    }

    /// Subtracts an amount from the consumed amount of a capacity. Does nothing if the capacity has no consumed amount.
    fn release(&mut self, capacity: &str, amount: Quantity) {
        if let Some(sum) = self.consumed.get_mut(capacity) {
            *sum = sum.checked_sub(amount).unwrap_or(Quantity::ZERO);
        }
    }
}

/// Reason why an allocation can't be added to the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A consumed capacity is not a valid quantity.
    #[error("devices.results[{index}].consumedCapacity[{capacity}] of device {device}: {source}")]
    ConsumedCapacity {
        /// Device of the allocation result.
        device: Box<DeviceId>,
        /// Index of the device result in its allocation.
        index: Ix<DeviceRequestAllocationResult>,
        /// Name of the capacity.
        capacity: String,
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
}

/// Effect of a device result on its device: none (admin access), exclusive use, or a share.
enum Holding {
    Nothing,
    Exclusive,
    Share { id: String, consumed: Vec<(String, Quantity)> },
}

impl Holding {
    fn from_result(
        result: &DeviceRequestAllocationResult,
        index: Ix<DeviceRequestAllocationResult>,
        shares: Shares,
    ) -> Result<Self, StateError> {
        if result.admin_access == Some(true) {
            return Ok(Self::Nothing);
        }
        let share = result.share_id.as_ref().filter(|_| shares == Shares::Apart);
        let Some(id) = share else { return Ok(Self::Exclusive) };
        let amounts = result.consumed_capacity.iter().flatten().map(|(capacity, amount)| {
            let amount = Quantity::from_kube(amount);
            amount.map(|amount| (capacity.clone(), amount)).map_err(|source| StateError::ConsumedCapacity {
                device: Box::new(DeviceId::new(&result.driver, &result.pool, &result.device)),
                index,
                capacity: capacity.clone(),
                source,
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
    /// Creates the empty state of a cluster whose scheduler has the feature gates `gates`.
    #[must_use]
    pub fn new(gates: GateSet<DraGate>) -> Self {
        let shares = if gates.has(DraGate::ConsumableCapacity) { Shares::Apart } else { Shares::Exclusive };
        Self { drivers: BTreeMap::new(), shares }
    }

    /// Creates the state of a cluster from its claims. `gates` are the gates of the scheduler. Claims without an
    /// allocation are ignored.
    ///
    /// # Errors
    /// A consumed capacity is not a quantity.
    pub fn from_claims<'c>(
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
        gates: GateSet<DraGate>,
    ) -> Result<Self, StateError> {
        let mut state = Self::new(gates);
        state.assume(claims.into_iter().filter_map(|claim| claim.status.as_ref()?.allocation.as_ref()))?;
        Ok(state)
    }

    /// Adds allocation results to the state, as a scheduler does between its decision and the write to the API server.
    /// A device or share that is added twice must be removed twice by [`AllocatedState::forget`].
    ///
    /// # Errors
    /// A consumed capacity is not a quantity. No result is counted then.
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

    /// Removes allocation results that [`AllocatedState::assume`] added. Results for devices that are not in use are
    /// ignored.
    ///
    /// # Errors
    /// A consumed capacity is not a quantity. No result is removed then.
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

    /// Marks a device as held exclusively by a claim.
    pub fn hold(&mut self, device: &DeviceId) {
        Holding::Exclusive.add_to(self.device_mut(&device.driver, &device.pool, &device.device));
    }

    /// Adds a share of a device. `share` is its ID. Does not add the capacity that the share consumes; see
    /// [`AllocatedState::consume`].
    pub fn share(&mut self, device: &DeviceId, share: &str) {
        let share = Holding::Share { id: share.to_owned(), consumed: Vec::new() };
        share.add_to(self.device_mut(&device.driver, &device.pool, &device.device));
    }

    /// Adds capacity that shares of a device consume.
    pub fn consume(&mut self, device: &DeviceId, capacity: &str, amount: Quantity) {
        self.device_mut(&device.driver, &device.pool, &device.device).consume(capacity, amount);
    }

    /// Returns true if a device is in use: held exclusively, shared, or with consumed capacity.
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

/// Returns every device result with its effect on its device. Parses all results first, so that an error changes
/// nothing.
fn holdings<'r>(
    results: impl IntoIterator<Item = &'r AllocationResult>,
    shares: Shares,
) -> Result<Vec<(&'r DeviceRequestAllocationResult, Holding)>, StateError> {
    let devices = results.into_iter().filter_map(|result| result.devices.as_ref()?.results.as_ref());
    let indexed = devices.flat_map(|devices| devices.iter().enumerate());
    indexed.map(|(index, result)| Ok((result, Holding::from_result(result, Ix::from(index), shares)?))).collect()
}
