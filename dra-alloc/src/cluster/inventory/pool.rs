//! State of a resource pool as seen by one node: its latest generation, completeness and consistency.
//!
//! A pool is a driver's set of devices that is published and replaced as a whole, in slices with one generation number.
//!
//! - Only the slices of the highest generation seen on the node count.
//! - The pool is *complete* if their number equals the `resourceSliceCount` of the first of them. If not, slices for
//!   other nodes are read too; if one of them has a higher generation, the node's slices are obsolete and the node has
//!   no such pool.
//! - The pool is *invalid* if its parts contradict each other ([`PoolProblem`]).
//!
//! Pools are sorted by driver and name, those with binding conditions last. A pool's slices are sorted by name.
//!
//! [`group_by_pool`] and [`LatestGeneration`] apply these rules to any set of slices, independently of nodes.
//!
//! Source: `GatherPools` of kube-scheduler 1.37.

use dra_attrs::GateSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use serde::Serialize;
use smallvec::SmallVec;

use super::device::DeviceFacts;
use super::flags::{Flags, bit};
use super::pool_devices::PoolDevices;
use crate::cluster::stamp::Stamp;
use crate::config::gates::DraGate;
use crate::device::slice::name_of;
pub use crate::device::slice::slice_devices;

/// Contradiction within a complete pool. No device of the pool can be allocated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum PoolProblem {
    /// Two devices of the pool have the same name.
    #[error("duplicate device name {device}")]
    DuplicateDevice {
        /// Name of the devices.
        device: String,
    },
    /// Two counter sets of the pool have the same name.
    #[error("duplicate counter set name {counter_set}")]
    DuplicateCounterSet {
        /// Name of the counter sets.
        counter_set: String,
    },
    /// A device consumes from a counter set that the pool does not have.
    #[error("device {device}: counter set {counter_set} not found")]
    UnknownCounterSet {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
    },
    /// A device consumes a counter that its counter set does not have.
    #[error("device {device}: counter {counter} not found in counter set {counter_set}")]
    UnknownCounter {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
        /// Name of the counter.
        counter: String,
    },
}

/// Groups slices by pool. Pools are sorted by driver and pool name; the slices of a pool keep their order.
///
/// ```
/// use dra_alloc::pool::group_by_pool;
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
/// use dra_alloc::pool::LatestGeneration;
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
        self.expects(self.count())
    }

    /// Returns the first problem of the pool's counter sets: a device that consumes from a missing set or counter, or a
    /// counter set that exists twice.
    #[must_use]
    pub fn counter_problem(self) -> Option<PoolProblem> {
        let slices = || self.current().map(Deref::deref);
        counter_problem(slices(), slices())
    }

    /// Returns true if the latest generation should have exactly `number` slices; see `expected_slice_count`.
    pub(super) fn expects(self, number: usize) -> bool {
        i64::try_from(number) == Ok(self.expected_slice_count())
    }

    fn current(self) -> impl Iterator<Item = &'a S> + Clone + use<'a, S> {
        let generation = self.generation();
        self.seen.iter().filter(move |slice| slice.spec.pool.generation == generation)
    }
}

/// State of a pool that decides if devices can be allocated from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolState {
    Complete,
    /// Some slices of the latest generation are missing: the driver is in the middle of an update.
    Incomplete,
    /// The slices of the pool contradict each other; see [`Pool::problem`].
    Invalid,
}

/// Resource pool as seen by one node.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    gates: GateSet<DraGate>,
    is_complete: bool,
    /// Devices that the node can use. Empty unless the pool is complete.
    devices: Arc<PoolDevices>,
    /// Slices with devices for other nodes, which consume counters of the pool too.
    elsewhere: Vec<Arc<ResourceSlice>>,
    /// Slices that define counter sets.
    counters: Vec<Arc<ResourceSlice>>,
    /// Facts about the devices that the node can use.
    facts: Box<[DeviceFacts]>,
    flags: Flags,
    soundness: Flags,
    /// Hash of driver and pool name.
    hash: u64,
    /// Mark of the slices that make the pool.
    stamp: Stamp,
}

const INVALID: u8 = 1;
const BINDING_CONDITIONS: u8 = 2;
const SOUND: u8 = 1;
const PLAIN: u8 = 2;
const UNIFORM: u8 = 4;

