//! Stamps: marks of changes that never repeat in a process.
//!
//! Their counter is the one value of the process that changes. A counter in each inventory would give two layers that start from
//! it the same stamp for different changes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Mark of a change. A later change has a greater stamp, and no two changes in a process have the same one, also not in
/// two copies of a state. Answers never depend on the value of a stamp, only on equality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// Returns the number of the stamp, which nothing else has.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    /// Returns a stamp that is greater than all before.
    pub(crate) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
