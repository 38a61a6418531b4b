//! Resource pool as seen by one node; see [`dra_device::pool`].
//!
//! Pools are sorted by driver and name, those with binding conditions last. A pool's slices are sorted by name.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use dra_attrs::QuantityError;
use dra_device::internal::{counter_problem, name_of};
use dra_device::pool::{PoolProblem, slice_devices};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use super::device::DeviceFacts;
use super::facts::Facts;
use super::flags::{Flags, bit};
use super::lens::Lens;
use super::pool_capacities::{BadCapacity, Capacities, PoolCapacities};
use super::pool_counters::{BadAmount, PoolCounters};
use super::pool_devices::PoolDevices;
use super::pool_selections::PoolSelections;
use super::shape::{KnownLens, Shapes, ShapesOfPool};
use super::sight::Sight;
use super::slice_facts::write_slice;
use crate::cluster::stamp::Stamp;

/// A counter value in a slice that is not a valid quantity.
#[derive(Debug)]
pub(crate) struct InvalidCounter<'i> {
    /// Name of the slice.
    pub(crate) slice: &'i str,
    pub(crate) field: String,
    pub(crate) error: QuantityError,
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
    sight: Sight,
    is_complete: bool,
    /// Devices that the node can use. Empty unless the pool is complete, or partial pools are used.
    devices: Arc<PoolDevices>,
    /// Slices with devices for other nodes, which consume counters of the pool too.
    elsewhere: Vec<Arc<ResourceSlice>>,
    /// Slices that define counter sets.
    counters: Vec<Arc<ResourceSlice>>,
    /// Facts about the devices that the node can use.
    facts: Box<[DeviceFacts]>,
    /// Counter sets, and what devices consume of them.
    read_counters: OnceLock<Result<PoolCounters, (usize, BadAmount)>>,
    capacities: PoolCapacities,
    selections: PoolSelections,
    flags: Flags,
    soundness: Flags,
    shapes: ShapesOfPool,
    /// Hash of driver and pool name.
    hash: u64,
    /// Mark of the slices that make the pool.
    stamp: Stamp,
}

const INVALID: u8 = 1;
const BINDING_CONDITIONS: u8 = 2;
const SOUND: u8 = 1;
const PLAIN: u8 = 2;
const LISTS: u8 = 4;

impl Pool {
    /// Builds a pool that is known to be incomplete, from the slices that are there. `hash` is that of driver and pool name.
    pub(super) fn incomplete(hash: u64, slices: impl Iterator<Item = Arc<ResourceSlice>>, sight: Sight) -> Self {
        Self {
            sight,
            is_complete: false,
            devices: Arc::default(),
            elsewhere: slices.collect(),
            counters: Vec::new(),
            facts: Box::default(),
            read_counters: OnceLock::new(),
            capacities: PoolCapacities::default(),
            selections: PoolSelections::default(),
            flags: Flags::default(),
            soundness: Flags::default(),
            shapes: ShapesOfPool::default(),
            hash,
            stamp: Stamp::next(),
        }
    }

    /// Builds a pool some of whose slices the node does not see, and whose devices it can use nevertheless. `hash` is that of
    /// driver and pool name.
    pub(super) fn partial(hash: u64, slices: impl Iterator<Item = Arc<ResourceSlice>>, sight: Sight) -> Self {
        Self { is_complete: false, ..Self::complete(hash, slices, std::iter::empty(), sight) }
    }

