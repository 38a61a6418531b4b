//! Branches that need not be searched.
//!
//! A search that goes well pays nothing for this: pruning starts when the walk has turned back a few times. It then looks at
//! every device for every alternative, and only goes on if nothing of what it looks at is an error: from there on a search can
//! have no other end than a solution or none (a request for all devices under a constraint is left alone, since it can
//! end in an error). Nor does it go on if a device gives back of what it should take: what is left must only become less.
//! Leaving out branches *without* a solution then does not change which solution is the first.
//!
//! | technique | a branch has no solution if |
//! |---|---|
//! | [`Technique::Count`] | a request finds fewer free devices than it still wants |
//! | [`Technique::Compete`] | requests want more devices together than there are free ones for any of them |
//! | [`Technique::Match`] | there is no value that all devices chosen have, and enough free ones for each request left |
//! | [`Technique::Distinct`] | fewer values are free than the devices that are still wanted have at the least |
//! | [`Technique::Counters`] | the counters of one name do not suffice for what is still wanted, at the least each |
//! | [`Technique::Devices`] | another device of the same kind was tried at the same place |
//! | [`Technique::Requests`] | two requests for the same would change places |
//!
//! The first five are bounds: what they count is never less than what a solution could use. For the last two, a solution
//! in the branch left out would give one in a branch before it, by exchanging the two devices or the devices of the two
//! requests, and that branch was searched in vain.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::matching::ListTypes;
use dra_attrs::value::Scalar;

use super::attempt::Attempt;
use super::bits::Bits;
use super::table::{Fit, Selection, Table};
use crate::budget::{Halt, Meter};
use crate::capacity::Amount;
use crate::counters::Consumption;
use crate::error::AllocateError;
use crate::features::Feature;
use crate::request::{Alternative, ConstraintKind, Mode};
use crate::state::DeviceUse;

/// A way of leaving out branches. All are on; tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
#[expect(clippy::exhaustive_enums, reason = "for the project's own tests")]
pub enum Technique {
    Count,
    Compete,
    Match,
    Distinct,
    Counters,
    Devices,
    Requests,
}

/// How often a search turns back before it looks for branches to leave out: nearly all that find something do not turn
/// back that often.
const PATIENCE: usize = 3;

/// A set of techniques.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Techniques(u8);

#[doc(hidden)]
impl Techniques {
    /// How many techniques there are.
    pub const COUNT: u8 = 7;

    /// The set with the techniques whose bits are set. They are used from the first time on that a search turns back.
    #[must_use]
    pub const fn impatient(bits: u8) -> Self {
        Self(bits | 1 << Self::COUNT)
    }

    /// How often a search turns back before it looks for branches to leave out.
    pub(crate) const fn patience(self) -> usize {
        if self.0 >> Self::COUNT == 0 { PATIENCE } else { 0 }
    }

    const fn has(self, technique: Technique) -> bool {
        self.0 & (1 << technique as u8) != 0
    }
}

impl Default for Techniques {
    fn default() -> Self {
        Self((1 << Self::COUNT) - 1)
    }
}

/// What every device means to every alternative and constraint.
pub(crate) struct Prune<'s> {
    techniques: Techniques,
    /// By alternative: the devices that it could be given as the first one.
    usable: Vec<Bits>,
    /// By alternative: what each of its devices takes at the least of the counters of its pool, by name.
    appetites: Vec<Option<Appetite>>,
    /// By column: the devices that have a value.
    holders: Vec<BTreeMap<Scalar<'s>, Bits>>,
    /// By column: how many values each device has.
    sizes: Vec<Vec<usize>>,
    shareable: Bits,
    /// By device: devices of one kind can be exchanged.
    kinds: Vec<usize>,
    /// By alternative: an earlier one in the same claim that asks for the same.
    twins: Vec<Option<usize>>,
    /// What is wanted from each request of each claim on.
    demands: Vec<Vec<Vec<Demand>>>,
}

/// What devices take of counters at the least, if they are all of one pool.
struct Appetite {
    pool: usize,
    least: Vec<i128>,
}

/// What one of several alternatives still wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) alternative: usize,
    pub(crate) missing: usize,
    /// The first device that it may be given.
    pub(crate) from: usize,
}

