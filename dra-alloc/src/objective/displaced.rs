//! Units that have to give back what their claims hold, so that a solution can be allocated.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Quantity;
use dra_device::internal::name_of;
use dra_device::pool::slice_devices;

use super::ground::Ground;
use super::measure::{Facts, Measure, wide};
use super::partial::Partial;
use super::term::Unit;
use crate::cluster::inventory::pool_counters::Consumed;
use crate::cluster::state::{AllocatedState, ClaimId, DeviceUsage};
use crate::search::capacity_check::CapacityCheck;
use crate::search::ix::{DeviceIx, PoolIx};
use crate::search::table::Table;

/// Largest number of sets of units that are tried for a part of a solution.
const MOST_TRIED: usize = 2_000;
/// Number of uses of devices whose comparison with a part of a solution is a unit of work.
const USES_OF_UNIT: usize = 4;

/// State of a cluster in which units have given back what they hold, and what that was.
pub(crate) struct Vacated {
    pub(crate) state: AllocatedState,
    held: Vec<Vec<HeldUse>>,
}

/// Device that a unit holds, or has a share of.
struct HeldUse {
    driver: String,
    pool: String,
    device: String,
    /// Amounts of a share; `None` for the whole device.
    share: Option<Vec<(String, Quantity)>>,
}

impl Vacated {
    /// Gives back what the claims of units hold.
    pub(crate) fn new(state: &AllocatedState, units: &[Unit]) -> Self {
        let mut unit_of: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, unit) in units.iter().enumerate() {
            unit_of.extend(unit.claims.iter().map(|claim| (claim.as_str(), number)));
        }
        let mut vacated = Self { state: state.clone(), held: units.iter().map(|_| Vec::new()).collect() };
        for claim in state.claims() {
            let Some(number) = unit_of.get(claim.to_string().as_str()) else { continue };
            if let Some(held) = vacated.held.get_mut(*number) {
                held.extend(holdings(state, claim));
            }
            vacated.state.forget_claim(claim);
        }
        vacated
    }
}

fn holdings(state: &AllocatedState, claim: &ClaimId) -> impl Iterator<Item = HeldUse> {
    state.held_by(claim).map(|held| HeldUse {
        driver: held.driver.to_owned(),
        pool: held.pool.to_owned(),
        device: held.device.to_owned(),
        share: held.share.map(<[_]>::to_vec),
    })
}

/// Device of the node's pools, here or on another node, by its pool and its number there.
type Place = (PoolIx, usize);

/// Use of a device by a unit.
struct Use<'u> {
    place: Place,
    share: Option<&'u [(String, Quantity)]>,
}

/// Least price of units that have to go.
pub(super) struct Displaced<'a, 't, 's> {
    ground: &'a Ground<'t, 's>,
    units: &'a [Unit],
    /// Uses of each unit.
    uses: Vec<Vec<Use<'a>>>,
    /// Consumption of each device in use by a unit; nothing if others use it, too.
    consumption: BTreeMap<Place, &'s [Consumed]>,
    /// Work of trying a set of units.
    work: usize,
    is_rough: Cell<bool>,
}

/// Devices and pools that a part of a solution takes.
struct Taken<'p, 't, 's> {
    partial: &'p Partial<'p>,
    places: BTreeSet<Place>,
    /// Pools from which counters are taken.
    pools: BTreeSet<PoolIx>,
    table: &'t Table<'s>,
}

impl<'a, 't, 's> Displaced<'a, 't, 's> {
    pub(super) fn new(ground: &'a Ground<'t, 's>, units: &'a [Unit], vacated: Option<&'a Vacated>) -> Self {
        let table = ground.table;
        let (places, mut consumption) = (places(table), BTreeMap::new());
        let held = vacated.map_or(&[][..], |vacated| &vacated.held);
        let uses = held.iter().map(|held| {
            let uses = held.iter().filter_map(|held| {
                let place = *places.get(&[held.driver.as_str(), held.pool.as_str(), held.device.as_str()])?;
                consumption.entry(place).or_insert_with(|| consumed(table, place));
                Some(Use { place, share: held.share.as_deref() })
            });
            uses.collect()
        });
        let uses: Vec<Vec<Use<'_>>> = uses.collect();
        let work = 1 + uses.iter().map(Vec::len).sum::<usize>() / USES_OF_UNIT;
        Self { ground, units, uses, consumption, work, is_rough: Cell::new(false) }
    }

    /// Returns the units that have to go, and their price. The second is true if a cheaper set may have been missed.
    fn least(&self, partial: &Partial<'_>) -> (Vec<usize>, bool) {
        let taken = Taken::new(self.ground.table, partial);
        let forced: Vec<usize> = (0..self.units.len()).filter(|unit| self.is_forced(*unit, &taken)).collect();
        let is_touched = |use_: &Use<'_>| taken.pools.contains(&use_.place.0) || taken.places.contains(&use_.place);
        let open = (0..self.units.len()).filter(|unit| !forced.contains(unit));
        let open: Vec<usize> =
            open.filter(|unit| self.uses.get(*unit).is_some_and(|uses| uses.iter().any(is_touched))).collect();
        let mut search = Search { displaced: self, taken: &taken, open, best: None, left: MOST_TRIED };
        search.run(&mut forced.clone(), 0, self.price(&forced));
        let is_rough = search.left == 0;
        match search.best {
            Some((_, gone)) => (gone, is_rough),
            None => (forced, true),
        }
    }

