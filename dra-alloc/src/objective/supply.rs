//! Terms over counters: how much room is left, for how many devices, and what no device can use.

use std::rc::Rc;

use super::ground::Ground;
use super::measure::{Facts, Measure, thousandths, wide};
use super::partial::Partial;
use crate::cluster::inventory::pool::PoolState;
use crate::cluster::inventory::pool_counters::PoolCounters;
use crate::cluster::state::DeviceUsage;
use crate::search::device_set::DeviceSet;
use crate::search::ix::{ByDevice, DeviceIx, PoolIx};
use crate::search::table::Table;

/// Billionths of a unit.
const NANOS: i128 = 1_000_000_000;

/// Counters and counter sets of all pools of a node, as one list each, and the devices that consume them.
pub(super) struct Supply {
    counters: Vec<Counter>,
    sets: usize,
    consumers: Vec<Consumer>,
    /// Number of the consumer that a device is.
    number: ByDevice<Option<usize>>,
}

struct Counter {
    name: Box<str>,
    total: i128,
    /// Amount left before the devices of the solution.
    left: i128,
}

/// Device in reach.
struct Consumer {
    device: DeviceIx,
    /// Amounts of counters, each with its counter set.
    amounts: Vec<Amount>,
    state: Use,
    is_shareable: bool,
}

#[derive(Clone, Copy)]
struct Amount {
    set: usize,
    counter: usize,
    nanos: i128,
}

/// Use of a device before the solution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    Shared,
    Held,
}

/// Counters that a part of a solution leaves, and the devices that it takes.
struct Left {
    counters: Vec<i128>,
    taken: DeviceSet,
}

impl Supply {
    pub(super) fn new(ground: &Ground<'_, '_>) -> Self {
        let table = ground.table;
        let mut supply = Self {
            counters: Vec::new(),
            sets: 0,
            consumers: Vec::new(),
            number: table.candidates.all().into_iter().map(|_| None).collect(),
        };
        let offsets = supply.add_counters(table);
        for device in &ground.reach {
            supply.add(table, *device, &offsets);
        }
        supply
    }

    /// Adds the counters of all pools. Returns for each pool the numbers of its first set and counter. An invalid pool has no
    /// counters, nor has one whose amounts are not quantities.
    fn add_counters(&mut self, table: &Table<'_>) -> Vec<(usize, usize)> {
        let mut offsets = Vec::with_capacity(table.candidates.pool_count());
        for pool in (0..table.candidates.pool_count()).map(PoolIx::from) {
            offsets.push((self.sets, self.counters.len()));
            let object = table.candidates.pool(pool);
            if object.state() == PoolState::Invalid {
                continue;
            }
            let (Ok(read), Ok(left)) = (object.read_counters(), table.counters(pool)) else { continue };
            let amounts = read.amounts().iter().zip(left.all_left());
            let counters = amounts.map(|(total, left)| Counter { name: "".into(), total: *total, left: *left });
            let first = self.counters.len();
            self.counters.extend(counters);
            self.name(first, read);
            self.sets += read.set_count();
        }
        offsets
    }

    fn name(&mut self, first: usize, read: &PoolCounters) {
        for (_, name, counter) in read.counters() {
            if let Some(known) = self.counters.get_mut(first + usize::from(counter)) {
                known.name = name.into();
            }
        }
    }

    fn add(&mut self, table: &Table<'_>, device: DeviceIx, offsets: &[(usize, usize)]) {
        let (first_set, first) = offsets.get(usize::from(table.candidate(device).pool)).copied().unwrap_or_default();
        let consumption = table.consumption(device).unwrap_or_default();
        let amounts = consumption.iter().flat_map(|consumed| {
            let set = first_set + usize::from(consumed.set);
            let amount =
                move |(counter, amount): &_| Amount { set, counter: first + usize::from(*counter), nanos: *amount };
            consumed.amounts.iter().map(amount)
        });
        let state = match table.in_use(device) {
            Some(usage) if usage.is_exclusive() => Use::Held,
            Some(usage) if DeviceUsage::is_shared(usage) => Use::Shared,
            _ => Use::Free,
        };
        self.number[device] = Some(self.consumers.len());
        let is_shareable = table.is_shareable(device);
        self.consumers.push(Consumer { device, amounts: amounts.collect(), state, is_shareable });
    }

    fn consumer(&self, device: DeviceIx) -> Option<&Consumer> {
        self.consumers.get(self.number[device]?)
    }

    /// Takes the devices of a part of a solution off. A device that is shared takes its counters once.
    fn left(&self, partial: &Partial<'_>) -> Left {
        let mut left = Left {
            counters: self.counters.iter().map(|counter| counter.left).collect(),
            taken: DeviceSet::new(DeviceIx::from(self.number.len())),
        };
        for chosen in &partial.chosen {
            let is_first = !left.taken.contains(chosen.device);
            left.taken.insert(chosen.device);
            let Some(consumer) = self.consumer(chosen.device) else { continue };
            if is_first && consumer.state == Use::Free {
                for Amount { counter, nanos, .. } in &consumer.amounts {
                    if let Some(known) = left.counters.get_mut(*counter) {
                        *known = known.saturating_sub(*nanos);
                    }
                }
            }
        }
        left
    }

    /// Returns what is left before the solution.
    fn before(&self) -> Left {
        Left {
            counters: self.counters.iter().map(|counter| counter.left).collect(),
            taken: DeviceSet::new(DeviceIx::from(self.number.len())),
        }
    }
}

