//! Sets of positions in a list, as bits.

use smallvec::SmallVec;

/// Set of positions in a list, one bit for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bits(SmallVec<[u64; 1]>);

impl Bits {
    /// Creates a set without members, for a list of a length.
    pub(crate) fn none(len: usize) -> Self {
        Self(SmallVec::from_elem(0, len.div_ceil(64)))
    }

    /// Creates the set of all positions in a list of a length.
    pub(crate) fn all(len: usize) -> Self {
        let mut all = SmallVec::from_elem(u64::MAX, len / 64);
        if !len.is_multiple_of(64) {
            all.push((1 << (len % 64)) - 1);
        }
        Self(all)
    }

    pub(crate) fn contains(&self, position: usize) -> bool {
        self.0.get(position / 64).is_some_and(|word| word & 1 << (position % 64) != 0)
    }

    pub(crate) fn set(&mut self, position: usize, is_member: bool) {
        debug_assert!(position / 64 < self.0.len(), "the position is one of the list");
        if let Some(word) = self.0.get_mut(position / 64) {
            let bit = 1 << (position % 64);
            *word = if is_member { *word | bit } else { *word & !bit };
        }
    }

    /// Returns the members as bits of numbers, 64 positions each.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Returns the first member at a position or after it.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.0.iter().enumerate().skip(from / 64) {
            let rest = word & mask;
            if rest != 0 {
                return Some(index * 64 + usize::try_from(rest.trailing_zeros()).unwrap_or_default());
            }
            mask = u64::MAX;
        }
        None
    }
}