    fn price(&self, units: &[usize]) -> u64 {
        let prices = units.iter().filter_map(|unit| self.units.get(*unit)).map(|unit| unit.price);
        prices.fold(0, u64::saturating_add)
    }

    /// Returns true if a unit holds a chosen device in a way that leaves nothing for others.
    fn is_forced(&self, unit: usize, taken: &Taken<'_, '_, '_>) -> bool {
        let uses = self.uses.get(unit).map(Vec::as_slice).unwrap_or_default();
        taken.partial.chosen.iter().any(|chosen| {
            let place = place_of(self.ground.table, chosen.device);
            let is_shareable = self.ground.table.is_shareable(chosen.device);
            uses.iter().any(|use_| use_.place == place && (!is_shareable || use_.share.is_none()))
        })
    }

    /// Returns true if the part of a solution can be allocated beside the units that stay.
    fn applies(&self, taken: &Taken<'_, '_, '_>, gone: &[usize]) -> bool {
        let stays = || self.uses.iter().enumerate().filter(|(unit, _)| !gone.contains(unit)).flat_map(|(_, uses)| uses);
        taken.has_capacity(stays) && taken.pools.iter().all(|pool| self.has_counters(taken, *pool, stays))
    }

    fn has_counters<'u, U: Iterator<Item = &'u Use<'u>>>(
        &self,
        taken: &Taken<'_, '_, '_>,
        pool: PoolIx,
        stays: impl Fn() -> U,
    ) -> bool {
        let Ok(counters) = self.ground.table.counters(pool) else { return true };
        let (mut left, mut groups) = (counters.all_left().to_vec(), counters.all_groups());
        let in_use: BTreeSet<Place> = stays().map(|use_| use_.place).filter(|place| place.0 == pool).collect();
        let shared: BTreeSet<Place> = stays().filter(|use_| use_.share.is_some()).map(|use_| use_.place).collect();
        let of_units = in_use.iter().filter_map(|place| self.consumption.get(place)).copied().flatten();
        for consumed in of_units {
            for (counter, amount) in &consumed.amounts {
                if let Some(left) = left.get_mut(usize::from(*counter)) {
                    *left = left.saturating_sub(*amount);
                }
            }
            if let Some(known) = groups.at_mut(consumed.set) {
                *known = known.joined_by(&consumed.groups);
            }
        }
        for consumed in taken.consumption(pool, &shared) {
            for (counter, amount) in &consumed.amounts {
                if let Some(left) = left.get_mut(usize::from(*counter)) {
                    *left = left.saturating_sub(*amount);
                }
            }
            if let Some(known) = groups.at_mut(consumed.set) {
                if !known.admits(&consumed.groups) {
                    return false;
                }
                *known = known.joined_by(&consumed.groups);
            }
        }
        left.iter().all(|left| *left >= 0)
    }
}

/// Search for the cheapest units, of those that are in the way.
struct Search<'d, 'p, 'a, 't, 's> {
    displaced: &'d Displaced<'a, 't, 's>,
    taken: &'d Taken<'p, 't, 's>,
    open: Vec<usize>,
    best: Option<(u64, Vec<usize>)>,
    left: usize,
}

impl Search<'_, '_, '_, '_, '_> {
    /// Tries the sets that have the units of `gone`, and any of the open ones from a number on. The depth is at most the number
    /// of units.
    fn run(&mut self, gone: &mut Vec<usize>, from: usize, price: u64) {
        if self.left == 0 || self.best.as_ref().is_some_and(|(best, _)| *best <= price) {
            return;
        }
        self.left -= 1;
        self.displaced.ground.table.meter.add(self.displaced.work);
        if self.displaced.applies(self.taken, gone) {
            self.best = Some((price, gone.clone()));
            return;
        }
        // The rest together must suffice.
        let rest: Vec<usize> = gone.iter().chain(self.open.iter().skip(from)).copied().collect();
        if !self.displaced.applies(self.taken, &rest) {
            return;
        }
        for number in from..self.open.len() {
            let Some(&unit) = self.open.get(number) else { return };
            gone.push(unit);
            self.run(gone, number + 1, price.saturating_add(self.displaced.price(&[unit])));
            gone.pop();
        }
    }
}

impl<'p, 't, 's> Taken<'p, 't, 's> {
    fn new(table: &'t Table<'s>, partial: &'p Partial<'p>) -> Self {
        let all = partial.chosen.iter().chain(&partial.admin);
        let consuming = all.filter(|chosen| table.candidate(chosen.device).consumes_counters());
        let pools = consuming.map(|chosen| table.candidate(chosen.device).pool).collect();
        let places = partial.chosen.iter().map(|chosen| place_of(table, chosen.device)).collect();
        Self { partial, places, pools, table }
    }