impl Left {
    fn has_counters(&self, consumer: &Consumer) -> bool {
        let mut amounts = consumer.amounts.iter();
        amounts.all(|consumed| self.counters.get(consumed.counter).is_none_or(|left| consumed.nanos <= *left))
    }

    fn is_allocatable(&self, consumer: &Consumer) -> bool {
        let is_in_use = consumer.state == Use::Shared || self.taken.contains(consumer.device);
        match (consumer.state, consumer.is_shareable) {
            (Use::Held, _) => false,
            (_, true) => is_in_use || self.has_counters(consumer),
            (_, false) => !is_in_use && self.has_counters(consumer),
        }
    }
}

/// Number of devices that are allocatable before and not after, beside the new ones.
pub(super) struct Options {
    supply: Rc<Supply>,
    before: Vec<bool>,
}

impl Options {
    pub(super) fn new(supply: Rc<Supply>) -> Self {
        let left = supply.before();
        let before = supply.consumers.iter().map(|consumer| left.is_allocatable(consumer)).collect();
        Self { supply, before }
    }
}

impl Measure for Options {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let left = self.supply.left(partial);
        let lost = self.supply.consumers.iter().zip(&self.before).filter(|(consumer, before)| {
            **before && !left.taken.contains(consumer.device) && !left.is_allocatable(consumer)
        });
        wide(lost.count())
    }

    fn tell(&self, _: DeviceIx, _: &mut Facts) {}
}

/// Sum over counter sets of the size of the largest allocatable device, before minus after.
pub(super) struct Room {
    supply: Rc<Supply>,
    /// Sizes of each consumer in the sets that it consumes.
    sizes: Vec<Vec<(usize, u64)>>,
    /// Largest size of each set before.
    before: Vec<u64>,
}

impl Room {
    pub(super) fn new(supply: Rc<Supply>, counter: Option<&str>) -> Self {
        let sizes: Vec<Vec<(usize, u64)>> =
            supply.consumers.iter().map(|consumer| sizes(&supply, consumer, counter)).collect();
        let mut room = Self { supply, sizes, before: Vec::new() };
        room.before = room.largest(&room.supply.before());
        room
    }

    /// Returns the size of the largest allocatable device of each set.
    fn largest(&self, left: &Left) -> Vec<u64> {
        let mut largest = vec![0; self.supply.sets];
        for (consumer, sizes) in self.supply.consumers.iter().zip(&self.sizes) {
            let is_larger = sizes.iter().any(|(set, size)| largest.get(*set).is_some_and(|known| size > known));
            if !is_larger || !left.is_allocatable(consumer) {
                continue;
            }
            for (set, size) in sizes {
                if let Some(known) = largest.get_mut(*set) {
                    *known = (*known).max(*size);
                }
            }
        }
        largest
    }
}

fn sizes(supply: &Supply, consumer: &Consumer, counter: Option<&str>) -> Vec<(usize, u64)> {
    let mut sizes: Vec<(usize, u64)> = Vec::new();
    for consumed in &consumer.amounts {
        let Some(of) = supply.counters.get(consumed.counter) else { continue };
        let size = match counter {
            None => thousandths(consumed.nanos, of.total),
            Some(name) if *of.name == *name => u64::try_from(consumed.nanos / NANOS).unwrap_or(0),
            Some(_) => 0,
        };
        match sizes.iter_mut().find(|(set, _)| *set == consumed.set) {
            Some((_, known)) => *known = (*known).max(size),
            None => sizes.push((consumed.set, size)),
        }
    }
    sizes
}

impl Measure for Room {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let after = self.largest(&self.supply.left(partial));
        let lost = self.before.iter().zip(after).map(|(before, after)| before.saturating_sub(after));
        lost.fold(0, u64::saturating_add)
    }

    fn tell(&self, _: DeviceIx, _: &mut Facts) {}

    fn tell_node(&self, facts: &mut Facts) -> bool {
        for sizes in &self.sizes {
            facts.number(wide(sizes.len()));
            sizes.iter().flat_map(|(set, size)| [wide(*set), *size]).for_each(|number| facts.number(number));
        }
        true
    }
}

/// Sum over the counters that no allocatable device consumes afterwards of what is left of them, in thousandths.
pub(super) struct Stranded(Rc<Supply>);

impl Stranded {
    pub(super) const fn new(supply: Rc<Supply>) -> Self {
        Self(supply)
    }
}

impl Measure for Stranded {
    // What is stranded stays so: a device that can't be allocated now won't be taken.
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let Self(supply) = self;
        let left = supply.left(partial);
        let mut is_alive = vec![false; supply.counters.len()];
        for consumer in &supply.consumers {
            let is_news = |consumed: &Amount| is_alive.get(consumed.counter) == Some(&false);
            if !consumer.amounts.iter().any(is_news) || !left.is_allocatable(consumer) {
                continue;
            }
            for consumed in &consumer.amounts {
                if let Some(alive) = is_alive.get_mut(consumed.counter) {
                    *alive = true;
                }
            }
        }
        let counters = supply.counters.iter().zip(left.counters).zip(is_alive).filter(|(_, alive)| !alive);
        counters.map(|((counter, left), _)| thousandths(left, counter.total)).fold(0, u64::saturating_add)
    }

    fn tell(&self, _: DeviceIx, _: &mut Facts) {}

    fn tell_node(&self, facts: &mut Facts) -> bool {
        let Self(supply) = self;
        for counter in &supply.counters {
            facts.amount(counter.total);
            facts.amount(counter.left);
        }
        true
    }
}
