//! Memory of failed states: what was left of each kind of device when a search found no solution.
//!
//! Success of the open requests depends on what is left, not on who took the rest. A state is written as
//! numbers in such a way that states with the same numbers differ only by exchanges of devices and of groups:
//!
//! - the open request, the number of devices that it still needs, and the number that its claim has; the position of the
//!   next one if their order counts,
//! - for each constraint of the claim, whether it has a device,
//! - for each group: its shape, the number of free devices of each kind (as far as they can be needed), what is taken of
//!   its counters, and which of its values the constraints of the claim have.

use std::collections::BTreeSet;

use dra_attrs::Scalar;

use super::demand::{OpenRequest, most_wanted};
use super::device_set::DeviceSet;
use super::domains::Domains;
use super::ix::{AlternativeIx, ByAlternative, ByClaim, ByRequest, ColumnIx, ConstraintIx, DeviceIx, Place, next};
use super::kinds::{Group, Kinds, Label};
use super::ordered::is_ordered;
use super::partial_assignment::PartialAssignment;
use super::request::ConstraintKind;
use super::risk::Risks;
use super::table::{DevicesOfAll, Table};

/// Largest number of numbers that are kept; beyond it the memory starts anew.
const CAPACITY: usize = 1 << 22;

/// State of a search, up to exchanges.
pub(crate) type State = Box<[u32]>;

/// Set of failed states, of bounded size.
#[derive(Default)]
pub(crate) struct FailedStates {
    known: BTreeSet<State>,
    size: usize,
}

impl FailedStates {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn contains(&self, state: &State) -> bool {
        self.known.contains(state)
    }

    pub(crate) fn insert(&mut self, state: State) {
        if self.size.saturating_add(state.len()) > CAPACITY {
            *self = Self::default();
        }
        // An entry costs a few words beside its numbers.
        self.size += state.len() + 8;
        self.known.insert(state);
    }
}

/// Part of a search that is the same in all of its states.
pub(crate) struct StateReader<'s> {
    kinds: Kinds<'s>,
    /// For each claim and request: the devices that the request and all later ones may come to.
    reachable: ByClaim<ByRequest<DeviceSet>>,
    /// For each claim and request: the most devices that the request and all later ones can be given.
    most: ByClaim<ByRequest<usize>>,
    /// For each alternative: true if the order of its devices counts.
    ordered: ByAlternative<bool>,
    has_admin: bool,
}

impl<'s> StateReader<'s> {
    pub(crate) fn new(table: &Table<'s>, all: &DevicesOfAll, domains: &Domains<'s>, risks: &Risks) -> Self {
        Self {
            kinds: Kinds::new(table, all, domains, risks),
            reachable: reachable(table, domains),
            most: most_wanted(table, all),
            ordered: table
                .plan
                .alternatives
                .range()
                .into_iter()
                .map(|own| is_ordered(table, all, domains, own))
                .collect(),
            has_admin: table.plan.alternatives.iter().any(|asked| asked.admin_access),
        }
    }

    /// Returns the devices that can be exchanged with a device in the state of the assignment, itself included. The
    /// device is not chosen for the open request.
    ///
    /// *Argument* of [`PruningRule::ValueSymmetry`](super::pruning_rules::PruningRule): two devices that all requests, constraints and
    /// counters see as equal can be exchanged in a solution. If the branch with the first one failed, every branch of the same request
    /// with the second one fails, here or below.
    pub(crate) fn alike(
        &self,
        assignment: &PartialAssignment<'_, 's>,
        domains: &Domains<'s>,
        device: DeviceIx,
    ) -> DeviceSet {
        let Some(alike) = self.kinds.alike(device) else {
            let mut only = DeviceSet::new(domains.devices.end);
            only.insert(device);
            return only;
        };
        let mut alike = alike.clone();
        if self.has_admin || domains.shareable.contains(device) {
            let is_other = |other: &DeviceIx| {
                assignment.taken().contains(*other) != assignment.taken().contains(device)
                    || assignment.share_state(*other) != assignment.share_state(device)
            };
            let others: Vec<DeviceIx> = alike.iter().filter(is_other).collect();
            for other in others {
                alike.remove(other);
            }
        }
        alike
    }

    /// Returns the state in which the request at `place` needs the devices of `want`.
    pub(crate) fn state(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        domains: &Domains<'s>,
        place: Place,
        want: OpenRequest,
    ) -> State {
        let (claim, request) = place;
        let number = number_of;
        let mut words = vec![
            number(claim.into()),
            number(request.into()),
            number(want.alternative.into()),
            number(want.missing),
            number(assignment.device_count(claim)),
            // What was tried in vain before the position is in vain again only if the order does not count.
            if self.ordered[want.alternative] { number(want.from.into()) } else { 0 },
        ];
        let marks = self.marks(table, assignment, place, want, &mut words);
        let mut reached = self.reachable[claim][next(request)].clone();
        reached.union(&domains.usable[want.alternative]);
        reached.union(&domains.unsure[want.alternative]);
        let cap = number(want.missing.saturating_add(self.most[claim][next(request)]));
        let group = |(number, group): (usize, &Group)| {
            let mut words = vec![group.shape];
            if !self.count(assignment, group, &reached, cap, want, claim, &mut words) {
                return None;
            }
            Self::counters(assignment, group, &mut words, &self.kinds);
            let marks = marks.iter().filter(|(other, _)| *other == number);
            marks.for_each(|(_, mark)| words.extend(mark));
            Some(words)
        };
        let mut groups: Vec<Vec<u32>> = self.kinds.groups.iter().enumerate().filter_map(group).collect();
        groups.sort_unstable();
        for same in groups.chunk_by(|left, right| left == right) {
            words.push(number(same.len()));
            words.push(number(same.first().map_or(0, Vec::len)));
            words.extend(same.first().into_iter().flatten());
        }
        words.into()
    }

