//! What a pool is worth on one node: which of its slices are the newest, whether all of them have been seen, and whether
//! they fit together.
//!
//! A pool is a driver's set of devices that is published and replaced as a whole, in slices with one generation number.
//!
//! - Only the slices of the highest generation seen on the node count.
//! - The pool is *complete* when their number is the count that the first of them states. If it is not, slices for other
//!   nodes are looked at too; if there is one of a higher generation, the node's slices are obsolete and the pool is not
//!   there at all.
//! - The pool is *invalid* when its parts contradict each other ([`PoolProblem`]).
//!
//! Pools come sorted by driver and name, those with binding conditions last. A pool's slices come sorted by name.
//!
//! [`grouped`] and [`Newest`] are the same rules for any set of slices, whatever node they are for.
//!
//! Source: `GatherPools` of kube-scheduler 1.37.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::Inventory;
use crate::features::{Feature, Features};
use crate::node::{NodeSelectorError, Scope};

/// Why no device of a pool can be allocated although all its slices are there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum PoolProblem {
    /// Two devices have the same name.
    #[error("duplicate device name {device}")]
    DuplicateDevice {
        /// The name.
        device: String,
    },
    /// Two counter sets have the same name.
    #[error("duplicate counter set name {counter_set}")]
    DuplicateCounterSet {
        /// The name.
        counter_set: String,
    },
    /// A device consumes a counter set that the pool does not have.
    #[error("device {device}: counter set {counter_set} not found")]
    UnknownCounterSet {
        /// The device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
    },
    /// A device consumes a counter that its counter set does not have.
    #[error("device {device}: counter {counter} not found in counter set {counter_set}")]
    UnknownCounter {
        /// The device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
        /// Name of the counter.
        counter: String,
    },
}

/// Slices by pool: sorted by driver and pool, those of one pool in the order given.
///
/// ```
/// use dra_alloc::inventory::pool::grouped;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let slice = |pool: &str| {
///     let mut slice = ResourceSlice::default();
///     slice.spec.pool.name = pool.into();
///     slice
/// };
/// let slices = [slice("b"), slice("a"), slice("b")];
/// let mut slices: Vec<&ResourceSlice> = slices.iter().collect();
/// let sizes: Vec<usize> = grouped(&mut slices).map(<[_]>::len).collect();
/// assert_eq!(sizes, [1, 2]);
/// ```
pub fn grouped<'a, 's>(slices: &'a mut [&'s ResourceSlice]) -> impl Iterator<Item = &'a [&'s ResourceSlice]> {
    // Stable: the slices of a pool stay in their order.
    slices.sort_by(|left, right| pool_of(left).cmp(&pool_of(right)));
    slices.chunk_by(|left, right| pool_of(left) == pool_of(right))
}

/// The slices of one pool that count: those of the newest generation among the slices seen.
///
/// A driver that updates a pool publishes slices of the next generation, and deletes the old ones later. A number of
/// slices other than the announced one means that the driver is not done, or that the rest is not in sight.
///
/// ```
/// use dra_alloc::inventory::pool::Newest;
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
/// let newest = Newest::of(&seen).unwrap();
/// assert_eq!((newest.generation(), newest.count(), newest.announced()), (2, 1, 2));
/// assert!(!newest.is_complete());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Newest<'a, 's> {
    seen: &'a [&'s ResourceSlice],
    first: &'s ResourceSlice,
}

