//! Branches that need not be searched.
//!
//! A search that goes well pays nothing for this: pruning starts when the walk first turns back. It then looks at every
//! device for every alternative, and only goes on if nothing of what it looks at is an error: from there on a search can
//! have no other end than a solution or none (a request for all devices under a constraint is left alone, since it can
//! end in an error). Leaving out branches *without* a solution then does not change which solution is the first.
//!
//! | technique | a branch has no solution if |
//! |---|---|
//! | [`Technique::Count`] | a request finds fewer free devices than it still wants |
//! | [`Technique::Compete`] | requests want more devices together than there are free ones for any of them |
//! | [`Technique::Match`] | there is no value that all devices chosen have, and enough free ones for each request left |
//! | [`Technique::Distinct`] | fewer values are free than devices are still wanted |
//! | [`Technique::Counters`] | the counters of one name do not suffice for what is still wanted, at the least each |
//! | [`Technique::Devices`] | another device of the same kind was tried at the same place |
//! | [`Technique::Requests`] | two requests for the same would change places |
//!
//! The first five are bounds: what they count is never less than what a solution could use. For the last two, a solution
//! in the branch left out would give one in a branch before it, by exchanging the two devices or the devices of the two
//! requests, and that branch was searched in vain.

use std::collections::BTreeMap;

use dra_attrs::matching::ListTypes;
use dra_attrs::value::Scalar;

use super::attempt::Attempt;
use super::bits::Bits;
use super::table::{Fit, Selection, Table};
use crate::counters::Consumption;
use crate::error::AllocateError;
use crate::features::Feature;
use crate::request::{Alternative, ConstraintKind, Mode};

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

/// A set of techniques.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Techniques(u8);

#[doc(hidden)]
impl Techniques {
    /// How many techniques there are.
    pub const COUNT: u8 = 7;

    /// The set with the techniques whose bits are set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
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
    /// By column: the devices that have a value.
    holders: Vec<BTreeMap<Scalar<'s>, Bits>>,
    shareable: Bits,
    /// By device: devices of one kind can be exchanged.
    kinds: Vec<usize>,
    /// By alternative: an earlier one in the same claim that asks for the same.
    twins: Vec<Option<usize>>,
}

/// What a request still wants.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) alternative: usize,
    pub(crate) missing: usize,
    /// The first device that it may be given.
    pub(crate) from: usize,
}

/// What one request still wants: one of several alternatives.
pub(crate) type Wants = Vec<Want>;

#[expect(clippy::indexing_slicing, reason = "alternatives, columns and devices are positions in the table's lists")]
impl<'s> Prune<'s> {
    /// Looks at everything; nothing comes back if something is an error, or could become one.
    pub(crate) fn new(table: &Table<'s>, techniques: Techniques) -> Option<Self> {
        let alternatives = &table.plan.alternatives;
        if alternatives.iter().any(|asked| asked.mode == Mode::All && !asked.constraints.is_empty()) {
            return None;
        }
        let devices = table.candidates.all();
        let mut shareable = Bits::new(devices);
        (0..devices).filter(|device| table.is_shareable(*device)).for_each(|device| shareable.insert(device));
        let holders = (0..table.plan.columns.len()).map(|column| holders(table, column));
        let holders = holders.collect::<Result<Vec<_>, _>>().ok()?;
        let usable = (0..alternatives.len()).map(|alternative| usable(table, alternative));
        let usable = usable.collect::<Result<Vec<_>, _>>().ok()?;
        let kinds = kinds(table, &usable).ok()?;
        let twins = (0..alternatives.len()).map(|alternative| twin(table, alternative)).collect();
        Some(Self { techniques, usable, holders, shareable, kinds, twins })
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
        twin.and_then(|twin| attempt.chosen.iter().find(|chosen| chosen.alternative == twin))
            .map_or(0, |chosen| chosen.device)
    }

    /// Whether what is still wanted can't be had. The first list is that of the claim that is being served.
    pub(crate) fn is_hopeless(&self, table: &Table<'s>, attempt: &Attempt<'_, 's>, wanted: &[Wants]) -> bool {
        let has = |technique| self.techniques.has(technique);
        let taken = attempt.taken();
        let free = |want: &Want| self.free(table, taken, *want);
        (has(Technique::Count) && !wanted.iter().all(|wants| wants.iter().any(|want| free(want).len() >= want.missing)))
            || (has(Technique::Compete) && self.compete(table, wanted, &free))
            || (has(Technique::Counters) && self.counters_run_out(table, attempt, wanted, &free))
            || self.breaks_constraint(table, attempt, wanted, &free)
    }

    /// The devices that a request could still be given.
    fn free(&self, table: &Table<'_>, taken: &Bits, want: Want) -> Bits {
        let usable = &self.usable[want.alternative];
        let free =
            if table.alternative(want.alternative).admin_access { usable.clone() } else { usable.without(taken) };
        free.starting_at(want.from)
    }

