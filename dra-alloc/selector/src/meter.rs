//! Limits of an evaluation: its cost in Kubernetes' units, and its work and memory.

use super::fault::Fault;

/// Most work of an evaluation: elements looked at, eighths of bytes compared, steps of patterns. Below 50 ms, of which a
/// unit takes at most 5 ns.
const MOST_WORK: usize = 9_200_000;

/// Most bytes that an evaluation makes.
const MOST_BYTES: usize = 40 << 20;

/// Work between two questions whether to stop: some ten microseconds.
const WORK_PER_QUESTION: usize = 2_000;

/// Question whether an evaluation is to stop.
type Stop<'s> = &'s dyn Fn() -> bool;

/// Parts of a unit of a search's work that a unit of an evaluation's cost is, and of its work: 64 parts are 0.1 to 0.2
/// microseconds.
const PARTS_OF_COST: u64 = 8;
const PARTS_OF_WORK: u64 = 2;

/// Bound of one evaluation, beside those of all: parts of a unit of a search's work, and the caller's stop function.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a function has none")]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; a bound has no other parts")]
pub struct Bound<'s> {
    /// Parts that the search has left.
    pub parts: u64,
    /// Question whether to stop, if there is one.
    pub stop: Option<&'s dyn Fn() -> bool>,
}

impl Bound<'_> {
    /// No bound.
    pub(super) const NONE: Self = Self { parts: u64::MAX, stop: None };
}

/// Cost of an evaluation so far, and its limits.
pub(super) struct Meter<'s> {
    cost: u64,
    /// The smaller one of the limit and of what the search has left.
    most: u64,
    limit: u64,
    work: usize,
    /// Work that was set apart: it is no price of the evaluation, since it is done once for all of them.
    reserved: usize,
    /// Work that must be left, since the search has no more.
    floor: usize,
    bytes: usize,
    /// Work that is left when the stop function is asked next.
    question: usize,
    stop: Option<Stop<'s>>,
}

impl<'s> Meter<'s> {
    pub(super) fn new(limit: u64, Bound { parts, stop }: Bound<'s>) -> Self {
        let floor = MOST_WORK.saturating_sub(usize::try_from(parts / PARTS_OF_WORK).unwrap_or(usize::MAX));
        Self {
            cost: 0,
            most: limit.min(parts / PARTS_OF_COST),
            limit,
            work: MOST_WORK,
            reserved: 0,
            floor,
            bytes: MOST_BYTES,
            question: floor.max(MOST_WORK - WORK_PER_QUESTION),
            stop,
        }
    }

    /// Returns the price of the evaluation so far, in parts of a unit of a search's work: what takes the time, its cost or its
    /// work.
    pub(super) fn parts(&self) -> u64 {
        let work = MOST_WORK.saturating_sub(self.work).saturating_sub(self.reserved);
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        // A cost that was taken back from nothing is above all limits.
        self.cost.min(self.limit).saturating_mul(PARTS_OF_COST).max(work.saturating_mul(PARTS_OF_WORK))
    }

    /// Sets work apart that is done besides what is counted.
    pub(super) const fn reserve(&mut self, units: usize) {
        self.work = self.work.saturating_sub(units);
        self.reserved = units;
        self.floor = self.floor.saturating_sub(units);
        self.question = self.work.saturating_sub(WORK_PER_QUESTION);
        if self.question < self.floor {
            self.question = self.floor;
        }
    }

    pub(super) const fn cost(&self) -> u64 {
        self.cost
    }

    /// Charges a cost.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Box<Fault>> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.most { Err(self.exceeded()) } else { Ok(()) }
    }

    #[cold]
    fn exceeded(&self) -> Box<Fault> {
        if self.cost > self.limit { Fault::too_much() } else { Fault::interrupted() }
    }

    /// Takes 1 back. From nothing that is more than any limit, as upstream has it.
    pub(super) fn refund(&mut self) -> Result<(), Box<Fault>> {
        self.cost = self.cost.wrapping_sub(1);
        self.charge(0)
    }

    /// Counts work that the cost does not show, and asks the stop function now and then.
    pub(super) fn work(&mut self, units: usize) -> Result<(), Box<Fault>> {
        self.work = self.work.checked_sub(units).ok_or_else(Fault::too_much)?;
        if self.work >= self.question {
            return Ok(());
        }
        self.question = self.floor.max(self.work.saturating_sub(WORK_PER_QUESTION));
        match self.stop {
            _ if self.work < self.floor => Err(Fault::interrupted()),
            Some(stop) if stop() => Err(Fault::interrupted()),
            _ => Ok(()),
        }
    }

    /// Counts bytes before they are made; making them is work.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Box<Fault>> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(Fault::too_much)?;
        self.work(bytes / 8)
    }
}
