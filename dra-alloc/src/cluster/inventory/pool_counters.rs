//! Counters of a pool, and the amounts of them that its devices consume (KEP-4815): read once for each version of the pool.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use dra_attrs::{Index, Quantity, QuantityError};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, ResourceSlice};

/// Kind of position: names of counters in a pool.
pub(crate) enum CounterNames {}
/// Position of a counter set in its pool.
pub(crate) type SetIx = Index<CounterSet>;
/// Position of a counter among those of all counter sets of its pool.
pub(crate) type CounterIx = Index<Counter>;
/// Position of a name among those of all counters of a pool.
pub(crate) type CounterNameIx = Index<CounterNames>;

/// Consumption of a device, or the first of its amounts that is not a quantity.
type Consumption = Result<Box<[Consumed]>, BadAmount>;

/// Counter sets of a pool as their slices define them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolCounters {
    sets: BTreeMap<Box<str>, Set>,
    set_count: usize,
    /// Amounts of the counters, in billionths of a unit.
    amounts: Vec<i128>,
    /// True if an amount is below zero.
    is_below_zero: bool,
    /// Name of each counter, as a number. Counters of one name in different sets have one number.
    name_of: Vec<CounterNameIx>,
    /// Number of different names.
    names: usize,
    /// Consumption of each device that was asked for, in the order of the pool's slices.
    devices: Box<[OnceLock<Consumption>]>,
}

#[derive(Clone, Debug)]
struct Set {
    ix: SetIx,
    counters: BTreeMap<Box<str>, CounterIx>,
}

/// Consumption of one counter set by a device.
#[derive(Clone, Debug)]
pub(crate) struct Consumed {
    pub(crate) set: SetIx,
    /// Compatibility groups of the device on the set.
    pub(crate) groups: Box<[String]>,
    /// Consumed amounts in billionths of a unit, each with its counter.
    pub(crate) amounts: Box<[(CounterIx, i128)]>,
}

/// An amount that is not a valid quantity.
#[derive(Clone, Debug)]
pub(crate) struct BadAmount {
    pub(crate) field: String,
    pub(crate) error: QuantityError,
}

impl PoolCounters {
    /// Reads the counter sets of slices, for a pool with a number of devices.
    ///
    /// # Errors
    /// The first amount that is not a quantity, with the number of its slice.
    pub(super) fn new<'s>(
        slices: impl Iterator<Item = &'s ResourceSlice>,
        devices: usize,
    ) -> Result<Self, (usize, BadAmount)> {
        let mut read = Self::default();
        for (number, slice) in slices.enumerate() {
            for (index, set) in slice.spec.shared_counters.iter().flatten().enumerate() {
                read.add(index, set).map_err(|error| (number, error))?;
            }
        }
        read.number_names();
        // A pool without counter sets has nothing that its devices could consume.
        let devices = if read.sets.is_empty() { 0 } else { devices };
        read.devices = std::iter::repeat_with(OnceLock::new).take(devices).collect();
        Ok(read)
    }

    fn add(&mut self, index: usize, set: &CounterSet) -> Result<(), BadAmount> {
        let ix = SetIx::from(self.set_count);
        self.set_count += 1;
        let known = self.sets.entry(set.name.as_str().into()).or_insert_with(|| Set { ix, counters: BTreeMap::new() });
        known.ix = ix;
        for (name, counter) in &set.counters {
            let amount = amount(counter).map_err(|error| BadAmount {
                field: format!("spec.sharedCounters[{index}].counters[{name}].value"),
                error,
            })?;
            known.counters.insert(name.as_str().into(), CounterIx::from(self.amounts.len()));
            self.amounts.push(amount);
            self.is_below_zero |= amount < 0;
        }
        Ok(())
    }

    fn number_names(&mut self) {
        let mut names = BTreeMap::new();
        self.name_of = vec![CounterNameIx::FIRST; self.amounts.len()];
        for (name, counter) in self.sets.values().flat_map(|set| &set.counters) {
            let end = CounterNameIx::from(names.len());
            let number = *names.entry(name).or_insert(end);
            debug_assert!(usize::from(*counter) < self.name_of.len(), "each counter has an amount");
            if let Some(place) = self.name_of.get_mut(usize::from(*counter)) {
                *place = number;
            }
        }
        self.names = names.len();
    }

    /// Returns true if the pool has no counter sets.
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Returns the number of counter sets.
    pub(crate) const fn set_count(&self) -> usize {
        self.set_count
    }

    /// Returns the amounts of the counters, before any device is allocated.
    pub(crate) fn amounts(&self) -> &[i128] {
        &self.amounts
    }

    /// Returns true if an amount of a counter is below zero.
    pub(crate) const fn is_below_zero(&self) -> bool {
        self.is_below_zero
    }

    /// Returns the name of each counter, as a number.
    pub(crate) fn name_of(&self) -> &[CounterNameIx] {
        &self.name_of
    }

    /// Returns the number of different names of counters.
    pub(crate) const fn names(&self) -> usize {
        self.names
    }

    /// Returns the counters with the names of their sets and their own, sorted by them.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&str, &str, CounterIx)> {
        self.sets
            .iter()
            .flat_map(|(set, known)| known.counters.iter().map(move |(name, counter)| (&**set, &**name, *counter)))
    }

    /// Returns the consumption of a device, by its number in the pool. Ignores counters that the pool does not have: they
    /// were reported when the pool was validated.
    pub(crate) fn consumption(&self, number: usize, device: &Device) -> Result<&[Consumed], &BadAmount> {
        match self.devices.get(number) {
            Some(known) => known.get_or_init(|| self.read(device)).as_deref(),
            None => Ok(&[]),
        }
    }

    fn read(&self, device: &Device) -> Consumption {
        let consumed = device.consumes_counters.iter().flatten().enumerate();
        let known =
            consumed.filter_map(|(entry, consumed)| Some((entry, consumed, self.sets.get(&*consumed.counter_set)?)));
        known
            .map(|(entry, consumed, set)| {
                let amounts = consumed.counters.iter().filter_map(|(name, counter)| {
                    let position = *set.counters.get(name.as_str())?;
                    let field =
                        || format!("spec.devices[{}].consumesCounters[{entry}].counters[{name}].value", device.name);
                    let amount = amount(counter).map_err(|error| BadAmount { field: field(), error });
                    Some(amount.map(|amount| (position, amount)))
                });
                let groups = consumed.compatibility_groups.clone().unwrap_or_default();
                Ok(Consumed { set: set.ix, groups: groups.into(), amounts: amounts.collect::<Result<_, _>>()? })
            })
            .collect()
    }
}

fn amount(counter: &Counter) -> Result<i128, QuantityError> {
    Quantity::from_kube(&counter.value).map(Quantity::nanos)
}