    /// Whether requests want more devices together than there are. Devices that can be shared or are taken for admin
    /// access could serve several requests.
    fn compete(&self, table: &Table<'_>, wanted: &[Wants], free: &dyn Fn(&Want) -> Bits) -> bool {
        let sets: Vec<(usize, Bits)> = wanted.iter().filter_map(|wants| self.together(table, wants, free)).collect();
        sets.iter().any(|(_, set)| {
            let inside = sets.iter().filter(|(_, other)| other.is_subset(set));
            inside.map(|(missing, _)| *missing).fold(0, usize::saturating_add) > set.len()
        })
    }

    /// The fewest devices that a request wants, and where they can come from.
    fn together(&self, table: &Table<'_>, wants: &Wants, free: &dyn Fn(&Want) -> Bits) -> Option<(usize, Bits)> {
        let is_shared = |want: &Want| {
            table.alternative(want.alternative).admin_access
                || self.usable[want.alternative].and(&self.shareable).len() > 0
        };
        if wants.iter().any(is_shared) {
            return None;
        }
        let mut sets = wants.iter().map(free);
        let mut union = sets.next()?;
        sets.for_each(|set| union.union(&set));
        Some((wants.iter().map(|want| want.missing).min()?, union))
    }

    /// Whether a constraint of a claim can't hold with the devices that are left.
    fn breaks_constraint(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        wanted: &[Wants],
        free: &dyn Fn(&Want) -> Bits,
    ) -> bool {
        let claim_of = |wants: &Wants| wants.first().map(|want| table.alternative(want.alternative).claim);
        let mut rest = wanted;
        while let Some(claim) = rest.first().and_then(claim_of) {
            let end = rest.iter().position(|wants| claim_of(wants) != Some(claim)).unwrap_or(rest.len());
            let (own, others) = rest.split_at(end);
            rest = others;
            for (index, constraint) in table.plan.claims[claim].constraints.iter().enumerate() {
                let bound: Vec<_> = own.iter().filter(|wants| is_bound(table, wants, index)).collect();
                let breaks = match constraint.kind {
                    ConstraintKind::Match => {
                        self.techniques.has(Technique::Match)
                            && !self.can_match(table, attempt, (claim, index), &bound, free)
                    }
                    ConstraintKind::Distinct => {
                        self.techniques.has(Technique::Distinct)
                            && self.too_few_values(table, attempt, (claim, index), &bound, free)
                    }
                };
                if breaks {
                    return true;
                }
            }
        }
        false
    }

    fn can_match(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        (claim, constraint): (usize, usize),
        bound: &[&Wants],
        free: &dyn Fn(&Want) -> Bits,
    ) -> bool {
        // Without a value of the first device there is nothing to count on.
        if table.lists() == ListTypes::Disabled {
            return true;
        }
        let sets: Vec<Vec<(Want, usize, Bits)>> = bound
            .iter()
            .map(|wants| wants.iter().map(|want| (*want, column(table, want, constraint), free(want))).collect())
            .collect();
        let Some(first) = sets.first() else { return true };
        let suffices = |value: &Scalar<'s>| self.suffices(table, value, &sets);
        match attempt.common(claim, constraint) {
            Some(common) => common.iter().any(suffices),
            None => first.iter().any(|(_, column, _)| self.holders[*column].keys().any(suffices)),
        }
    }

    /// Whether the devices that have a value are enough for every request that a constraint binds.
    fn suffices(&self, table: &Table<'_>, value: &Scalar<'s>, sets: &[Vec<(Want, usize, Bits)>]) -> bool {
        let with_value =
            |(_, column, free): &(Want, usize, Bits)| self.holders[*column].get(value).map(|holders| holders.and(free));
        let enough = sets.iter().all(|wants| {
            wants.iter().any(|entry| with_value(entry).is_some_and(|devices| devices.len() >= entry.0.missing))
        });
        let wants: Vec<Wants> = sets.iter().map(|wants| wants.iter().map(|(want, ..)| *want).collect()).collect();
        let narrowed = |want: &Want| {
            let entry = sets.iter().flatten().find(|(other, ..)| other.alternative == want.alternative);
            entry.and_then(with_value).unwrap_or_else(|| Bits::new(table.candidates.all()))
        };
        enough && !(self.techniques.has(Technique::Compete) && self.compete(table, &wants, &narrowed))
    }