    /// Writes whether each constraint of the claim has a device, and returns the values that it has: the group, and what
    /// to write there.
    fn marks(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        (claim, request): Place,
        want: OpenRequest,
        words: &mut Vec<u32>,
    ) -> Vec<(usize, [u32; 2])> {
        let mut marks = Vec::new();
        for ((index, constraint), position) in table.plan.claims[claim].constraints.enumerate().zip(0..) {
            let Some(column) = open_column(table, (claim, request), want.alternative, index) else {
                words.push(0);
                continue;
            };
            words.push(if assignment.is_unused(claim, index) { 1 } else { 2 });
            let values: Vec<Scalar<'s>> = match constraint.kind {
                ConstraintKind::Match => assignment.common(claim, index).unwrap_or_default().to_vec(),
                ConstraintKind::Distinct => assignment.distinct(claim, index),
            };
            let space = self.kinds.space(column);
            let labels = values.iter().filter_map(|value| self.kinds.labels.get(&(space, *value)));
            marks.extend(labels.map(|(group, label): &(usize, Label)| (*group, [position, *label])));
        }
        marks.sort_unstable();
        marks
    }

    /// Writes the number of free devices of each kind, and what is taken of shared ones. Returns false if none of the
    /// group's devices can be reached.
    #[expect(clippy::too_many_arguments, reason = "one place calls it")]
    fn count(
        &self,
        assignment: &PartialAssignment<'_, 's>,
        group: &Group,
        reached: &DeviceSet,
        cap: u32,
        want: OpenRequest,
        claim: super::ix::ClaimIx,
        words: &mut Vec<u32>,
    ) -> bool {
        let mut is_reached = false;
        for (_, devices) in &group.kinds {
            let (mut free, mut own, mut shares) = (0_u32, 0_u32, Vec::new());
            let mut taken = 0_u32;
            for device in devices.iter().filter(|device| reached.contains(**device)) {
                is_reached = true;
                if let Some(share) = assignment.share_state(*device) {
                    let is_given = assignment.is_given(want.alternative, *device);
                    let count = if share.is_shared { share.consumed.len() + 1 } else { 0 };
                    let mut words = vec![u32::from(is_given), number_of(count)];
                    words.extend(share.consumed.iter().flat_map(|amount| split(amount.nanos())));
                    shares.push(words);
                } else if !assignment.taken().contains(*device) {
                    free += 1;
                } else if self.has_admin && assignment.is_own(claim, *device) {
                    own += 1;
                } else {
                    taken += 1;
                }
            }
            words.push(free.min(cap));
            if self.has_admin {
                words.extend([own, taken]);
            }
            shares.sort_unstable();
            words.extend(shares.into_iter().flatten());
        }
        is_reached
    }

    /// Writes what is left of the group's counters.
    fn counters(assignment: &PartialAssignment<'_, 's>, group: &Group, words: &mut Vec<u32>, kinds: &Kinds<'s>) {
        for (pool, counter) in &group.counters {
            words.extend(split(assignment.counter_left(*pool, *counter)));
        }
        for (pool, set) in &group.sets {
            words.extend(kinds.words_of(&assignment.groups_on(*pool, *set)));
        }
    }
}

/// Returns a column in which the constraint compares devices of the open request or of a later one of the claim.
fn open_column(
    table: &Table<'_>,
    (claim, request): Place,
    alternative: AlternativeIx,
    constraint: ConstraintIx,
) -> Option<ColumnIx> {
    let later = table.plan.claims[claim].requests.iter().skip(usize::from(request) + 1);
    let mut open = later.flat_map(|request| request.alternatives).chain([alternative]);
    let bound = open.find(|alternative| table.alternative(*alternative).is_bound_by(constraint))?;
    let constraints = table.alternative(bound).constraints.iter();
    constraints.into_iter().find(|(index, _)| *index == constraint).map(|(_, column)| *column)
}

fn reachable(table: &Table<'_>, domains: &Domains<'_>) -> ByClaim<ByRequest<DeviceSet>> {
    let mut all = DeviceSet::new(domains.devices.end);
    let mut reachable = Vec::new();
    for claim in table.plan.claims.enumerate().rev().map(|(_, claim)| claim) {
        let mut own = vec![all.clone()];
        for request in claim.requests.iter().rev() {
            request.alternatives.into_iter().for_each(|alternative| all.union(&domains.reachable(alternative)));
            own.push(all.clone());
        }
        own.reverse();
        reachable.push(own.into_iter().collect());
    }
    reachable.reverse();
    reachable.into_iter().collect()
}

fn number_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns a number as four words.
pub(crate) fn split(number: i128) -> [u32; 4] {
    let bytes = number.to_be_bytes();
    let word = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes);
    [word(0), word(4), word(8), word(12)]
}