impl Pool {
    /// Builds a pool that is known to be incomplete, from the slices that are there. `hash` is that of driver and pool name.
    pub(super) fn incomplete(
        hash: u64,
        slices: impl Iterator<Item = Arc<ResourceSlice>>,
        gates: GateSet<DraGate>,
    ) -> Self {
        Self {
            gates,
            is_complete: false,
            devices: Arc::default(),
            elsewhere: slices.collect(),
            counters: Vec::new(),
            facts: Box::default(),
            flags: Flags::default(),
            soundness: Flags::default(),
            hash,
            stamp: Stamp::next(),
        }
    }

    /// Builds a complete pool from the slices for the node and those for other nodes. `hash` is that of driver and pool
    /// name.
    pub(super) fn complete(
        hash: u64,
        own: impl Iterator<Item = Arc<ResourceSlice>>,
        others: impl Iterator<Item = Arc<ResourceSlice>>,
        gates: GateSet<DraGate>,
    ) -> Self {
        let (mut slices, mut elsewhere, mut counters) = (SmallVec::new(), Vec::new(), Vec::new());
        let is_counters = |slice: &ResourceSlice| gates.has(DraGate::PartitionableDevices) && has_counters(slice);
        for slice in own {
            if is_counters(&slice) { counters.push(slice) } else { slices.push(slice) }
        }
        for slice in others {
            if is_counters(&slice) { counters.push(slice) } else { elsewhere.push(slice) }
        }
        slices.sort_by(|left: &Arc<_>, right: &Arc<_>| name_of(left).cmp(name_of(right)));
        let devices = Arc::new(PoolDevices::new(slices));
        let facts = std::iter::repeat_with(DeviceFacts::default).take(devices.len()).collect();
        let (flags, soundness) = (Flags::default(), Flags::default());
        let stamp = Stamp::next();
        Self { gates, is_complete: true, devices, elsewhere, counters, facts, flags, soundness, hash, stamp }
    }

    /// Returns the hash of driver and pool name.
    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the mark of the slices that make the pool.
    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns the devices that the node can use.
    pub(crate) const fn devices(&self) -> &Arc<PoolDevices> {
        &self.devices
    }

    /// Returns the slice with devices that the node can use, by its number.
    pub(crate) fn slice(&self, number: usize) -> Option<&ResourceSlice> {
        self.devices.slices.get(number).map(|slice| &**slice)
    }

    /// Returns the slice with all devices that the node can use, if there is only one.
    pub(crate) fn only_slice(&self) -> Option<&ResourceSlice> {
        match &*self.devices.slices {
            [slice] => Some(slice),
            _ => None,
        }
    }

    /// Returns the facts about a device, by its number among all devices of the pool that the node can use.
    pub(crate) fn facts(&self, device: usize) -> Option<&DeviceFacts> {
        self.facts.get(device)
    }

    /// Returns true if all devices that the node can use have valid attributes and capacities only. Reads every device
    /// on first use.
    pub(crate) fn is_sound(&self) -> bool {
        self.soundness() & SOUND != 0
    }

    /// Returns true if, beyond that, no device has a capacity that must be computed, consumes counters, can be shared, or
    /// is for some of the nodes alone that see its slice. Reads every device on first use.
    pub(crate) fn is_plain(&self) -> bool {
        self.soundness() & PLAIN != 0
    }

    /// Returns true if, beyond that, the devices differ in nothing but names, attributes and capacities: none has a taint or
    /// binding conditions, no slice skips node operations, and the pool has no counters. Reads every device on first use.
    pub(crate) fn is_uniform(&self) -> bool {
        self.soundness() & UNIFORM != 0
    }

    fn soundness(&self) -> u8 {
        self.soundness.get_or_find(|| {
            let facts = || self.known_devices().flat_map(|(slice, facts)| slice_devices(slice).iter().zip(facts));
            let is_sound = facts().all(|(device, facts)| facts.look(device).is_sound());
            let is_plain = |(device, facts): (&Device, &DeviceFacts)| {
                facts.look(device).has_plain_capacities()
                    && device.allow_multiple_allocations != Some(true)
                    && device.consumes_counters.as_ref().is_none_or(Vec::is_empty)
            };
            let for_its_nodes = |slice: &Arc<ResourceSlice>| slice.spec.per_device_node_selection != Some(true);
            let is_plain = is_sound && self.devices.slices.iter().all(for_its_nodes) && facts().all(is_plain);
            let is_bare = |device: &Device| {
                device.taints.as_ref().is_none_or(Vec::is_empty) && device.binding_conditions.is_none()
            };
            let is_uniform = is_plain
                && self.counters.is_empty()
                && self.devices.slices.iter().all(|slice| slice.spec.skip_node_operations.is_none())
                && self.devices.iter().all(is_bare);
            bit(is_sound, SOUND) | bit(is_plain, PLAIN) | bit(is_uniform, UNIFORM)
        })
    }

