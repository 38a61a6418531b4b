//! Searches whose result holds on other nodes: those that are like the node that was searched.
//!
//! A search reads a node through its table. It compares values, counters and amounts with each other, and asks of names only
//! whether they are the same. So two nodes have the same solution, device by device, and the same way to it, if their
//! tables have the same facts ([`NodeFacts::read`]) for one plan under the same gates:
//!
//! - all pools are complete, and follow each other with the same numbers of devices that may be given; one look is enough for
//!   the same pools;
//! - each device is selected, tolerated, held, shared, and large enough for the same alternatives, by the same amounts;
//! - the evaluations of selectors and derived attributes are the same work;
//! - the values that constraints compare are equal for the same devices, and are in the same order;
//! - counters have the same amounts left, and are consumed by the same devices.
//!
//! Nodes where reading a fact ends in an error are like no other. What reads the objects themselves is done for each node:
//! the results, and the errors of building them.
//!
//! Only searches are remembered that took more work than there are facts to read, and facts are read only as long as that has
//! saved work, or may: reading in vain never costs more than the searches themselves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dra_attrs::{Gate, MatchError};
use k8s_openapi::api::resource::v1::Device;

use super::budget::Effort;
use super::capacity_check::CapacityCheck;
use super::counters::Groups;
use super::domains::is_looked_at_once;
use super::elisions::Elision;
use super::ix::{AlternativeIx, ByColumn, ColumnIx, DeviceIx, IxRange, PoolIx};
use super::kinds::{Space, Value, spaces};
use super::partial_assignment::Chosen;
use super::request::Mode;
use super::same_pools::SamePools;
use super::solution::{Selected, Solution};
use super::table::Table;
use crate::cluster::capacity::Capacity;
use crate::cluster::inventory::pool::PoolState;
use crate::cluster::state::DeviceUsage;

/// Largest number of searches that are remembered.
const MOST_SEARCHES: usize = 16;
/// Largest number of devices of a node that may be like another one.
const MOST_DEVICES: usize = 1_024;
/// Smallest work of a search that is remembered, and the same for each fact of the node: reading one takes less than a unit.
const LEAST_WORK: (u64, u64) = (64, 1);

/// Searches of one attempt, with the facts of the nodes that they were made on.
#[derive(Debug)]
pub(crate) struct EquivalentSearches {
    /// Searches on nodes that see the very same pools.
    pub(super) same_pools: SamePools,
    known: Mutex<Vec<Arc<Search>>>,
    /// Number of facts that may still be read in vain.
    credit: AtomicU64,
    least_work: (u64, u64),
}

/// Search that has come to its end.
#[derive(Debug)]
pub(crate) struct Search {
    size: Size,
    facts_of_node: NodeFacts,
    found: Option<Found>,
    pub(crate) effort: Effort,
}

/// Solution, as positions of devices.
#[derive(Debug)]
struct Found {
    chosen: Vec<Chosen>,
    selected: Selected,
}

/// Numbers of pools and devices, which tell most nodes apart that are unlike.
type Size = (usize, DeviceIx);

/// Facts of a node that a search reads, in a fixed order. Names and values are numbers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts(Vec<i128>);

impl Default for EquivalentSearches {
    fn default() -> Self {
        let (known, credit) = (Mutex::default(), AtomicU64::new(0));
        Self { same_pools: SamePools::default(), known, credit, least_work: LEAST_WORK }
    }
}

impl EquivalentSearches {
    /// Reads the facts of a node if a search may be known that was made on a node like it. Returns the work of evaluations
    /// too, for which the credit pays.
    pub(super) fn read(&self, table: &Table<'_>) -> (Option<NodeFacts>, u64) {
        let price = price(table);
        let least = self.credit.load(Ordering::Relaxed).min(table.meter.left());
        if least < price || !table.context.elisions.has(Elision::EquivalentSearches) {
            return (None, 0);
        }
        let size = size(table);
        if !self.searches().iter().any(|search| search.size == size) || !self.pay(price) {
            return (None, 0);
        }
        let most = self.credit.load(Ordering::Relaxed).min(table.meter.left());
        let (facts_of_node, work) = table.meter.aside(most, || NodeFacts::read(table));
        self.pay(work);
        (facts_of_node, work)
    }

    /// Takes an amount from the credit, or all that is left. Returns false if there was less.
    fn pay(&self, amount: u64) -> bool {
        let rest = |credit: u64| Some(credit.saturating_sub(amount));
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok_and(|credit| credit >= amount)
    }

    /// Returns the search that was made on a node with the same facts.
    pub(super) fn find(&self, facts_of_node: &NodeFacts) -> Option<Arc<Search>> {
        self.searches().iter().find(|search| search.facts_of_node == *facts_of_node).cloned()
    }

    /// Adds the work of a search that was not repeated to the credit.
    pub(super) fn saved(&self, search: &Search) {
        self.credit.fetch_add(search.effort.work, Ordering::Relaxed);
    }