/// What one request still wants, or several that want the same.
#[derive(Clone, Debug)]
struct Demand {
    claim: usize,
    /// What each of the requests wants, by alternative.
    options: Vec<Want>,
    /// The fewest devices that they want together.
    total: usize,
}

/// A demand, and the devices that are free for it, by alternative.
struct Market<'d> {
    demand: &'d Demand,
    free: Vec<Bits>,
}

#[expect(clippy::indexing_slicing, reason = "alternatives, columns and devices are positions in the table's lists")]
impl<'s> Prune<'s> {
    /// Looks at everything, each device for each alternative being a step; nothing comes back if something is an error, or
    /// could become one.
    pub(crate) fn new(
        table: &Table<'s>,
        all: &[Vec<usize>],
        techniques: Techniques,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Self>, Halt> {
        match Self::look(table, all, techniques, meter) {
            Err(Halt::Stopped) => Err(Halt::Stopped),
            looked => Ok(looked.ok().flatten()),
        }
    }

    fn look(
        table: &Table<'s>,
        all: &[Vec<usize>],
        techniques: Techniques,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Self>, Halt> {
        let alternatives = &table.plan.alternatives;
        if alternatives.iter().any(|asked| asked.mode == Mode::All && !asked.constraints.is_empty()) {
            return Ok(None);
        }
        if gives_back(table, meter)? {
            return Ok(None);
        }
        let devices = table.candidates.all();
        let mut shareable = Bits::new(devices);
        (0..devices).filter(|device| table.is_shareable(*device)).for_each(|device| shareable.insert(device));
        let holders = (0..table.plan.columns.len()).map(|column| holders(table, column));
        let holders = holders.collect::<Result<Vec<_>, _>>()?;
        let sizes = holders.iter().map(|holders| sizes(holders, devices)).collect();
        let usable = (0..alternatives.len()).map(|alternative| usable(table, alternative, meter));
        let usable = usable.collect::<Result<Vec<_>, _>>()?;
        let appetites = usable.iter().map(|usable| appetite(table, usable)).collect::<Result<_, _>>()?;
        let kinds = kinds(table, &usable)?;
        let twins = (0..alternatives.len()).map(|alternative| twin(table, alternative)).collect();
        let demands = demands(table, all, &usable);
        Ok(Some(Self { techniques, usable, appetites, holders, sizes, shareable, kinds, twins, demands }))
    }

    /// Whether a device is of a kind that was tried in vain at the same place.
    pub(crate) fn is_tried(&self, tried: &[usize], device: usize) -> bool {
        self.techniques.has(Technique::Devices) && tried.iter().any(|other| self.kinds[*other] == self.kinds[device])
    }

    /// The first device that a request may begin with: not before that of a request for the same.
    pub(crate) fn begin(&self, attempt: &Attempt<'_, '_>, alternative: usize) -> usize {
        if !self.techniques.has(Technique::Requests) {
            return 0;
        }
        let twin = self.twins[alternative];
        let first = twin.and_then(|twin| attempt.chosen.iter().find(|chosen| chosen.alternative == twin));
        first.map_or(0, |chosen| chosen.device)
    }

    /// Whether all claims can't be served, before anything is chosen.
    pub(crate) fn is_hopeless(&self, table: &Table<'s>) -> bool {
        let first = self.demands.first().and_then(|requests| requests.first());
        first.is_some_and(|demands| self.fails(table, &Attempt::new(table), demands.iter()))
    }

    /// Whether the rest can't be served when a request of a claim still wants some devices.
    pub(crate) fn is_hopeless_from(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        (claim, request): (usize, usize),
        want: Want,
    ) -> bool {
        let current = Demand { claim, options: vec![want], total: want.missing };
        self.fails(table, attempt, std::iter::once(&current).chain(&self.demands[claim][request + 1]))
    }

    fn fails<'d>(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        demands: impl Iterator<Item = &'d Demand>,
    ) -> bool {
        let has = |technique| self.techniques.has(technique);
        let taken = attempt.taken();
        let markets: Vec<Market<'_>> = demands
            .map(|demand| {
                let free = demand.options.iter().map(|want| self.free(table, taken, *want)).collect();
                Market { demand, free }
            })
            .collect();
        (has(Technique::Count) && !markets.iter().all(Market::can_serve_one))
            || (has(Technique::Compete) && self.compete(table, &markets))
            || (has(Technique::Counters) && self.counters_run_out(table, attempt, &markets))
            || self.breaks_constraint(table, attempt, &markets)
    }

    /// The devices that a request could still be given.
    fn free(&self, table: &Table<'_>, taken: &Bits, want: Want) -> Bits {
        let usable = &self.usable[want.alternative];
        let free =
            if table.alternative(want.alternative).admin_access { usable.clone() } else { usable.without(taken) };
        free.starting_at(want.from)
    }

    /// Whether no device can serve several of the requests. Devices that can be shared could, and those for admin access.
    fn is_exclusive(&self, table: &Table<'_>, demand: &Demand) -> bool {
        demand.options.iter().all(|want| {
            !table.alternative(want.alternative).admin_access
                && !self.usable[want.alternative].intersects(&self.shareable)
        })
    }

    /// Whether requests want more devices together than there are.
    fn compete(&self, table: &Table<'_>, markets: &[Market<'_>]) -> bool {
        let exclusive = markets.iter().filter(|market| self.is_exclusive(table, market.demand));
        let sets: Vec<(usize, Bits)> = exclusive.map(|market| (market.demand.total, market.union())).collect();
        sets.iter().any(|(_, set)| total_inside(&sets, set) > set.len())
    }

