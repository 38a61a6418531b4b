//! Distribution of items over slices: next-fit in the given order, or as it was before.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

use dra_attrs::internal::release::CounterLimits;
use k8s_openapi::api::resource::v1::{CounterSet, Device};

use crate::driver::limits::SliceLimits;
use crate::driver::plan_error::PlanError;
use crate::driver::slice_plan::{SliceContents, SlicePlan};

/// Part of a pool that is never split: a device, or counter sets with the devices that consume from them.
#[derive(Clone, Debug, Default)]
pub(super) struct Item<'a> {
    pub(super) devices: Vec<&'a Device>,
    pub(super) counter_sets: Vec<&'a CounterSet>,
    load: Load,
}

/// Amounts that count against the limits of a slice.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    items: usize,
    devices: usize,
    advanced: usize,
    counters: usize,
    consumed: usize,
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.items = self.items.saturating_add(other.items);
        self.devices = self.devices.saturating_add(other.devices);
        self.advanced = self.advanced.saturating_add(other.advanced);
        self.counters = self.counters.saturating_add(other.counters);
        self.consumed = self.consumed.saturating_add(other.consumed);
    }
}

impl SubAssign for Load {
    fn sub_assign(&mut self, other: Self) {
        self.items = self.items.saturating_sub(other.items);
        self.devices = self.devices.saturating_sub(other.devices);
        self.advanced = self.advanced.saturating_sub(other.advanced);
        self.counters = self.counters.saturating_sub(other.counters);
        self.consumed = self.consumed.saturating_sub(other.consumed);
    }
}

impl<'a> Item<'a> {
    /// Creates the item of a device that is alone.
    pub(super) fn single(device: &'a Device, limits: &SliceLimits) -> Self {
        let mut item = Self::default();
        item.push(device, limits);
        item
    }

    pub(super) fn push(&mut self, device: &'a Device, limits: &SliceLimits) {
        let consumed = device.consumes_counters.iter().flatten().map(|consumption| consumption.counters.len()).sum();
        let advanced = usize::from(limits.is_advanced(device));
        self.devices.push(device);
        self.load += Load { devices: 1, advanced, consumed, ..Load::default() };
        self.load.items = 1;
    }

    pub(super) fn push_set(&mut self, set: &'a CounterSet) {
        self.counter_sets.push(set);
        self.load += Load { counters: set.counters.len(), ..Load::default() };
        self.load.items = 1;
    }

    /// Returns the place of the item in earlier slices: that of its first part with a place.
    fn place(&self, places: &Places<'_>) -> Option<Place> {
        let devices = self.devices.iter().filter_map(|device| places.devices.get(device.name.as_str()));
        let sets = self.counter_sets.iter().filter_map(|set| places.counter_sets.get(set.name.as_str()));
        devices.chain(sets).next().copied()
    }
}

/// Slice and position in it.
type Place = (usize, usize);

/// Places of devices and counter sets in earlier slices.
struct Places<'p> {
    devices: BTreeMap<&'p str, Place>,
    counter_sets: BTreeMap<&'p str, Place>,
}

impl<'p> Places<'p> {
    fn new(slots: &[&SliceContents<'p>]) -> Self {
        let mut places = Self { devices: BTreeMap::new(), counter_sets: BTreeMap::new() };
        for (slot, contents) in slots.iter().enumerate() {
            for (position, name) in contents.devices.iter().enumerate() {
                places.devices.entry(name).or_insert((slot, position));
            }
            for name in &contents.counter_sets {
                places.counter_sets.entry(name).or_insert((slot, contents.devices.len()));
            }
        }
        places
    }
}

/// Slice that is being filled.
#[derive(Clone, Debug, Default)]
struct Slot<'a> {
    items: Vec<Item<'a>>,
    load: Load,
}

impl<'a> Slot<'a> {
    fn push(&mut self, item: Item<'a>) {
        self.load += item.load;
        self.items.push(item);
    }

    fn pop(&mut self) -> Option<Item<'a>> {
        let item = self.items.pop()?;
        self.load -= item.load;
        Some(item)
    }

    fn into_slice(self) -> SlicePlan<'a> {
        let (mut devices, mut counter_sets) = (Vec::new(), Vec::new());
        for item in self.items {
            devices.extend(item.devices);
            counter_sets.extend(item.counter_sets);
        }
        let has_devices = !devices.is_empty() || counter_sets.is_empty();
        SlicePlan { devices: has_devices.then_some(devices), counter_sets, ..SlicePlan::default() }
    }
}

/// Slices of a pool with devices.
pub(super) struct Slots<'a> {
    slots: Vec<Slot<'a>>,
    limits: SliceLimits,
}