    /// Remembers a search that has come to its end, if it was long. `facts_of_node` are the facts of the node if they were read.
    pub(super) fn remember(
        &self,
        table: &Table<'_>,
        facts_of_node: Option<NodeFacts>,
        effort: Effort,
        solution: Option<Solution<'_>>,
    ) {
        if !self.is_long(table, effort) || !table.context.elisions.has(Elision::EquivalentSearches) {
            return;
        }
        if usize::from(table.candidates.end()) > MOST_DEVICES || self.searches().len() >= MOST_SEARCHES {
            return;
        }
        let read = || table.meter.aside(effort.work, || NodeFacts::read(table)).0;
        let Some(facts_of_node) = facts_of_node.or_else(read) else { return };
        let found =
            solution.map(|Solution { chosen, selected }| Found { chosen: chosen.to_vec(), selected: selected.clone() });
        self.searches().push(Arc::new(Search { size: size(table), facts_of_node, found, effort }));
        self.credit.fetch_add(effort.work, Ordering::Relaxed);
    }

    fn is_long(&self, table: &Table<'_>, effort: Effort) -> bool {
        let (least, of_each) = self.least_work;
        effort.work >= least && effort.work >= price(table).saturating_mul(of_each)
    }

    fn searches(&self) -> MutexGuard<'_, Vec<Arc<Search>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Search {
    /// Returns the solution; `None` if there is none.
    pub(super) fn solution(&self) -> Option<Solution<'_>> {
        self.found.as_ref().map(|Found { chosen, selected }| Solution { chosen, selected })
    }
}

fn size(table: &Table<'_>) -> Size {
    (table.candidates.pool_count(), table.candidates.end())
}

/// Returns the number of facts of a node, roughly.
fn price(table: &Table<'_>) -> u64 {
    let of_each = table.plan.alternatives.len().saturating_add(table.plan.columns.len());
    u64::try_from(usize::from(table.candidates.end()).saturating_mul(of_each)).unwrap_or(u64::MAX)
}

impl NodeFacts {
    /// Reads the facts of a node; `None` if one can't be read, or a pool is not complete.
    fn read(table: &Table<'_>) -> Option<Self> {
        if table.candidates.pools().any(|pool| pool.state() != PoolState::Complete) {
            return None;
        }
        let spaces = spaces(table);
        let mut reader = Reader {
            table,
            takes_all: table.plan.alternatives.iter().any(|asked| asked.mode == Mode::All),
            values: values(table, &spaces)?,
            groups: group_names(table)?,
            spaces,
            facts: Vec::with_capacity(usize::try_from(price(table)).unwrap_or(0).saturating_mul(2)),
        };
        for (pool, devices) in table.candidates.order() {
            reader.pool(pool, devices)?;
            for device in devices {
                reader.device(device)?;
            }
        }
        Some(Self(reader.facts))
    }
}

/// Returns the values that constraints compare.
fn values<'s>(table: &Table<'s>, spaces: &ByColumn<Space>) -> Option<Numbers<Value<'s>>> {
    let mut all = Vec::new();
    for column in table.plan.columns.range() {
        for device in table.candidates.all() {
            let values = table.values(column, device).ok()?;
            all.extend(values.values().iter().map(|value| (spaces[column], *value)));
        }
    }
    Some(Numbers::new(all))
}

/// Returns the names of the compatibility groups that devices have.
fn group_names<'s>(table: &Table<'s>) -> Option<Numbers<&'s str>> {
    let mut all = Vec::new();
    let consuming = |device: &DeviceIx| table.candidate(*device).consumes_counters();
    if table.has(Gate::PartitionableDevices) {
        for device in table.candidates.all().into_iter().filter(consuming) {
            let consumption = table.consumption(device).ok()?;
            all.extend(consumption.iter().flat_map(|consumed| consumed.groups).map(String::as_str));
        }
    }
    Some(Numbers::new(all))
}

/// Numbers of things, in their order.
struct Numbers<T>(Vec<T>);

impl<T: Ord> Numbers<T> {
    fn new(mut things: Vec<T>) -> Self {
        things.sort_unstable();
        things.dedup();
        Self(things)
    }

    fn of(&self, thing: &T) -> Option<i128> {
        self.0.binary_search(thing).ok().map(fact)
    }
}

fn fact(number: usize) -> i128 {
    i128::try_from(number).unwrap_or(i128::MAX)
}

/// Facts of a node as far as they were read.
struct Reader<'t, 's> {
    table: &'t Table<'s>,
    /// True if a request asks for all devices.
    takes_all: bool,
    spaces: ByColumn<Space>,
    /// Values that constraints compare.
    values: Numbers<Value<'s>>,
    /// Names of compatibility groups.
    groups: Numbers<&'s str>,
    facts: Vec<i128>,
}