    /// Returns what the devices of a pool take, those with admin access, too. A device that has a share already, or gets a
    /// second one, takes nothing more.
    fn consumption(&self, pool: PoolIx, shared: &BTreeSet<Place>) -> impl Iterator<Item = &'s Consumed> {
        let table = self.table;
        let mut seen: BTreeSet<DeviceIx> = BTreeSet::new();
        let mut is_new = |device: DeviceIx| {
            let is_shared = || table.in_use(device).is_some_and(DeviceUsage::is_shared);
            let has_share = || shared.contains(&place_of(table, device)) || is_shared();
            !table.is_shareable(device) || (seen.insert(device) && !has_share())
        };
        let all = self.partial.chosen.iter().chain(&self.partial.admin).map(|chosen| chosen.device);
        let of_pool = all.filter(|device| table.candidate(*device).pool == pool);
        let devices: Vec<DeviceIx> = of_pool.filter(|device| is_new(*device)).collect();
        devices.into_iter().flat_map(move |device| table.consumption(device).unwrap_or_default())
    }

    /// Returns true if the capacities of the chosen devices suffice for all shares.
    fn has_capacity<'u, U: Iterator<Item = &'u Use<'u>>>(&self, stays: impl Fn() -> U) -> bool {
        let shared: BTreeSet<DeviceIx> = self
            .partial
            .chosen
            .iter()
            .map(|chosen| chosen.device)
            .filter(|device| self.table.is_shareable(*device))
            .collect();
        shared.into_iter().all(|device| {
            let capacities = self.table.capacities(device).unwrap_or_default();
            let place = place_of(self.table, device);
            let mut names = capacities.iter().enumerate();
            names.all(|(number, capacity)| {
                let others = stays().filter(|use_| use_.place == place).flat_map(|use_| use_.share.unwrap_or_default());
                let others = others.filter(|(name, _)| name == capacity.name).map(|(_, amount)| amount.nanos());
                let own = self.partial.chosen.iter().filter(|chosen| chosen.device == device).map(|chosen| match self
                    .table
                    .fit(chosen.alternative, device)
                {
                    Ok(CapacityCheck::Takes(amounts)) => {
                        amounts.get(number).map_or(0, |amount| amount.quantity.nanos())
                    }
                    _ => 0,
                });
                let before = self.table.consumed(device, capacity.name).nanos();
                others.chain(own).fold(before, i128::saturating_add) <= capacity.value().nanos()
            })
        })
    }
}

fn place_of(table: &Table<'_>, device: DeviceIx) -> Place {
    let candidate = table.candidate(device);
    (candidate.pool, candidate.number())
}

/// Returns the devices of the node's pools, here or on other nodes, by driver, pool and name. Those here come first in their
/// pool.
fn places<'s>(table: &Table<'s>) -> BTreeMap<[&'s str; 3], Place> {
    let mut places = BTreeMap::new();
    for pool in (0..table.candidates.pool_count()).map(PoolIx::from) {
        let object = table.candidates.pool(pool);
        let devices = object.all_slices().flat_map(slice_devices);
        for (number, device) in devices.enumerate() {
            places.insert([object.driver(), object.name(), device.name.as_str()], (pool, number));
        }
    }
    places
}

/// Returns what a device consumes, by its place; nothing if its slice is not sound.
fn consumed<'s>(table: &Table<'s>, (pool, number): Place) -> &'s [Consumed] {
    let object = table.candidates.pool(pool);
    let mut devices =
        object.all_slices().flat_map(|slice| slice_devices(slice).iter().map(move |device| (slice, device)));
    let (Some((slice, device)), Ok(counters)) = (devices.nth(number), table.counters(pool)) else { return &[] };
    let is_used = table.candidates.pool_use(pool).is_some_and(|used| used.device(&device.name).is_some());
    if is_used || name_of(slice).is_empty() {
        return &[];
    }
    counters.consumption(slice, device, number).unwrap_or_default()
}

impl Measure for Displaced<'_, '_, '_> {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let (units, is_rough) = self.least(partial);
        if !is_rough {
            return self.price(&units);
        }
        if partial.is_whole() {
            self.is_rough.set(true);
            return self.price(&units);
        }
        let taken = Taken::new(self.ground.table, partial);
        let forced: Vec<usize> = (0..self.units.len()).filter(|unit| self.is_forced(*unit, &taken)).collect();
        self.price(&forced)
    }

    fn is_rough(&self) -> bool {
        self.is_rough.get()
    }

    /// A device that a unit uses is like no other.
    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        let place = place_of(self.ground.table, device);
        let is_used = self.consumption.contains_key(&place);
        facts.number(if is_used { wide(usize::from(device)) } else { u64::MAX });
    }

    // What units hold of other devices is told by nothing.
    fn tell_node(&self, _: &mut Facts) -> bool {
        false
    }

    fn displaced(&self, partial: &Partial<'_>) -> Vec<String> {
        let (mut units, _) = self.least(partial);
        units.sort_unstable();
        units.iter().filter_map(|unit| self.units.get(*unit)).map(|unit| unit.id.clone()).collect()
    }
}