    /// Whether a constraint of a claim can't hold with the devices that are left.
    fn breaks_constraint(&self, table: &Table<'s>, attempt: &Attempt<'_, 's>, markets: &[Market<'_>]) -> bool {
        // Without a value of the first device there is nothing to count on.
        if table.lists() == ListTypes::Disabled {
            return false;
        }
        markets.chunk_by(|left, right| left.demand.claim == right.demand.claim).any(|own| {
            let claim = own.first().map_or(0, |market| market.demand.claim);
            table.plan.claims[claim].constraints.iter().enumerate().any(|(index, constraint)| {
                // A request for no device has nothing to agree with the others.
                let wanted = own.iter().filter(|market| market.demand.total > 0);
                let bound: Vec<_> = wanted.filter(|market| is_bound(table, market.demand, index)).collect();
                let at = (claim, index);
                match constraint.kind {
                    ConstraintKind::Match => {
                        self.techniques.has(Technique::Match) && !self.can_match(table, attempt, at, &bound)
                    }
                    ConstraintKind::Distinct => {
                        self.techniques.has(Technique::Distinct) && self.too_few_values(table, attempt, at, &bound)
                    }
                }
            })
        })
    }

    fn can_match(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        (claim, constraint): (usize, usize),
        bound: &[&Market<'_>],
    ) -> bool {
        let Some(first) = bound.first() else { return true };
        let suffices = |value: &Scalar<'s>| self.suffices(table, value, constraint, bound);
        match attempt.common(claim, constraint) {
            Some(common) => common.iter().any(suffices),
            None => first
                .demand
                .options
                .iter()
                .any(|want| self.holders[column(table, want, constraint)].keys().any(suffices)),
        }
    }

    /// Whether the devices that have a value are enough for every request that a constraint binds.
    fn suffices(&self, table: &Table<'_>, value: &Scalar<'_>, constraint: usize, bound: &[&Market<'_>]) -> bool {
        let narrowed: Vec<Market<'_>> = bound
            .iter()
            .map(|market| {
                let free = market.demand.options.iter().zip(&market.free).map(|(want, free)| {
                    let holders = self.holders[column(table, want, constraint)].get(value);
                    holders.map_or_else(|| free.without(free), |holders| holders.and(free))
                });
                Market { demand: market.demand, free: free.collect() }
            })
            .collect();
        narrowed.iter().all(Market::can_serve_one)
            && !(self.techniques.has(Technique::Compete) && self.compete(table, &narrowed))
    }

    /// Whether fewer values are free than the devices wanted have at the least, or too few devices have only free values.
    fn too_few_values(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        (claim, constraint): (usize, usize),
        bound: &[&Market<'_>],
    ) -> bool {
        let taken = attempt.distinct(claim, constraint);
        let mut values = BTreeSet::new();
        let mut needed = 0_usize;
        for market in bound {
            let mut is_possible = false;
            let mut sizes = Vec::new();
            for (want, free) in market.demand.options.iter().zip(&market.free) {
                let column = column(table, want, constraint);
                let holders = &self.holders[column];
                let mut devices = free.clone();
                for holders in taken.iter().filter_map(|value| holders.get(value)) {
                    devices = devices.without(holders);
                }
                is_possible |= devices.len() >= want.missing;
                values.extend(
                    holders.iter().filter(|(_, holders)| holders.intersects(&devices)).map(|(value, _)| *value),
                );
                // A device without a value is given to nobody.
                sizes.extend(devices.iter().map(|device| self.sizes[column][device]).filter(|size| *size > 0));
            }
            if !is_possible {
                return true;
            }
            needed = needed.saturating_add(smallest(sizes, market.demand.total));
        }
        values.len() < needed
    }

    /// Whether the counters of one name run out: each device takes some of it, from whichever set.
    fn counters_run_out(&self, table: &Table<'s>, attempt: &Attempt<'_, 's>, markets: &[Market<'_>]) -> bool {
        if !table.has(Feature::PartitionableDevices) {
            return false;
        }
        let exclusive = markets.iter().filter(|market| self.is_exclusive(table, market.demand));
        let markets: Vec<_> = exclusive.filter_map(|market| Some((market, self.appetite(market.demand)?))).collect();
        let sets: Vec<(usize, Bits)> =
            markets.iter().map(|(market, _)| (market.demand.total, market.union())).collect();
        markets.iter().zip(&sets).any(|((_, appetite), (_, set))| {
            let wanted = i128::try_from(total_inside(&sets, set)).unwrap_or(i128::MAX);
            let left = attempt.counters_left(appetite.pool);
            appetite.least.iter().zip(left).any(|(least, left)| least.saturating_mul(wanted) > left)
        })
    }

    /// What each device of a demand takes at the least, if it is the same pool whichever alternative is taken.
    fn appetite(&self, demand: &Demand) -> Option<Appetite> {
        let mut options = demand.options.iter().map(|want| self.appetites[want.alternative].as_ref());
        let first = options.next()??;
        let mut least = first.least.clone();
        for other in options {
            let other = other.filter(|other| other.pool == first.pool)?;
            least.iter_mut().zip(&other.least).for_each(|(least, other)| *least = (*least).min(*other));
        }
        Some(Appetite { pool: first.pool, least })
    }
}

impl Market<'_> {
    /// Whether some alternative finds as many devices as one request wants.
    fn can_serve_one(&self) -> bool {
        self.demand.options.iter().zip(&self.free).any(|(want, free)| free.len() >= want.missing)
    }

    /// The devices of all alternatives.
    fn union(&self) -> Bits {
        let mut sets = self.free.iter();
        let mut union = sets.next().cloned().unwrap_or_else(|| Bits::new(0));
        sets.for_each(|set| union.union(set));
        union
    }
}

