//! Yes-or-no facts that are found once.

use std::sync::atomic::{AtomicU8, Ordering};

/// Up to seven facts, found together when one is first needed. Threads may look at the same time; they find the same.
#[derive(Debug, Default)]
pub(super) struct Flags(AtomicU8);

/// Set once the facts were found.
const FOUND: u8 = 0x80;

impl Flags {
    /// The facts as bits.
    pub(super) fn get_or_find(&self, find: impl FnOnce() -> u8) -> u8 {
        let known = self.0.load(Ordering::Relaxed);
        if known & FOUND != 0 {
            return known;
        }
        let found = FOUND | find();
        self.0.store(found, Ordering::Relaxed);
        found
    }
}

impl Clone for Flags {
    fn clone(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }
}

/// A bit if a fact holds.
pub(super) const fn bit(fact: bool, bit: u8) -> u8 {
    if fact { bit } else { 0 }
}
