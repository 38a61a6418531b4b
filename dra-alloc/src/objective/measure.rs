//! Measure: a term as it is counted on the devices of one node.

use super::partial::Partial;
use crate::search::ix::DeviceIx;

/// Facts about a device; two devices with the same facts can be exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Facts {
    /// Each fact with its space: zero for numbers, otherwise that of a label.
    all: Vec<(usize, u64)>,
    space: usize,
}

impl Facts {
    /// Begins a further space: labels of different spaces have nothing to do with each other.
    pub(super) fn begin_space(&mut self) {
        self.space += 1;
    }

    /// Adds a number, which counts as it is.
    pub(super) fn number(&mut self, number: u64) {
        self.all.push((0, number));
    }

    /// Adds an amount as two numbers.
    pub(super) fn amount(&mut self, amount: i128) {
        let bytes = amount.to_ne_bytes();
        let (low, high) = bytes.split_at(size_of::<u64>());
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        [low, high].map(word).into_iter().for_each(|word| self.number(word));
    }

    /// Adds a label, such as a value of an attribute, of which it counts only who else has it.
    pub(super) fn label(&mut self, label: u64) {
        self.all.push((self.space, label));
    }

    /// Adds several labels.
    pub(super) fn labels(&mut self, labels: &[u32]) {
        self.all.extend(labels.iter().map(|label| (self.space, u64::from(*label))));
    }

    /// Returns the facts: labels with their spaces, and numbers with none.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.all.iter().copied()
    }
}

/// Term as it is counted on the devices of one node.
pub(super) trait Measure {
    /// Returns what every solution with this part has at least; of a whole solution, its value.
    fn at_least(&self, partial: &Partial<'_>) -> u64;

    /// Returns true if the value of a whole solution may have been too large, since a search for it was stopped.
    fn is_rough(&self) -> bool {
        false
    }

    /// Returns the names of the units that have to go for a whole solution.
    fn displaced(&self, _: &Partial<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Adds what the term reads of a device, apart from its counters, to the facts about it.
    fn tell(&self, device: DeviceIx, facts: &mut Facts);

    /// Adds what the term reads beside that of each device. Returns false if it reads more than it tells.
    fn tell_node(&self, _: &mut Facts) -> bool {
        true
    }
}

/// Returns a number as it counts in values.
pub(super) fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns a part in thousandths of the whole, rounded down; zero if there is no whole.
pub(super) fn thousandths(part: i128, whole: i128) -> u64 {
    if whole <= 0 {
        return 0;
    }
    let number = part.max(0).saturating_mul(1000) / whole;
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Adds up the smallest numbers of a list.
pub(super) fn sum_of_smallest(numbers: impl Iterator<Item = u64>, count: usize) -> u64 {
    let mut numbers: smallvec::SmallVec<[u64; 32]> = numbers.collect();
    numbers.sort_unstable();
    numbers.into_iter().take(count).fold(0, u64::saturating_add)
}