/// The sum of the smallest numbers.
fn smallest(mut numbers: Vec<usize>, count: usize) -> usize {
    numbers.sort_unstable();
    numbers.into_iter().take(count).fold(0, usize::saturating_add)
}

/// What the demands want together that can only take devices of a set.
fn total_inside(sets: &[(usize, Bits)], set: &Bits) -> usize {
    let inside = sets.iter().filter(|(_, other)| other.is_subset(set));
    inside.map(|(total, _)| *total).fold(0, usize::saturating_add)
}

/// What is wanted from each request of each claim on. Requests that want the same from the same devices are one demand.
fn demands(table: &Table<'_>, all: &[Vec<usize>], usable: &[Bits]) -> Vec<Vec<Vec<Demand>>> {
    let mut rest: Vec<Demand> = Vec::new();
    let mut demands = Vec::new();
    for (claim, object) in table.plan.claims.iter().enumerate().rev() {
        let mut own = vec![rest.clone()];
        for request in object.requests.iter().rev() {
            let want = |alternative| Want { alternative, missing: table.wanted(all, alternative), from: 0 };
            let options: Vec<Want> = request.alternatives.clone().map(want).collect();
            let total = options.iter().map(|want| want.missing).min().unwrap_or(0);
            let same =
                rest.iter_mut().find(|other| other.claim == claim && is_alike(table, usable, &other.options, &options));
            match same {
                Some(other) => other.total = other.total.saturating_add(total),
                None => rest.insert(0, Demand { claim, options, total }),
            }
            own.insert(0, rest.clone());
        }
        demands.insert(0, own);
    }
    demands
}

