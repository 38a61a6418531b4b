//! Remedies that have come while attempts were under way: an attempt that began before may not have seen them.

use std::collections::{BTreeMap, BTreeSet};

use super::refusal::Refusal;
use super::remedy::Remedy;

/// Largest number of different remedies that are remembered. With more, each attempt that is under way counts as helped.
const MAX_REMEDIES: usize = 4_096;

/// Remedies with the last time at which each came. Times are numbers of remedies.
///
/// Nothing is remembered while no attempt is under way, nor anything before the oldest attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentRemedies {
    count: u64,
    last: BTreeMap<Remedy, u64>,
    in_order: BTreeMap<u64, Remedy>,
    /// Begin of each attempt that is under way.
    begins: BTreeSet<(u64, u64)>,
    /// Time up to which remedies were forgotten for want of room.
    forgotten: u64,
}

impl RecentRemedies {
    /// Begins an attempt of a unit, and returns its time.
    pub(super) fn begin(&mut self, unit: u64) -> u64 {
        self.begins.insert((self.count, unit));
        self.count
    }

    /// Remembers a remedy for the attempts that are under way.
    pub(super) fn add(&mut self, remedy: &Remedy) {
        if self.begins.is_empty() {
            return;
        }
        self.count += 1;
        if let Some(before) = self.last.insert(remedy.clone(), self.count) {
            self.in_order.remove(&before);
        }
        self.in_order.insert(self.count, remedy.clone());
        if self.last.len() > MAX_REMEDIES {
            self.forgotten = self.count;
            self.forget_before(self.count + 1);
        }
    }

    /// Returns true if a remedy that a refusal waits for has come since an attempt began.
    pub(super) fn helps(&self, refusal: &Refusal, begin: u64) -> bool {
        let has_come = |remedy: &Remedy| remedy.meet(&self.last).any(|last| *last > begin);
        self.forgotten > begin || refusal.remedies().any(has_come)
    }

    /// Ends an attempt, and forgets what no other attempt needs.
    pub(super) fn end(&mut self, begin: u64, unit: u64) {
        self.begins.remove(&(begin, unit));
        match self.begins.first() {
            Some(&(oldest, _)) => self.forget_before(oldest + 1),
            None => self.forget_before(u64::MAX),
        }
    }

    /// Returns the number of remedies that are remembered.
    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    fn forget_before(&mut self, time: u64) {
        while let Some(oldest) = self.in_order.first_entry().filter(|oldest| *oldest.key() < time) {
            self.last.remove(&oldest.remove());
        }
    }
}
