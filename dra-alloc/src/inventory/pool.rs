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
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use super::device::DeviceFacts;
use super::flags::{Flags, bit};
use crate::features::{Feature, Features};

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
pub fn grouped<S: Deref<Target = ResourceSlice>>(slices: &mut [S]) -> impl Iterator<Item = &[S]> {
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
#[derive(Debug)]
pub struct Newest<'a, S> {
    seen: &'a [S],
    first: &'a S,
}

impl<S> Clone for Newest<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Newest<'_, S> {}

impl<'a, S: Deref<Target = ResourceSlice>> Newest<'a, S> {
    /// The newest of the slices of one pool; `None` for an empty list.
    #[must_use]
    pub fn of(seen: &'a [S]) -> Option<Self> {
        let generation = seen.iter().map(|slice| slice.spec.pool.generation).max()?;
        let first = seen.iter().find(|slice| slice.spec.pool.generation == generation)?;
        Some(Self { seen, first })
    }

    /// The driver of the pool.
    #[must_use]
    pub fn driver(self) -> &'a str {
        &self.first.spec.driver
    }

    /// The name of the pool.
    #[must_use]
    pub fn pool(self) -> &'a str {
        &self.first.spec.pool.name
    }

    /// The newest generation.
    #[must_use]
    pub fn generation(self) -> i64 {
        self.first.spec.pool.generation
    }

    /// How many slices the pool has, as the first of the newest says. The others may say something else.
    #[must_use]
    pub fn announced(self) -> i64 {
        self.first.spec.pool.resource_slice_count
    }

    /// The slices, in their order.
    pub fn slices(self) -> impl Iterator<Item = S> + Clone + use<'a, S>
    where
        S: Clone,
    {
        self.current().cloned()
    }

    /// How many of the newest slices there are.
    #[must_use]
    pub fn count(self) -> usize {
        self.current().count()
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
        let slices = || self.current().map(Deref::deref);
        counter_problem(slices(), slices())
    }

    /// Whether a number of slices is the announced one.
    pub(super) fn announces(self, number: usize) -> bool {
        i64::try_from(number) == Ok(self.announced())
    }

    fn current(self) -> impl Iterator<Item = &'a S> + Clone + use<'a, S> {
        let generation = self.generation();
        self.seen.iter().filter(move |slice| slice.spec.pool.generation == generation)
    }
}

/// Whether a pool can be allocated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolState {
    Complete,
    /// The driver is in the middle of an update.
    Incomplete,
    /// [`Pool::problem`] says why.
    Invalid,
}

/// A pool as one node sees it. At least one of the lists has a slice.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    features: Features,
    is_complete: bool,
    /// Slices whose devices the node can use, by name. None unless the pool is complete.
    slices: SmallVec<[Arc<ResourceSlice>; 1]>,
    /// Other slices with devices: they consume counters too.
    elsewhere: Vec<Arc<ResourceSlice>>,
    /// Slices with counter sets.
    counters: Vec<Arc<ResourceSlice>>,
    /// Of the devices that the node can use.
    facts: Box<[DeviceFacts]>,
    flags: Flags,
}

const INVALID: u8 = 1;
const BINDING_CONDITIONS: u8 = 2;

impl Pool {
    /// The pool of a slice, while not all of its slices are there.
    pub(super) fn incomplete(slice: Arc<ResourceSlice>, features: Features) -> Self {
        Self {
            features,
            is_complete: false,
            slices: SmallVec::new(),
            elsewhere: vec![slice],
            counters: Vec::new(),
            facts: Box::default(),
            flags: Flags::default(),
        }
    }

    /// A complete pool of the slices that are for the node and the others.
    pub(super) fn complete(
        own: impl Iterator<Item = Arc<ResourceSlice>>,
        others: impl Iterator<Item = Arc<ResourceSlice>>,
        features: Features,
    ) -> Self {
        let (mut slices, mut elsewhere, mut counters) = (SmallVec::new(), Vec::new(), Vec::new());
        let is_counters = |slice: &ResourceSlice| features.has(Feature::PartitionableDevices) && has_counters(slice);
        for slice in own {
            if is_counters(&slice) { counters.push(slice) } else { slices.push(slice) }
        }
        for slice in others {
            if is_counters(&slice) { counters.push(slice) } else { elsewhere.push(slice) }
        }
        slices.sort_by(|left: &Arc<_>, right: &Arc<_>| name_of(left).cmp(name_of(right)));
        let devices = slices.iter().flat_map(|slice| devices_of(slice));
        let facts = devices.map(|_| DeviceFacts::default()).collect();
        Self { features, is_complete: true, slices, elsewhere, counters, facts, flags: Flags::default() }
    }

