//! Limits of an evaluation: its cost in Kubernetes' units, and its work and memory.

use super::fault::{Fatal, Fault};

/// Most work of an evaluation: elements looked at, eighths of bytes compared, steps of patterns. Below 50 ms, of which a
/// unit takes at most 5 ns.
const MOST_WORK: usize = 9_200_000;

/// Most bytes that an evaluation makes.
const MOST_BYTES: usize = 40 << 20;

/// Work between two questions whether to stop: some ten microseconds.
const WORK_PER_QUESTION: usize = 2_000;

/// Question whether an evaluation is to stop.
pub(crate) type Stop<'s> = &'s dyn Fn() -> bool;

/// Cost of an evaluation so far, and its limits.
pub(super) struct Meter<'s> {
    cost: u64,
    limit: u64,
    work: usize,
    bytes: usize,
    /// Work that is left when the stop function is asked next.
    question: usize,
    stop: Option<Stop<'s>>,
}

impl<'s> Meter<'s> {
    pub(super) const fn new(limit: u64, stop: Option<Stop<'s>>) -> Self {
        Self { cost: 0, limit, work: MOST_WORK, bytes: MOST_BYTES, question: MOST_WORK - WORK_PER_QUESTION, stop }
    }

    /// Sets work apart that is done besides what is counted.
    pub(super) const fn reserve(&mut self, units: usize) {
        self.work = self.work.saturating_sub(units);
        self.question = self.work.saturating_sub(WORK_PER_QUESTION);
    }

    pub(super) const fn cost(&self) -> u64 {
        self.cost
    }

    /// Charges a cost.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Box<Fault>> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Fault::too_much()) } else { Ok(()) }
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
        self.question = self.work.saturating_sub(WORK_PER_QUESTION);
        match self.stop {
            Some(stop) if stop() => Err(Box::new(Fault::Fatal(Fatal::Interrupted))),
            _ => Ok(()),
        }
    }

    /// Counts bytes before they are made; making them is work.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Box<Fault>> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(Fault::too_much)?;
        self.work(bytes / 8)
    }
}
