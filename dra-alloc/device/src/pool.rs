//! State of a resource pool: its latest generation, completeness and consistency.
//!
//! A pool is a driver's set of devices that is published and replaced as a whole, in slices with one generation number.
//!
//! - Only the slices of the highest generation seen on the node count.
//! - The pool is *complete* if their number equals the `resourceSliceCount` of the first of them. If not, slices for
//!   other nodes are read too; if one of them has a higher generation, the node's slices are obsolete and the node has
//!   no such pool.
//! - The pool is *invalid* if its parts contradict each other ([`PoolProblem`]).
//!
//! [`group_by_pool`] and [`LatestGeneration`] apply these rules to any set of slices, independently of nodes.
//! [`validate_pool`] finds mistakes of a driver that no single slice shows.
//!
//! Source: `GatherPools` of kube-scheduler 1.37.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use k8s_openapi::api::resource::v1::ResourceSlice;
use serde::Serialize;

pub use crate::pool_check::{PoolFinding, PoolMistake, validate_pool};
pub use crate::slice::slice_devices;

/// Contradiction within a complete pool. No device of the pool can be allocated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum PoolProblem {
    /// Two devices of the pool have the same name.
    DuplicateDevice {
        /// Name of the devices.
        device: String,
    },
    /// Two counter sets of the pool have the same name.
    DuplicateCounterSet {
        /// Name of the counter sets.
        counter_set: String,
    },
    /// A device consumes from a counter set that the pool does not have.
    UnknownCounterSet {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
    },
    /// A device consumes a counter that its counter set does not have.
    UnknownCounter {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
        /// Name of the counter.
        counter: String,
    },
}

impl fmt::Display for PoolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateDevice { device } => write!(f, "duplicate device name {device}"),
            Self::DuplicateCounterSet { counter_set } => write!(f, "duplicate counter set name {counter_set}"),
            Self::UnknownCounterSet { device, counter_set } => {
                write!(f, "device {device}: counter set {counter_set} not found")
            }
            Self::UnknownCounter { device, counter_set, counter } => {
                write!(f, "device {device}: counter {counter} not found in counter set {counter_set}")
            }
        }
    }
}

/// Groups slices by pool. Pools are sorted by driver and pool name; the slices of a pool keep their order.
///
/// ```
/// use dra_device::pool::group_by_pool;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let slice = |pool: &str| {
///     let mut slice = ResourceSlice::default();
///     slice.spec.pool.name = pool.into();
///     slice
/// };
/// let slices = [slice("b"), slice("a"), slice("b")];
/// let mut slices: Vec<&ResourceSlice> = slices.iter().collect();
/// let sizes: Vec<usize> = group_by_pool(&mut slices).map(<[_]>::len).collect();
/// assert_eq!(sizes, [1, 2]);
/// ```
pub fn group_by_pool<S: Deref<Target = ResourceSlice>>(slices: &mut [S]) -> impl Iterator<Item = &[S]> {
    // Stable: the slices of a pool stay in their order.
    slices.sort_by(|left, right| pool_of(left).cmp(&pool_of(right)));
    slices.chunk_by(|left, right| pool_of(left) == pool_of(right))
}

/// Slices of the latest generation of one pool, among the slices that a node sees.
///
/// A driver that updates a pool publishes slices of the next generation, and deletes the old ones later. A number of
/// slices other than [`LatestGeneration::expected_slice_count`] means that the driver is not done, or that other slices
/// are not visible here.
///
/// ```
/// use dra_device::pool::LatestGeneration;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let slice = |generation: i64| {
///     let mut slice = ResourceSlice::default();
///     slice.spec.pool.generation = generation;
///     slice.spec.pool.resource_slice_count = 2;
///     slice
/// };
/// let slices = [slice(1), slice(2), slice(1)];
/// let seen: Vec<&ResourceSlice> = slices.iter().collect();
/// let newest = LatestGeneration::from_slices(&seen).unwrap();
/// assert_eq!((newest.generation(), newest.count(), newest.expected_slice_count()), (2, 1, 2));
/// assert!(!newest.is_complete());
/// ```
#[derive(Debug)]
pub struct LatestGeneration<'a, S> {
    seen: &'a [S],
    first: &'a S,
}

