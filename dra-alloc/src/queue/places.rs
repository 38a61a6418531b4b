//! Units by their places, in the order in which they leave them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::remedy::Remedy;
use super::unit::{Ending, Place, State, Unit};
use super::waiting::Waiting;

/// Indexes of the units. A unit is entered after each change, and leaves before it.
#[derive(Clone, Debug)]
pub(super) struct Places<R> {
    active: BTreeSet<(R, u64)>,
    /// Units whose pause may be cut short, by its end.
    refused: BTreeSet<(Timestamp, R, u64)>,
    /// Units whose pause may not, by its end.
    failed: BTreeSet<(Timestamp, R, u64)>,
    /// Units that wait for an event, by the time at which they are tried without one.
    flush: BTreeSet<(Timestamp, u64)>,
    waiting: Waiting,
    held: usize,
    gated: usize,
    in_flight: usize,
}

impl<R: Ord> Default for Places<R> {
    fn default() -> Self {
        Self {
            active: BTreeSet::new(),
            refused: BTreeSet::new(),
            failed: BTreeSet::new(),
            flush: BTreeSet::new(),
            waiting: Waiting::default(),
            held: 0,
            gated: 0,
            in_flight: 0,
        }
    }
}

impl<R: Ord + Clone> Places<R> {
    pub(super) fn enter(&mut self, number: u64, unit: &Unit<R>) {
        let rank = || unit.rank.clone();
        match &unit.state {
            State::Active => drop(self.active.insert((rank(), number))),
            State::BackingOff { until, after } => drop(self.pauses(*after).insert((*until, rank(), number))),
            State::Waiting { refusal, flush_at, .. } => {
                self.flush.insert((*flush_at, number));
                self.waiting.add(number, refusal);
                self.gated += usize::from(unit.state.place() == Place::Gated);
            }
            State::Held => self.held += 1,
            State::InFlight { .. } => self.in_flight += 1,
        }
    }

    pub(super) fn leave(&mut self, number: u64, unit: &Unit<R>) {
        let rank = || unit.rank.clone();
        match &unit.state {
            State::Active => drop(self.active.remove(&(rank(), number))),
            State::BackingOff { until, after } => drop(self.pauses(*after).remove(&(*until, rank(), number))),
            State::Waiting { refusal, flush_at, .. } => {
                self.flush.remove(&(*flush_at, number));
                self.waiting.remove(number, refusal);
                self.gated -= usize::from(unit.state.place() == Place::Gated);
            }
            State::Held => self.held -= 1,
            State::InFlight { .. } => self.in_flight -= 1,
        }
    }

    /// Returns the unit to try: the first active one, or if there is none the first that may be tried early.
    pub(super) fn first(&self, is_early: bool) -> Option<u64> {
        let early = || self.refused.first().filter(|_| is_early).map(|(_, _, number)| *number);
        self.active.first().map(|(_, number)| *number).or_else(early)
    }

    /// Returns a unit whose pause is over.
    pub(super) fn back(&self, now: Timestamp) -> Option<u64> {
        let over = |pauses: &BTreeSet<(Timestamp, R, u64)>| {
            pauses.first().filter(|(until, _, _)| *until <= now).map(|(_, _, number)| *number)
        };
        over(&self.refused).or_else(|| over(&self.failed))
    }

    /// Returns a unit that has waited for an event for long enough.
    pub(super) fn overdue(&self, now: Timestamp) -> Option<u64> {
        self.flush.first().filter(|(at, _)| *at <= now).map(|(_, number)| *number)
    }

    /// Returns the next time at which a unit changes its place without an event.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let pauses = [&self.refused, &self.failed].into_iter().filter_map(|pauses| pauses.first());
        pauses.map(|(until, _, _)| *until).chain(self.flush.first().map(|(at, _)| *at)).min()
    }

    pub(super) fn helped_by(&self, remedy: &Remedy) -> BTreeSet<u64> {
        self.waiting.helped_by(remedy)
    }

    pub(super) fn count(&self, place: Place) -> usize {
        match place {
            Place::Active => self.active.len(),
            Place::BackingOff => self.refused.len() + self.failed.len(),
            Place::Unschedulable => self.flush.len() - self.gated,
            Place::Gated => self.gated + self.held,
            Place::InFlight => self.in_flight,
        }
    }

    const fn pauses(&mut self, after: Ending) -> &mut BTreeSet<(Timestamp, R, u64)> {
        match after {
            Ending::Refused => &mut self.refused,
            Ending::Failed => &mut self.failed,
        }
    }
}
