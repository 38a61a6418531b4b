//! Sets of devices.

use smallvec::{SmallVec, smallvec};

use super::ix::DeviceIx;

/// Set of devices below a fixed position, as bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceSet(SmallVec<[u64; 2]>);

#[expect(clippy::indexing_slicing, reason = "positions are below the size that the set was made for")]
impl DeviceSet {
    /// Returns the empty set for devices before `end`.
    pub(crate) fn new(end: DeviceIx) -> Self {
        Self(smallvec![0; usize::from(end).div_ceil(64)])
    }

    pub(crate) fn insert(&mut self, device: DeviceIx) {
        let (word, bit) = place(device);
        self.0[word] |= bit;
    }

    pub(crate) fn remove(&mut self, device: DeviceIx) {
        let (word, bit) = place(device);
        self.0[word] &= !bit;
    }

    pub(crate) fn contains(&self, device: DeviceIx) -> bool {
        let (word, bit) = place(device);
        self.0[word] & bit != 0
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

    /// Returns the members at `first` or after it.
    pub(crate) fn starting_at(mut self, first: DeviceIx) -> Self {
        let first = usize::from(first);
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = DeviceIx> {
        let bits = |(index, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| DeviceIx::from(index * 64 + bit))
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

/// Returns the position of a device's word, and its bit in the word.
#[inline]
fn place(device: DeviceIx) -> (usize, u64) {
    let number = usize::from(device);
    (number / 64, 1 << (number % 64))
}