/// Whether two requests want as many of the same devices under the same constraints.
fn is_alike(table: &Table<'_>, usable: &[Bits], left: &[Want], right: &[Want]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            let (one, other) = (table.alternative(left.alternative), table.alternative(right.alternative));
            left.missing == right.missing
                && one.constraints == other.constraints
                && one.admin_access == other.admin_access
                && usable.get(left.alternative) == usable.get(right.alternative)
        })
}

/// Whether a constraint applies to whatever a request takes.
fn is_bound(table: &Table<'_>, demand: &Demand, constraint: usize) -> bool {
    demand.options.iter().all(|want| {
        let constraints = &table.alternative(want.alternative).constraints;
        constraints.iter().any(|(index, _)| *index == constraint)
    })
}

fn column(table: &Table<'_>, want: &Want, constraint: usize) -> usize {
    let constraints = &table.alternative(want.alternative).constraints;
    constraints.iter().find(|(index, _)| *index == constraint).map_or(0, |(_, column)| *column)
}

fn holders<'s>(table: &Table<'s>, column: usize) -> Result<BTreeMap<Scalar<'s>, Bits>, AllocateError> {
    let mut holders: BTreeMap<Scalar<'s>, Bits> = BTreeMap::new();
    for device in 0..table.candidates.all() {
        for value in table.values(column, device)?.values() {
            holders.entry(*value).or_insert_with(|| Bits::new(table.candidates.all())).insert(device);
        }
    }
    Ok(holders)
}

/// How many values each device has.
#[expect(clippy::indexing_slicing, reason = "devices are positions in the list")]
fn sizes(holders: &BTreeMap<Scalar<'_>, Bits>, devices: usize) -> Vec<usize> {
    let mut sizes = vec![0_usize; devices];
    for device in holders.values().flat_map(Bits::iter) {
        sizes[device] = sizes[device].saturating_add(1);
    }
    sizes
}

/// The devices that an alternative could be given, as far as that does not depend on others.
fn usable(table: &Table<'_>, alternative: usize, meter: &mut Meter<'_>) -> Result<Bits, Halt> {
    let mut usable = Bits::new(table.candidates.all());
    let admin = table.alternative(alternative).admin_access;
    for device in 0..table.candidates.all() {
        meter.step()?;
        let is_held = !admin && table.in_use(device).is_some_and(DeviceUse::is_exclusive);
        let is_selected = table.selection(alternative, device)? == Selection::Admitted;
        let fits = !table.has(Feature::ConsumableCapacity) || matches!(table.fit(alternative, device)?, Fit::Takes(_));
        if table.has(Feature::PartitionableDevices) {
            table.consumption(device)?;
        }
        if !is_held && is_selected && fits && table.may_skip(device) && table.taint(alternative, device).is_none() {
            usable.insert(device);
        }
    }
    Ok(usable)
}

/// What makes two devices exchangeable: the alternatives that can use them, their values under every constraint, and what
/// they consume of which pool's counters.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'s> {
    usable: Vec<bool>,
    values: Vec<Vec<Scalar<'s>>>,
    /// Why there is no value, where there is none.
    lacks: Vec<String>,
    /// Different for devices that can be shared or once were: what others left of them differs.
    shared: Option<usize>,
    consumption: Option<(usize, Vec<Taken<'s>>)>,
}

/// What a device takes of one counter set: its groups, and amounts by counter.
type Taken<'s> = (usize, &'s [String], Vec<(usize, i128)>);