    /// Returns `driver/pool`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.driver(), self.name())
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

    /// Returns the number of slices of the pool that are there, on any node.
    pub(crate) fn slices_there(&self) -> usize {
        self.all_slices().chain(self.counter_slices()).count()
    }

    /// Returns the number of slices that the pool announces, by its first slice.
    pub(crate) fn slices_announced(&self) -> i64 {
        self.any().map_or(0, |slice| slice.spec.pool.resource_slice_count)
    }

    /// Returns the number of devices that the node can use.
    pub(crate) const fn len(&self) -> usize {
        self.facts.len()
    }

    /// Returns all slices with devices, including those for other nodes.
    pub(crate) fn all_slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.devices.slices.iter().chain(&self.elsewhere).map(|slice| &**slice)
    }

    /// Returns the slices that define counter sets.
    pub(crate) fn counter_slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.counters.iter().map(|slice| &**slice)
    }

    /// Computes all facts about the pool and its devices now, instead of on first use.
    pub(crate) fn look(&self) {
        self.flags();
        self.is_sound();
    }

    /// Returns the state of the pool: complete, incomplete or invalid. Reads every device on first use.
    pub(crate) fn state(&self) -> PoolState {
        if self.flags() & INVALID != 0 {
            return PoolState::Invalid;
        }
        if self.is_complete { PoolState::Complete } else { PoolState::Incomplete }
    }

    /// Returns true if a device has binding conditions. Reads every device on first use.
    pub(crate) fn has_binding_conditions(&self) -> bool {
        self.flags() & BINDING_CONDITIONS != 0
    }

    /// Returns the slices with devices that the node can use, each with the facts about its devices.
    pub(crate) fn known_devices(&self) -> impl Iterator<Item = (&ResourceSlice, &[DeviceFacts])> {
        let mut rest = &*self.facts;
        self.devices.slices.iter().map(move |slice| {
            let (own, others) = rest.split_at_checked(slice_devices(slice).len()).unwrap_or((rest, &[]));
            rest = others;
            (&**slice, own)
        })
    }

    /// Returns the contradiction between the slices of a complete pool, if there is one.
    pub(crate) fn problem(&self) -> Option<PoolProblem> {
        if !self.is_complete {
            return None;
        }
        let has_counters = self.gates.has(DraGate::PartitionableDevices);
        let counter_problem =
            || if has_counters { counter_problem(self.counter_slices(), self.all_slices()) } else { None };
        duplicate_device(&self.devices.slices).or_else(counter_problem)
    }

    fn flags(&self) -> u8 {
        self.flags.get_or_find(|| {
            let mut devices = self.devices.slices.iter().flat_map(|slice| slice_devices(slice));
            let has_binding_conditions = devices.any(|device| device.binding_conditions.is_some());
            bit(self.problem().is_some(), INVALID) | bit(has_binding_conditions, BINDING_CONDITIONS)
        })
    }
}

fn pool_of(slice: &ResourceSlice) -> (&str, &str) {
    (&slice.spec.driver, &slice.spec.pool.name)
}

/// Returns the first problem of a device that consumes from a counter set or counter that the pool does not define.
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

fn duplicate_device(slices: &[Arc<ResourceSlice>]) -> Option<PoolProblem> {
    // Drivers mostly list their devices by name; then no set of names is needed.
    if ascend(slices) {
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut names = slices.iter().flat_map(|slice| slice_devices(slice)).map(|device| &device.name);
    names.find(|name| !seen.insert(*name)).map(|name| PoolProblem::DuplicateDevice { device: name.clone() })
}

/// Returns true if the device names are strictly ascending, which excludes duplicates.
fn ascend(slices: &[Arc<ResourceSlice>]) -> bool {
    let mut last = None;
    slices.iter().map(|slice| slice_devices(slice)).filter(|devices| !devices.is_empty()).all(|devices| {
        let before = last.replace(devices);
        let follows =
            before.and_then(<[_]>::last).zip(devices.first()).is_none_or(|(last, first)| last.name < first.name);
        follows && devices.is_sorted_by(|left, right| left.name < right.name)
    })
}

pub(super) fn has_counters(slice: &ResourceSlice) -> bool {
    slice.spec.shared_counters.as_ref().is_some_and(|sets| !sets.is_empty())
}