impl<'a, 's> Newest<'a, 's> {
    /// The newest of the slices of one pool; none of none.
    #[must_use]
    pub fn of(seen: &'a [&'s ResourceSlice]) -> Option<Self> {
        let generation = seen.iter().map(|slice| slice.spec.pool.generation).max()?;
        let first = seen.iter().copied().find(|slice| slice.spec.pool.generation == generation)?;
        Some(Self { seen, first })
    }

    /// The driver of the pool.
    #[must_use]
    pub fn driver(self) -> &'s str {
        &self.first.spec.driver
    }

    /// The name of the pool.
    #[must_use]
    pub fn pool(self) -> &'s str {
        &self.first.spec.pool.name
    }

    /// The newest generation.
    #[must_use]
    pub const fn generation(self) -> i64 {
        self.first.spec.pool.generation
    }

    /// How many slices the pool has, as the first of the newest says. The others may say something else.
    #[must_use]
    pub const fn announced(self) -> i64 {
        self.first.spec.pool.resource_slice_count
    }

    /// The slices, in their order.
    pub fn slices(self) -> impl Iterator<Item = &'s ResourceSlice> + Clone + use<'a, 's> {
        self.seen.iter().copied().filter(move |slice| slice.spec.pool.generation == self.generation())
    }

    /// How many of the newest slices there are.
    #[must_use]
    pub fn count(self) -> usize {
        self.slices().count()
    }

    /// Whether that is the announced number. kube-scheduler allocates from no other pool.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.announces(self.count())
    }

    /// What is wrong with the counter sets of the pool: the first of its devices that consumes what is not there, or a
    /// counter set that is there twice.
    #[must_use]
    pub fn counter_problem(self) -> Option<PoolProblem> {
        counter_problem(self.slices(), self.slices())
    }

    fn announces(self, number: usize) -> bool {
        i64::try_from(number) == Ok(self.announced())
    }
}

/// Whether a pool can be allocated from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PoolState {
    Complete,
    /// The driver is in the middle of an update.
    Incomplete,
    Invalid(PoolProblem),
}

/// A pool as one node sees it. Whether its parts fit together is found by [`Pool::checked_state`].
#[derive(Clone, Debug)]
pub(crate) struct Pool<'i> {
    pub(crate) driver: &'i str,
    pub(crate) name: &'i str,
    state: PoolState,
    /// Slices whose devices the node can use, by name. None unless the pool is complete.
    pub(crate) slices: Vec<&'i ResourceSlice>,
    /// Other slices with devices: they consume counters too.
    pub(crate) elsewhere: Vec<&'i ResourceSlice>,
    /// Slices with counter sets.
    pub(crate) counters: Vec<&'i ResourceSlice>,
}

impl<'i> Pool<'i> {
    /// The pool of a slice, without slices.
    fn of(slice: &'i ResourceSlice, state: PoolState) -> Self {
        let (slices, elsewhere, counters) = (Vec::new(), Vec::new(), Vec::new());
        Self { driver: &slice.spec.driver, name: &slice.spec.pool.name, state, slices, elsewhere, counters }
    }

    /// Whether the pool can be allocated from; looks at every device.
    pub(crate) fn checked_state(&self, features: Features) -> PoolState {
        self.problem(features).map_or_else(|| self.state.clone(), PoolState::Invalid)
    }

    pub(crate) fn has_binding_conditions(&self) -> bool {
        self.slices.iter().flat_map(|slice| devices_of(slice)).any(|device| device.binding_conditions.is_some())
    }

    /// Whether the parts of the pool fit together.
    fn problem(&self, features: Features) -> Option<PoolProblem> {
        duplicate_device(&self.slices)
            .or_else(|| if features.has(Feature::PartitionableDevices) { self.counter_problem() } else { None })
    }

    fn counter_problem(&self) -> Option<PoolProblem> {
        counter_problem(self.counters.iter().copied(), self.slices.iter().chain(&self.elsewhere).copied())
    }
}

