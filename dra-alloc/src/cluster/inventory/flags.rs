//! Cells for boolean facts that are computed on first use.

use std::sync::atomic::{AtomicU8, Ordering};

/// Up to seven boolean facts, computed together on first use. Threads may compute them at the same time, with equal
/// results.
#[derive(Debug, Default)]
pub(super) struct Flags(AtomicU8);

/// Bit that is set once the facts are computed.
const FOUND: u8 = 0x80;

impl Flags {
    /// Returns the facts as bits, computing them on first use.
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

/// Returns `bit` if the fact holds, else 0.
pub(super) const fn bit(fact: bool, bit: u8) -> u8 {
    if fact { bit } else { 0 }
}