    /// Builds a complete pool from the slices for the node and those for other nodes. `hash` is that of driver and pool
    /// name.
    pub(super) fn complete(
        hash: u64,
        own: impl Iterator<Item = Arc<ResourceSlice>>,
        others: impl Iterator<Item = Arc<ResourceSlice>>,
        sight: Sight,
    ) -> Self {
        let (mut slices, mut elsewhere, mut counters) = (SmallVec::new(), Vec::new(), Vec::new());
        let mut is_counters = |slice: &Arc<ResourceSlice>| {
            if sight.reads_counters && has_counters(slice) {
                counters.push(Arc::clone(slice));
            }
            sight.reads_counters && has_counters_alone(slice, sight)
        };
        slices.extend(own.filter(|slice| !is_counters(slice)));
        elsewhere.extend(others.filter(|slice| !is_counters(slice)));
        slices.sort_by(|left: &Arc<_>, right: &Arc<_>| name_of(left).cmp(name_of(right)));
        let devices = Arc::new(PoolDevices::new(slices));
        let facts = std::iter::repeat_with(DeviceFacts::default).take(devices.len()).collect();
        let (flags, soundness, read_counters) = (Flags::default(), Flags::default(), OnceLock::new());
        let stamp = Stamp::next();
        Self {
            sight,
            is_complete: true,
            devices,
            elsewhere,
            counters,
            facts,
            read_counters,
            capacities: PoolCapacities::default(),
            selections: PoolSelections::default(),
            flags,
            soundness,
            shapes: ShapesOfPool::default(),
            hash,
            stamp,
        }
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

    /// Returns true if a device that the node can use has an attribute that is a list. Reads every device on first use.
    pub(crate) fn has_lists(&self) -> bool {
        self.soundness() & LISTS != 0
    }

    /// Returns true if the slices choose the nodes of the pool, and no device does.
    pub(crate) fn is_for_its_nodes(&self) -> bool {
        self.devices.slices.iter().all(|slice| slice.spec.per_device_node_selection != Some(true))
    }

    /// Returns the id of the pool's shape through a lens; `None` if more than facts matters: slices that the node does not see,
    /// contradictions, invalid values, which end in errors, and devices that choose nodes.
    pub(crate) fn shape(&self, shapes: &Shapes, lens: &KnownLens) -> Option<Stamp> {
        self.shapes.find(shapes, lens, |lens| self.facts_through(lens))
    }

    fn facts_through(&self, lens: &Lens) -> Option<Facts> {
        let has_shape = self.state() == PoolState::Complete
            && self.is_sound()
            && self.is_for_its_nodes()
            && self.elsewhere.is_empty();
        let mut facts = has_shape.then(Facts::default)?;
        facts.number(self.devices.slices.len());
        self.devices.slices.iter().for_each(|slice| write_slice(&mut facts, slice, lens));
        self.counter_slices().for_each(|slice| write_slice(&mut facts, slice, lens));
        Some(facts)
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
            let is_plain = is_sound && self.is_for_its_nodes() && facts().all(is_plain);
            let has_lists = facts().any(|(device, facts)| facts.look(device).has_lists());
            bit(is_sound, SOUND) | bit(is_plain, PLAIN) | bit(has_lists, LISTS)
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
        let alone = self.counter_slices().filter(|slice| has_counters_alone(slice, self.sight));
        self.all_slices().chain(alone).count()
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

    /// Returns the capacities of a device, by its number among all devices of the pool that the node can use. Reads them when
    /// they are first asked for.
    ///
    /// # Errors
    /// The first field that is not a quantity.
    pub(crate) fn capacities<'p>(
        &'p self,
        number: usize,
        device: &'p Device,
    ) -> Result<Capacities<'p>, &'p BadCapacity> {
        self.capacities.of_device(self.len(), number, device)
    }

    /// Returns the counters of the pool. Reads them on first use, and what a device consumes when it is asked for.
    pub(crate) fn read_counters(&self) -> Result<&PoolCounters, InvalidCounter<'_>> {
        let devices = || self.all_slices().map(|slice| slice_devices(slice).len()).sum();
        let read = self.read_counters.get_or_init(|| PoolCounters::new(self.counter_slices(), devices()));
        read.as_ref().map_err(|(number, bad)| {
            let slice = self.counter_slices().nth(*number).or_else(|| self.any());
            InvalidCounter { slice: slice.map_or("", name_of), field: bad.field.clone(), error: bad.error.clone() }
        })
    }

    /// Computes all facts about the pool and its devices now, instead of on first use, but for what devices consume.
    pub(crate) fn look(&self) {
        self.flags();
        self.is_sound();
        if !self.counters.is_empty() {
            let _: Result<&PoolCounters, InvalidCounter<'_>> = self.read_counters();
        }
    }

    /// Returns the answers of selectors about the pool's devices that were kept.
    pub(crate) const fn selections(&self) -> &PoolSelections {
        &self.selections
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
        if !self.is_complete && !self.sight.uses_partial_pools {
            return None;
        }
        let has_counters = self.sight.reads_counters;
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

/// Returns true if a slice defines counter sets, and none of its devices is read.
fn has_counters_alone(slice: &ResourceSlice, sight: Sight) -> bool {
    has_counters(slice) && (slice_devices(slice).is_empty() || !sight.has_devices_with_counters)
}

pub(super) fn has_counters(slice: &ResourceSlice) -> bool {
    slice.spec.shared_counters.as_ref().is_some_and(|sets| !sets.is_empty())
}