impl<'a> Slots<'a> {
    /// Distributes the items.
    pub(super) fn new(
        items: Vec<Item<'a>>,
        limits: &SliceLimits,
        stored: Option<&[SliceContents<'_>]>,
    ) -> Result<Self, PlanError> {
        let empty = Self { slots: Vec::new(), limits: *limits };
        if let Some(item) = items.iter().find(|item| !empty.fits(item.load)) {
            return Err(PlanError::CannotSplit {
                counter_sets: item.counter_sets.iter().map(|set| set.name.clone()).collect(),
                device_count: item.devices.len(),
            });
        }
        let Some(previous) = stored else { return Ok(empty.ordered(items)) };
        let ordered = Self { slots: Vec::new(), ..empty }.ordered(items.clone());
        let sticky = empty.sticky(items, previous);
        let most = ordered.slots.len().max(1).saturating_mul(2);
        Ok(if sticky.slots.len() > most { ordered } else { sticky })
    }

    pub(super) fn into_slices(self) -> impl Iterator<Item = SlicePlan<'a>> {
        self.slots.into_iter().map(Slot::into_slice)
    }

    /// Fills slice after slice; one ends when the next item does not fit.
    fn ordered(mut self, items: Vec<Item<'a>>) -> Self {
        let mut slot = Slot::default();
        for item in items {
            if !self.fits(sum(slot.load, item.load)) {
                self.slots.push(std::mem::take(&mut slot));
            }
            slot.push(item);
        }
        if !slot.items.is_empty() {
            self.slots.push(slot);
        }
        self
    }

    /// Leaves items where they were. Items that no longer fit leave their slice from its end; they and new ones go, in
    /// their order, to the first slice with room.
    fn sticky(mut self, items: Vec<Item<'a>>, previous: &[SliceContents<'_>]) -> Self {
        let is_ours = |contents: &&SliceContents<'_>| match self.limits.counters {
            CounterLimits::InTotal { .. } => true,
            CounterLimits::BySet { .. } => !contents.devices.is_empty() || contents.counter_sets.is_empty(),
        };
        let previous: Vec<&SliceContents<'_>> = previous.iter().filter(is_ours).collect();
        let places = Places::new(&previous);
        let mut all: Vec<(Option<Place>, usize, Item<'a>)> =
            items.into_iter().enumerate().map(|(order, item)| (item.place(&places), order, item)).collect();
        all.sort_by_key(|(place, order, _)| (*place, *order));
        let begin = all.partition_point(|(place, _, _)| place.is_none());
        let staying = all.split_off(begin);
        let mut moving: Vec<(usize, Item<'a>)> = all.into_iter().map(|(_, order, item)| (order, item)).collect();
        let mut slots: Vec<(Slot<'a>, Vec<usize>)> = previous.iter().map(|_| Default::default()).collect();
        for (place, order, item) in staying {
            if let Some((slot, orders)) = place.and_then(|(slot, _)| slots.get_mut(slot)) {
                slot.push(item);
                orders.push(order);
            }
        }
        for (mut slot, mut orders) in slots {
            while !self.fits(slot.load) {
                let Some(item) = slot.pop() else { break };
                moving.push((orders.pop().unwrap_or_default(), item));
            }
            self.slots.push(slot);
        }
        moving.sort_by_key(|(order, _)| *order);
        self.fill(moving.into_iter().map(|(_, item)| item));
        while self.slots.last().is_some_and(|slot| slot.items.is_empty()) {
            self.slots.pop();
        }
        self
    }

    /// Puts each item into the first slice with room, or into a new one.
    fn fill(&mut self, items: impl Iterator<Item = Item<'a>>) {
        let mut open = 0;
        for item in items {
            while self.slots.get(open).is_some_and(|slot| slot.load.devices >= self.most_devices(slot.load)) {
                open += 1;
            }
            let room = (open..self.slots.len())
                .find(|index| self.slots.get(*index).is_some_and(|slot| self.fits(sum(slot.load, item.load))));
            let index = room.unwrap_or(self.slots.len());
            self.slots.resize_with(self.slots.len().max(index.saturating_add(1)), Slot::default);
            if let Some(slot) = self.slots.get_mut(index) {
                slot.push(item);
            }
        }
    }

    fn fits(&self, load: Load) -> bool {
        let together = match self.limits.counters {
            CounterLimits::BySet { .. } => true,
            CounterLimits::InTotal { shared, consumed, .. } => load.counters <= shared && load.consumed <= consumed,
        };
        together && load.devices <= self.most_devices(load)
    }

    /// Returns the largest number of devices of a slice with this load. What is alone and can't be split may have as
    /// many as the server accepts.
    fn most_devices(&self, load: Load) -> usize {
        let accepted = if load.advanced > 0 { self.limits.max_advanced_devices } else { self.limits.max_devices };
        if load.items > 1 && !self.limits.fills_slices { accepted.min(SMALL_CHUNK) } else { accepted }
    }
}

/// Number of devices that every server accepts of any devices.
const SMALL_CHUNK: usize = 64;

fn sum(mut one: Load, other: Load) -> Load {
    one += other;
    one
}