    pub(crate) fn driver(&self) -> &str {
        self.any().map_or("", |slice| &slice.spec.driver)
    }

    pub(crate) fn name(&self) -> &str {
        self.any().map_or("", |slice| &slice.spec.pool.name)
    }

    fn any(&self) -> Option<&ResourceSlice> {
        self.all_slices().chain(self.counter_slices()).next()
    }

    /// The number of devices that the node can use.
    pub(crate) const fn len(&self) -> usize {
        self.facts.len()
    }

    /// All slices with devices, also those for other nodes.
    pub(crate) fn all_slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.slices.iter().chain(&self.elsewhere).map(|slice| &**slice)
    }

    /// The slices with counter sets.
    pub(crate) fn counter_slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.counters.iter().map(|slice| &**slice)
    }

    /// Finds what would be found when it is first asked for.
    pub(crate) fn look(&self) {
        self.flags();
        for (slice, facts) in self.known_devices() {
            for (device, facts) in devices_of(slice).iter().zip(facts) {
                facts.of(device);
            }
        }
    }

    /// Whether the pool can be allocated from. Looks at every device the first time.
    pub(crate) fn state(&self) -> PoolState {
        if self.flags() & INVALID != 0 {
            return PoolState::Invalid;
        }
        if self.is_complete { PoolState::Complete } else { PoolState::Incomplete }
    }

    /// Whether there is a device that has to be bound before it can be used. Looks at every device the first time.
    pub(crate) fn has_binding_conditions(&self) -> bool {
        self.flags() & BINDING_CONDITIONS != 0
    }

    /// The slices whose devices the node can use, with what is known of each device.
    pub(crate) fn known_devices(&self) -> impl Iterator<Item = (&ResourceSlice, &[DeviceFacts])> {
        let mut rest = &*self.facts;
        self.slices.iter().map(move |slice| {
            let (own, others) = rest.split_at_checked(devices_of(slice).len()).unwrap_or((rest, &[]));
            rest = others;
            (&**slice, own)
        })
    }

    /// Why the parts of the pool do not fit together, if all are there and do not.
    pub(crate) fn problem(&self) -> Option<PoolProblem> {
        if !self.is_complete {
            return None;
        }
        let has_counters = self.features.has(Feature::PartitionableDevices);
        let counter_problem =
            || if has_counters { counter_problem(self.counter_slices(), self.all_slices()) } else { None };
        duplicate_device(&self.slices).or_else(counter_problem)
    }

    fn flags(&self) -> u8 {
        self.flags.get_or_find(|| {
            let mut devices = self.slices.iter().flat_map(|slice| devices_of(slice));
            let has_binding_conditions = devices.any(|device| device.binding_conditions.is_some());
            bit(self.problem().is_some(), INVALID) | bit(has_binding_conditions, BINDING_CONDITIONS)
        })
    }
}

fn pool_of(slice: &ResourceSlice) -> (&str, &str) {
    (&slice.spec.driver, &slice.spec.pool.name)
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

fn duplicate_device(slices: &[Arc<ResourceSlice>]) -> Option<PoolProblem> {
    // Drivers mostly list their devices by name; then there is nothing to remember.
    if ascend(slices) {
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut names = slices.iter().flat_map(|slice| devices_of(slice)).map(|device| &device.name);
    names.find(|name| !seen.insert(*name)).map(|name| PoolProblem::DuplicateDevice { device: name.clone() })
}

/// Whether each device's name is greater than that of the one before.
fn ascend(slices: &[Arc<ResourceSlice>]) -> bool {
    let mut last = None;
    slices.iter().map(|slice| devices_of(slice)).filter(|devices| !devices.is_empty()).all(|devices| {
        let before = last.replace(devices);
        let follows =
            before.and_then(<[_]>::last).zip(devices.first()).is_none_or(|(last, first)| last.name < first.name);
        follows && devices.is_sorted_by(|left, right| left.name < right.name)
    })
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

pub(super) fn has_counters(slice: &ResourceSlice) -> bool {
    slice.spec.shared_counters.as_ref().is_some_and(|sets| !sets.is_empty())
}
