//! The larger use of two states: of each device, each capacity and each counter the larger of two amounts. A search on it finds
//! nothing that is not free in both.
//!
//! Devices and capacities are merged one by one. A counter is shared by many devices, so that the larger amount is none of any
//! device: a pool whose use differs keeps both uses, and its counters are counted in each.

use std::sync::Arc;

use super::pool_use::PoolUse;
use super::{AllocatedState, HeldTwice};
use crate::cluster::stamp::Stamp;
use crate::cluster::trie::hash;

impl AllocatedState {
    /// Returns the larger use of two states, of one cluster at two times, say: a device is in use if it is in one of the two, and of
    /// each capacity and counter the larger amount is consumed. A claim that finds devices beside it finds them free in both
    /// states. The claims are those of this state.
    ///
    /// With 4 counters, of which a device in use consumes 3 now and another one 2 later, 1 is left, and not less than nothing.
    ///
    /// ```
    /// use dra_alloc::{AllocatedState, DeviceId};
    ///
    /// let [victim, wanted, free] = [0, 1, 2].map(|number| DeviceId::new("gpu.example.com", "node-1", &format!("gpu-{number}")));
    /// let (mut now, mut after) = (AllocatedState::default(), AllocatedState::default());
    /// now.hold(&victim);
    /// after.hold(&wanted);
    /// let seen = now.max_state(&after);
    /// assert!(seen.is_allocated(&victim) && seen.is_allocated(&wanted) && !seen.is_allocated(&free));
    /// ```
    ///
    /// # Complexity
    /// Linear in the devices in use of the pools whose use differs.
    #[must_use]
    pub fn max_state(&self, other: &Self) -> Self {
        let mut larger = self.clone();
        for (key, pool) in self.pools.differences(&other.pools) {
            match self.pool_hashed(key, &pool.driver, &pool.pool) {
                Some(own) if std::ptr::eq(own, pool) => {
                    if other.pool_hashed(key, &pool.driver, &pool.pool).is_none() {
                        larger.raise(key, Some(own), &PoolUse::new(&pool.driver, &pool.pool));
                    }
                }
                own => larger.raise(key, own, pool),
            }
        }
        larger
    }

    /// Raises the use of a pool to another one where that is larger.
    fn raise(&mut self, key: u64, own: Option<&PoolUse>, other: &PoolUse) {
        // A pool that only one of the states uses is no less used in the other one if amounts are negative.
        let unused = PoolUse::new(&other.driver, &other.pool);
        let raised = PoolUse::larger(own.unwrap_or(&unused), other);
        for usage in raised.twice().filter(|usage| !own.is_some_and(|own| own.is_twice(usage.name()))) {
            let [driver, pool] = [&raised.driver, &raised.pool].map(Arc::clone);
            let twice = HeldTwice { driver, pool, device: Arc::clone(&usage.name) };
            self.held_twice.insert(hash(twice.texts()), twice);
        }
        self.devices = self.devices + raised.len() - own.map_or(0, PoolUse::len);
        self.stamp = Stamp::next();
        self.pools.remove(key, |known| known.is(&raised.driver, &raised.pool));
        self.pools.insert(key, Arc::new(raised));
    }
}