impl<S> Clone for LatestGeneration<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for LatestGeneration<'_, S> {}

impl<'a, S: Deref<Target = ResourceSlice>> LatestGeneration<'a, S> {
    /// Selects the slices of the latest generation from those of one pool; `None` for an empty list.
    #[must_use]
    pub fn from_slices(seen: &'a [S]) -> Option<Self> {
        let generation = seen.iter().map(|slice| slice.spec.pool.generation).max()?;
        let first = seen.iter().find(|slice| slice.spec.pool.generation == generation)?;
        Some(Self { seen, first })
    }

    /// Returns the driver of the pool.
    #[must_use]
    pub fn driver(self) -> &'a str {
        &self.first.spec.driver
    }

    /// Returns the name of the pool.
    #[must_use]
    pub fn pool(self) -> &'a str {
        &self.first.spec.pool.name
    }

    /// Returns the number of the latest generation.
    #[must_use]
    pub fn generation(self) -> i64 {
        self.first.spec.pool.generation
    }

    /// Returns `resourceSliceCount` of the first slice of the latest generation. Other slices may disagree.
    #[must_use]
    pub fn expected_slice_count(self) -> i64 {
        self.first.spec.pool.resource_slice_count
    }

    /// Returns the slices of the latest generation, in the order of the input.
    pub fn slices(self) -> impl Iterator<Item = S> + Clone + use<'a, S>
    where
        S: Clone,
    {
        self.current().cloned()
    }

    /// Returns the number of slices of the latest generation.
    #[must_use]
    pub fn count(self) -> usize {
        self.current().count()
    }

    /// Returns true if no slice of the latest generation is missing. kube-scheduler allocates only from complete pools.
    #[must_use]
    pub fn is_complete(self) -> bool {
        i64::try_from(self.count()) == Ok(self.expected_slice_count())
    }

    fn current(self) -> impl Iterator<Item = &'a S> + Clone + use<'a, S> {
        let generation = self.generation();
        self.seen.iter().filter(move |slice| slice.spec.pool.generation == generation)
    }
}

fn pool_of(slice: &ResourceSlice) -> (&str, &str) {
    (&slice.spec.driver, &slice.spec.pool.name)
}

/// Returns the first problem of a device that consumes from a counter set or counter that the pool does not define.
#[doc(hidden)]
pub fn counter_problem<'s>(
    counters: impl Iterator<Item = &'s ResourceSlice>,
    slices: impl Iterator<Item = &'s ResourceSlice>,
) -> Option<PoolProblem> {
    let mut sets = BTreeMap::new();
    for set in counters.flat_map(|slice| slice.spec.shared_counters.iter().flatten()) {
        if sets.insert(set.name.as_str(), set).is_some() {
            return Some(PoolProblem::DuplicateCounterSet { counter_set: set.name.clone() });
        }
    }
    for device in slices.flat_map(slice_devices) {
        for consumption in device.consumes_counters.iter().flatten() {
            let missing = |counter_set: &str| (device.name.clone(), counter_set.to_owned());
            let Some(set) = sets.get(consumption.counter_set.as_str()) else {
                let (device, counter_set) = missing(&consumption.counter_set);
                return Some(PoolProblem::UnknownCounterSet { device, counter_set });
            };
            if let Some(counter) = consumption.counters.keys().find(|name| !set.counters.contains_key(*name)) {
                let (device, counter_set) = missing(&consumption.counter_set);
                return Some(PoolProblem::UnknownCounter { device, counter_set, counter: counter.clone() });
            }
        }
    }
    None
}
