//! Ranges of costs and sizes. Sums and products end at the largest number.

/// Price of one walk over a text, for each of its characters.
pub(crate) const WALK: f64 = 0.1;
/// Price of two walks.
pub(crate) const TWO_WALKS: f64 = 0.2;
/// Price of comparing each with each, for each pair.
pub(crate) const PAIR: f64 = 2.0;
/// The same of texts.
pub(crate) const TEXT_PAIR: f64 = 2.1;
/// Price of a search for a pattern, for each character of the pattern.
pub(crate) const PATTERN: f64 = 0.25;

/// Smallest and largest number that something can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    pub(super) const ZERO: Self = Self::exactly(0);

    pub(super) const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    pub(super) const fn exactly(number: u64) -> Self {
        Self { min: number, max: number }
    }

    pub(super) fn of_length(length: usize) -> Self {
        Self::exactly(u64::try_from(length).unwrap_or(u64::MAX))
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) const fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Multiplies with a price and rounds up.
    pub(super) fn priced(self, factor: f64) -> Self {
        Self { min: priced(self.min, factor), max: priced(self.max, factor) }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Multiplies a number with a price and rounds up, in floating point as Kubernetes does: 70 times 0.1 is 8.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "prices are floating-point numbers")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float ends at the limits")]
pub(crate) fn priced(number: u64, factor: f64) -> u64 {
    (number as f64 * factor).ceil() as u64
}
