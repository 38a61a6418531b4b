//! Bit sets of device positions.

use smallvec::{SmallVec, smallvec};

/// Bit set of numbers below a fixed size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bits(SmallVec<[u64; 2]>);

#[expect(clippy::indexing_slicing, reason = "numbers are below the size that the set was made for")]
impl Bits {
    pub(crate) fn new(size: usize) -> Self {
        Self(smallvec![0; size.div_ceil(64)])
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0[number / 64] & (1 << (number % 64)) != 0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn union(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(word, other)| word & other).collect())
    }

    /// Returns the members that are not in `other`.
    pub(crate) fn without(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(word, other)| word & !other).collect())
    }

    /// Returns the members that are at least `first`.
    pub(crate) fn starting_at(mut self, first: usize) -> Self {
        for (index, word) in self.0.iter_mut().enumerate() {
            let start = first.saturating_sub(index * 64);
            *word &= if start >= 64 { 0 } else { u64::MAX << start };
        }
        self
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(word, other)| word & !other == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let bits = |(index, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| index * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}
