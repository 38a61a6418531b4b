//! Limits of an evaluation: its cost in Kubernetes' units, and its work and memory.

use super::fault::{Fatal, Fault};

/// Most work of an evaluation: elements looked at, eighths of bytes compared, steps of patterns. About 50 ms.
const MOST_WORK: usize = 10_000_000;

/// Most bytes that an evaluation makes.
const MOST_BYTES: usize = 48 << 20;

/// Number of rounds of loops between two questions whether to stop.
const ROUNDS: u32 = 100;

/// Question whether an evaluation is to stop.
pub(super) type Stop<'s> = &'s dyn Fn() -> bool;

/// Cost of an evaluation so far, and its limits.
pub(super) struct Meter<'s> {
    cost: u64,
    limit: u64,
    work: usize,
    bytes: usize,
    rounds: u32,
    stop: Option<Stop<'s>>,
}

impl<'s> Meter<'s> {
    pub(super) const fn new(limit: u64, stop: Option<Stop<'s>>) -> Self {
        Self { cost: 0, limit, work: MOST_WORK, bytes: MOST_BYTES, rounds: 0, stop }
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

    /// Counts work that the cost does not show.
    pub(super) fn work(&mut self, units: usize) -> Result<(), Box<Fault>> {
        self.work = self.work.checked_sub(units).ok_or_else(Fault::too_much)?;
        Ok(())
    }

    /// Counts bytes before they are made; making them is work.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Box<Fault>> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(Fault::too_much)?;
        self.work(bytes / 8)
    }

    /// Counts a round of a loop.
    pub(super) fn round(&mut self) -> Result<(), Box<Fault>> {
        self.work(1)?;
        self.rounds += 1;
        if self.rounds < ROUNDS {
            return Ok(());
        }
        self.rounds = 0;
        match self.stop {
            Some(stop) if stop() => Err(Box::new(Fault::Fatal(Fatal::Interrupted))),
            _ => Ok(()),
        }
    }
}