fn kinds<'s>(table: &Table<'s>, usable: &[Bits]) -> Result<Vec<usize>, AllocateError> {
    let mut known: BTreeMap<Kind<'s>, usize> = BTreeMap::new();
    let mut kinds = Vec::with_capacity(table.candidates.all());
    for device in 0..table.candidates.all() {
        let (mut values, mut lacks) = (Vec::new(), Vec::new());
        for column in 0..table.plan.columns.len() {
            let set = table.values(column, device)?;
            lacks.push(if set.values().is_empty() { set.to_string() } else { String::new() });
            values.push(set.values().to_vec());
        }
        let candidate = table.candidate(device);
        let was_shared = table.in_use(device).is_some_and(DeviceUse::is_shared);
        let consumes = candidate.device.consumes_counters.as_ref().is_some_and(|consumed| !consumed.is_empty());
        let consumption = consumes && table.has(Feature::PartitionableDevices);
        let kind = Kind {
            usable: usable.iter().map(|usable| usable.contains(device)).collect(),
            values,
            lacks,
            shared: (table.is_shareable(device) || was_shared).then_some(device),
            consumption: if consumption { Some((candidate.pool, taken(table.consumption(device)?))) } else { None },
        };
        let next = known.len();
        kinds.push(*known.entry(kind).or_insert(next));
    }
    Ok(kinds)
}

fn taken<'s>(consumption: &[Consumption<'s>]) -> Vec<Taken<'s>> {
    consumption.iter().map(|consumed| (consumed.set, consumed.groups, consumed.amounts.clone())).collect()
}

/// What the devices of a set take at the least of each name of counters, if they are all of one pool.
fn appetite(table: &Table<'_>, devices: &Bits) -> Result<Option<Appetite>, AllocateError> {
    let pools = || devices.iter().map(|device| table.candidate(device).pool);
    let Some(pool) = pools().next().filter(|first| pools().all(|pool| pool == *first)) else { return Ok(None) };
    if !table.has(Feature::PartitionableDevices) {
        return Ok(None);
    }
    let counters = table.counters(pool)?;
    let mut least: Option<Vec<i128>> = None;
    for device in devices.iter() {
        let amounts = counters.by_name(table.consumption(device)?);
        least = Some(match least {
            None => amounts,
            Some(least) => least.into_iter().zip(amounts).map(|(left, right)| left.min(right)).collect(),
        });
    }
    Ok(least.map(|least| Appetite { pool, least }))
}

/// Whether a device consumes less than nothing of a counter or of a capacity.
fn gives_back(table: &Table<'_>, meter: &mut Meter<'_>) -> Result<bool, Halt> {
    let (counters, capacity) = (table.has(Feature::PartitionableDevices), table.has(Feature::ConsumableCapacity));
    for device in 0..table.candidates.all() {
        meter.step()?;
        let consumed = if counters { table.consumption(device)? } else { &[] };
        if consumed.iter().flat_map(|consumed| &consumed.amounts).any(|(_, amount)| *amount < 0) {
            return Ok(true);
        }
        for alternative in 0..table.plan.alternatives.len() {
            let is_negative = |fit: &Fit<'_>| matches!(fit, Fit::Takes(amounts) if amounts.iter().any(is_below_zero));
            if capacity && is_negative(table.fit(alternative, device)?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn is_below_zero(amount: &Amount<'_>) -> bool {
    amount.quantity.nanos() < 0
}

/// The nearest earlier request of the claim that asks for the same devices under the same constraints. There is none for
/// a constraint that asks more of the first device than of others.
fn twin(table: &Table<'_>, alternative: usize) -> Option<usize> {
    let asked = table.alternative(alternative);
    if table.lists() == ListTypes::Disabled && !asked.constraints.is_empty() {
        return None;
    }
    let requests = table.plan.claims.get(asked.claim)?.requests.iter().filter(|request| !request.is_list);
    let singles: Vec<usize> = requests.flat_map(|request| request.alternatives.clone()).collect();
    if !singles.contains(&alternative) {
        return None;
    }
    singles.into_iter().rfind(|other| *other < alternative && is_same(table.alternative(*other), asked))
}

fn is_same(left: &Alternative<'_>, right: &Alternative<'_>) -> bool {
    let texts = |asked: &Alternative<'_>| -> Vec<Option<String>> {
        asked.selectors().map(|selector| selector.text.map(str::to_owned)).collect()
    };
    let amounts = |asked: &Alternative<'_>| -> Vec<(String, i128)> {
        asked.capacity.iter().map(|(name, amount)| ((*name).to_owned(), amount.quantity.nanos())).collect()
    };
    left.mode == right.mode
        && left.mode != Mode::All
        && left.class.name == right.class.name
        && left.admin_access == right.admin_access
        && left.tolerations == right.tolerations
        && left.constraints == right.constraints
        && texts(left) == texts(right)
        && amounts(left) == amounts(right)
}