    /// Whether fewer values are free than devices are wanted, or too few devices have only free values.
    fn too_few_values(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        (claim, constraint): (usize, usize),
        bound: &[&Wants],
        free: &dyn Fn(&Want) -> Bits,
    ) -> bool {
        if table.lists() == ListTypes::Disabled {
            return false;
        }
        let taken = attempt.distinct(claim, constraint);
        let mut values = BTreeMap::new();
        let mut missing: usize = 0;
        for wants in bound {
            missing = missing.saturating_add(wants.iter().map(|want| want.missing).min().unwrap_or(0));
            let mut is_possible = false;
            for want in *wants {
                let holders = &self.holders[column(table, want, constraint)];
                let mut devices = free(want);
                for holders in taken.iter().filter_map(|value| holders.get(value)) {
                    devices = devices.without(holders);
                }
                is_possible |= devices.len() >= want.missing;
                values.extend(
                    holders.iter().filter(|(_, holders)| holders.and(&devices).len() > 0).map(|(v, _)| (*v, ())),
                );
            }
            if !is_possible {
                return true;
            }
        }
        values.len() < missing
    }

    /// Whether the counters of one name run out: each device takes some of it, from whichever set.
    fn counters_run_out(
        &self,
        table: &Table<'s>,
        attempt: &Attempt<'_, 's>,
        wanted: &[Wants],
        free: &dyn Fn(&Want) -> Bits,
    ) -> bool {
        if !table.has(Feature::PartitionableDevices) {
            return false;
        }
        let sets: Vec<(usize, Bits)> = wanted.iter().filter_map(|wants| self.together(table, wants, free)).collect();
        sets.iter().any(|(_, set)| {
            let inside = sets.iter().filter(|(_, other)| other.is_subset(set));
            let missing = inside.map(|(missing, _)| *missing).fold(0, usize::saturating_add);
            let Some(pool) = only_pool(table, set) else { return false };
            attempt.counters_run_out(pool, missing, set)
        })
    }
}

/// The pool of all devices of a set, if it is one.
fn only_pool(table: &Table<'_>, devices: &Bits) -> Option<usize> {
    let mut pools = devices.iter().map(|device| table.candidate(device).pool);
    let first = pools.next()?;
    pools.all(|pool| pool == first).then_some(first)
}

/// Whether a constraint applies to whatever a request takes.
fn is_bound(table: &Table<'_>, wants: &Wants, constraint: usize) -> bool {
    wants.iter().all(|want| {
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

/// The devices that an alternative could be given, as far as that does not depend on others.
fn usable(table: &Table<'_>, alternative: usize) -> Result<Bits, AllocateError> {
    let mut usable = Bits::new(table.candidates.all());
    let admin = table.alternative(alternative).admin_access;
    for device in 0..table.candidates.all() {
        let is_held = !admin && table.in_use(device).is_some_and(|in_use| in_use.is_exclusive());
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
    /// Different for devices that can be shared: what others left of them differs.
    shareable: Option<usize>,
    consumption: Option<(usize, String)>,
}

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
        let consumes = candidate.device.consumes_counters.as_ref().is_some_and(|consumed| !consumed.is_empty());
        let consumption = consumes && table.has(Feature::PartitionableDevices);
        let kind = Kind {
            usable: usable.iter().map(|usable| usable.contains(device)).collect(),
            values,
            lacks,
            shareable: table.is_shareable(device).then_some(device),
            consumption: if consumption { Some((candidate.pool, described(table.consumption(device)?))) } else { None },
        };
        let next = known.len();
        kinds.push(*known.entry(kind).or_insert(next));
    }
    Ok(kinds)
}

fn described(consumption: &[Consumption<'_>]) -> String {
    format!("{consumption:?}")
}

/// The nearest earlier request of the claim that asks for the same devices under the same constraints.
fn twin(table: &Table<'_>, alternative: usize) -> Option<usize> {
    let asked = table.alternative(alternative);
    let requests = table.plan.claims.get(asked.claim)?.requests.iter().filter(|request| !request.is_list);
    let earlier = requests.flat_map(|request| request.alternatives.clone()).filter(|other| *other < alternative);
    let is_single = table
        .plan
        .claims
        .get(asked.claim)?
        .requests
        .iter()
        .any(|request| !request.is_list && request.alternatives.contains(&alternative));
    earlier.filter(|other| is_single && is_same(table.alternative(*other), asked)).last()
}

fn is_same(left: &Alternative<'_>, right: &Alternative<'_>) -> bool {
    let texts = |asked: &Alternative<'_>| -> Vec<Option<String>> {
        asked.selectors.iter().map(|selector| selector.text.map(str::to_owned)).collect()
    };
    let amounts = |asked: &Alternative<'_>| -> Vec<(String, i128)> {
        asked.capacity.iter().map(|(name, amount)| ((*name).to_owned(), amount.quantity.nanos())).collect()
    };
    left.mode == right.mode
        && left.mode != Mode::All
        && left.class.metadata.name == right.class.metadata.name
        && left.admin_access == right.admin_access
        && left.tolerations == right.tolerations
        && left.constraints == right.constraints
        && texts(left) == texts(right)
        && amounts(left) == amounts(right)
}