impl Reader<'_, '_> {
    /// Adds facts, after their number.
    fn list(facts: &mut Vec<i128>, list: impl Iterator<Item = i128>) {
        let place = facts.len();
        facts.push(0);
        facts.extend(list);
        let number = fact(facts.len().saturating_sub(place));
        if let Some(first) = facts.get_mut(place) {
            *first = number;
        }
    }

    fn pool(&mut self, pool: PoolIx, devices: IxRange<Device>) -> Option<()> {
        let table = self.table;
        let is_looked_at_once = is_looked_at_once(table, table.candidates.pool(pool));
        self.facts.extend([fact(pool.into()), fact(devices.len()), i128::from(is_looked_at_once)]);
        let alternatives = table.plan.alternatives.range().into_iter();
        self.facts.extend(alternatives.map(|asked| i128::from(table.may_admit(asked, pool))));
        let is_consumed = devices.into_iter().any(|device| table.candidate(device).consumes_counters());
        if !is_consumed || !table.has(Gate::PartitionableDevices) {
            return Some(());
        }
        let counters = table.counters(pool).ok()?;
        Self::list(&mut self.facts, counters.names().map(|name| fact(name.into())));
        Self::list(&mut self.facts, counters.left.iter().copied());
        for (set, groups) in counters.groups.enumerate() {
            self.facts.push(i128::from(counters.is_grouped(set)));
            match groups {
                Groups::Unused => self.facts.push(0),
                Groups::Without => self.facts.push(1),
                Groups::Common(names) => {
                    self.facts.push(2);
                    // A name that no device has is like any other such name.
                    Self::list(&mut self.facts, names.iter().filter_map(|name| self.groups.of(name)));
                }
            }
        }
        Some(())
    }

    fn device(&mut self, device: DeviceIx) -> Option<()> {
        let table = self.table;
        let is_shared = table.in_use(device).is_some_and(DeviceUsage::is_shared);
        let consumes = table.candidate(device).consumes_counters();
        let flags = [table.is_held(device), table.is_shareable(device), table.may_skip(device), is_shared, consumes];
        self.facts.push(flags.into_iter().fold(0, |all, flag| all * 2 + i128::from(flag)));
        for alternative in table.plan.alternatives.range() {
            self.facts.push(i128::from(table.taint(alternative, device).is_some()));
            if table.like(alternative) == alternative {
                let is_selectable = table.is_selectable(alternative, device).ok()?;
                let work = i128::from(table.work_of_selection(alternative, device));
                self.facts.push(work * 2 + i128::from(is_selectable));
                self.room(alternative, device)?;
            }
        }
        for column in table.plan.columns.range() {
            self.values(column, device)?;
        }
        if consumes && table.has(Gate::PartitionableDevices) {
            self.consumption(device)?;
        }
        Some(())
    }

    /// Adds what an alternative takes of a device's capacities, and what is left of them.
    fn room(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Option<()> {
        let table = self.table;
        if !table.has(Gate::ConsumableCapacity) || (table.has_room_for_one(alternative, device) && !self.takes_all) {
            self.facts.push(0);
            return Some(());
        }
        // Their number is that of the work.
        self.facts.push(fact(table.capacities(device).ok()?.len()));
        match table.fit(alternative, device).ok()? {
            CapacityCheck::Never(_) => self.facts.push(1),
            CapacityCheck::Takes(amounts) => {
                self.facts.push(2);
                let capacities = table.capacities(device).ok()?;
                Self::list(&mut self.facts, amounts.iter().map(|amount| amount.quantity.nanos()));
                let left = |capacity: &Capacity<'_>| {
                    [capacity.value.quantity.nanos(), table.consumed(device, capacity.name).nanos()]
                };
                Self::list(&mut self.facts, capacities.iter().flat_map(left));
            }
        }
        Some(())
    }

    fn values(&mut self, column: ColumnIx, device: DeviceIx) -> Option<()> {
        let values = self.table.values(column, device).ok()?;
        let work = i128::from(self.table.work_of_derived(column, device));
        let violation = match values.violation() {
            None => 0,
            Some(MatchError::Missing) => 1,
            Some(_) => 2,
        };
        self.facts.push(work * 4 + violation);
        let space = self.spaces[column];
        let numbers = values.values().iter().filter_map(|value| self.values.of(&(space, *value)));
        Self::list(&mut self.facts, numbers);
        Some(())
    }

    fn consumption(&mut self, device: DeviceIx) -> Option<()> {
        let consumption = self.table.consumption(device).ok()?;
        self.facts.push(fact(consumption.len()));
        for consumed in consumption {
            self.facts.push(fact(consumed.set.into()));
            Self::list(&mut self.facts, consumed.groups.iter().filter_map(|name| self.groups.of(&name.as_str())));
            let taken = consumed.amounts.iter().flat_map(|(counter, amount)| [fact((*counter).into()), *amount]);
            Self::list(&mut self.facts, taken);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
