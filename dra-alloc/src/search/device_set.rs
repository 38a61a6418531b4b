//! Sets of devices.

use k8s_openapi::api::resource::v1::Device;
use smallvec::{SmallVec, smallvec};

use super::ix::{DeviceIx, IxRange};

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

    /// Adds those of some devices whose like are in the set. `first` is like the first of them, the one behind it like the second.
    pub(crate) fn repeat(&mut self, first: DeviceIx, devices: IxRange<Device>) {
        for (offset, device) in devices.into_iter().enumerate() {
            if self.contains(DeviceIx::from(usize::from(first) + offset)) {
                self.insert(device);
            }
        }
    }

    pub(crate) fn remove(&mut self, device: DeviceIx) {
        let (word, bit) = place(device);
        self.0[word] &= !bit;
    }

    pub(crate) fn contains(&self, device: DeviceIx) -> bool {
        let (word, bit) = place(device);
        self.0[word] & bit != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns the first member at `first` or after it.
    pub(crate) fn first_from(&self, first: DeviceIx) -> Option<DeviceIx> {
        let (start, bit) = place(first);
        let mut mask = bit.wrapping_neg();
        for (index, word) in self.0.iter().enumerate().skip(start) {
            let word = word & std::mem::replace(&mut mask, u64::MAX);
            if word != 0 {
                return Some(DeviceIx::from(index * 64 + word.trailing_zeros() as usize));
            }
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn union(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// Keeps the members that are in `other` too.
    pub(crate) fn intersect(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    /// Removes the members of `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= !other);
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

    /// Returns the number of members that are in `other` too.
    pub(crate) fn common(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).map(|(word, other)| (word & other).count_ones() as usize).sum()
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    /// Removes all devices.
    pub(crate) fn clear(&mut self) {
        self.0.iter_mut().for_each(|word| *word = 0);
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(word, other)| word & !other == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = DeviceIx> {
        let mut next = self.first_from(DeviceIx::FIRST);
        std::iter::from_fn(move || {
            let device = next?;
            next = self.first_from(DeviceIx::from(usize::from(device) + 1));
            Some(device)
        })
    }
}

/// Returns the position of a device's word, and its bit in the word.
#[inline]
fn place(device: DeviceIx) -> (usize, u64) {
    let number = usize::from(device);
    (number / 64, 1 << (number % 64))
}