/// Whether the devices of slices consume counters that other slices have.
fn counter_problem<'s>(
    counters: impl Iterator<Item = &'s ResourceSlice>,
    slices: impl Iterator<Item = &'s ResourceSlice>,
) -> Option<PoolProblem> {
    let mut sets = BTreeMap::new();
    for set in counters.flat_map(|slice| slice.spec.shared_counters.iter().flatten()) {
        if sets.insert(set.name.as_str(), set).is_some() {
            return Some(PoolProblem::DuplicateCounterSet { counter_set: set.name.clone() });
        }
    }
    for device in slices.flat_map(devices_of) {
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

fn duplicate_device(slices: &[&ResourceSlice]) -> Option<PoolProblem> {
    let names = || slices.iter().flat_map(|slice| devices_of(slice)).map(|device| device.name.as_str());
    // Drivers mostly list their devices by name; then there is nothing to remember.
    if names().is_sorted_by(|left, right| left < right) {
        return None;
    }
    let mut seen = BTreeSet::new();
    names().find(|name| !seen.insert(*name)).map(|name| PoolProblem::DuplicateDevice { device: name.to_owned() })
}

/// The devices of a slice.
#[must_use]
pub fn devices_of(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

/// The name of a slice.
pub(crate) fn name_of(slice: &ResourceSlice) -> &str {
    slice.metadata.name.as_deref().unwrap_or_default()
}

fn has_counters(slice: &ResourceSlice) -> bool {
    slice.spec.shared_counters.as_ref().is_some_and(|sets| !sets.is_empty())
}

/// A slice whose node selector, or that of a device, can't be used.
#[derive(Clone, Debug)]
pub(crate) struct SliceError<'i> {
    pub(crate) slice: &'i ResourceSlice,
    pub(crate) device: Option<&'i Device>,
    pub(crate) error: NodeSelectorError,
}

impl Inventory {
    /// The pools that a node sees, by driver and name. They are not looked into.
    pub(crate) fn pools_on(&self, node: &Node, features: Features) -> Result<Vec<Pool<'_>>, Box<SliceError<'_>>> {
        let mut relevant: Vec<&ResourceSlice> = Vec::new();
        for slice in self.slices_for(node.metadata.name.as_deref().unwrap_or_default()) {
            if is_relevant(slice, node, features)? {
                relevant.push(slice);
            }
        }
        Ok(grouped(&mut relevant).filter_map(|slices| self.pool(slices, features)).collect())
    }

    /// The pool made of the slices that target a node; none if they are obsolete.
    fn pool<'i>(&'i self, seen: &[&'i ResourceSlice], features: Features) -> Option<Pool<'i>> {
        let newest = Newest::of(seen)?;
        let (first, generation) = (newest.first, newest.generation());
        if newest.is_complete() {
            return Some(complete(first, newest.slices(), [], features));
        }
        let all = || self.pool_slices(&first.spec.driver, &first.spec.pool.name);
        if all().any(|slice| slice.spec.pool.generation > generation) {
            return None;
        }
        let current = || all().filter(|slice| slice.spec.pool.generation == generation);
        if !newest.announces(current().count()) {
            return Some(Pool::of(first, PoolState::Incomplete));
        }
        let targeting: BTreeSet<_> = newest.slices().map(std::ptr::from_ref).collect();
        let others = current().filter(|slice| !targeting.contains(&std::ptr::from_ref(*slice)));
        Some(complete(first, newest.slices(), others, features))
    }
}

fn pool_of(slice: &ResourceSlice) -> (&str, &str) {
    (&slice.spec.driver, &slice.spec.pool.name)
}

/// A complete pool of the slices that target the node and the others.
fn complete<'i>(
    first: &'i ResourceSlice,
    slices: impl Iterator<Item = &'i ResourceSlice>,
    others: impl IntoIterator<Item = &'i ResourceSlice>,
    features: Features,
) -> Pool<'i> {
    let mut pool = Pool::of(first, PoolState::Complete);
    let is_counters = |slice: &ResourceSlice| features.has(Feature::PartitionableDevices) && has_counters(slice);
    for slice in slices {
        if is_counters(slice) { pool.counters.push(slice) } else { pool.slices.push(slice) }
    }
    for slice in others {
        if is_counters(slice) { pool.counters.push(slice) } else { pool.elsewhere.push(slice) }
    }
    pool.slices.sort_by_key(|slice| name_of(slice));
    pool
}

/// Whether a node needs to know a slice.
fn is_relevant<'i>(slice: &'i ResourceSlice, node: &Node, features: Features) -> Result<bool, Box<SliceError<'i>>> {
    let spec = &slice.spec;
    if !features.has(Feature::PartitionableDevices) && (spec.per_device_node_selection.is_some() || has_counters(slice))
    {
        return Ok(false);
    }
    let failed = |device, error| Box::new(SliceError { slice, device, error });
    match Scope::of_slice(spec) {
        Scope::Unknown if spec.per_device_node_selection == Some(true) => {
            for device in devices_of(slice) {
                if Scope::of_device(device).matches(node).map_err(|error| failed(Some(device), error))? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        scope => scope.matches(node).map_err(|error| failed(None, error)),
    }
}
