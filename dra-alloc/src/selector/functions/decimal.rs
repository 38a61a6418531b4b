//! Whole numbers of any size, for quantities that do not fit in 128 bits of nano-units.

use std::cmp::Ordering;
use std::fmt;

/// Base of the limbs: nine decimal digits.
const BASE: u32 = 1_000_000_000;
const DIGITS: usize = 9;

/// Whole number with a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    /// Digits to the base, the least first; the last is not zero.
    limbs: Vec<u32>,
}

impl Decimal {
    fn new(is_negative: bool, mut limbs: Vec<u32>) -> Self {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Self { is_negative: is_negative && !limbs.is_empty(), limbs }
    }

    /// Reads decimal digits without a sign.
    pub(super) fn from_digits(is_negative: bool, digits: &str) -> Self {
        let limbs = digits
            .as_bytes()
            .rchunks(DIGITS)
            .map(|chunk| chunk.iter().fold(0, |limb: u32, digit| limb * 10 + u32::from(digit.saturating_sub(b'0'))));
        Self::new(is_negative, limbs.collect())
    }

    pub(super) fn from_i128(number: i128) -> Self {
        Self::from_digits(number < 0, &number.unsigned_abs().to_string())
    }

    /// Returns the number if it fits in 128 bits.
    pub(super) fn to_i128(&self) -> Option<i128> {
        self.to_string().parse().ok()
    }

    /// Returns the number of digits, rounded up to whole limbs.
    pub(super) const fn digits(&self) -> usize {
        self.limbs.len() * DIGITS
    }

    pub(super) const fn is_negative(&self) -> bool {
        self.is_negative
    }

    pub(super) fn negated(&self) -> Self {
        Self::new(!self.is_negative, self.limbs.clone())
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        if self.is_negative == other.is_negative {
            return Self::new(self.is_negative, sum(&self.limbs, &other.limbs));
        }
        match compare(&self.limbs, &other.limbs) {
            Ordering::Less => Self::new(other.is_negative, difference(&other.limbs, &self.limbs)),
            _ => Self::new(self.is_negative, difference(&self.limbs, &other.limbs)),
        }
    }
}

fn compare(one: &[u32], other: &[u32]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.iter().rev().cmp(other.iter().rev()))
}

fn sum(one: &[u32], other: &[u32]) -> Vec<u32> {
    let mut carry = 0;
    let mut limbs: Vec<u32> = (0..one.len().max(other.len()))
        .map(|index| {
            let limb = |limbs: &[u32]| limbs.get(index).copied().unwrap_or_default();
            let total = limb(one) + limb(other) + carry;
            carry = total / BASE;
            total % BASE
        })
        .collect();
    limbs.push(carry);
    limbs
}

/// Subtracts a number from one that is not smaller.
fn difference(one: &[u32], other: &[u32]) -> Vec<u32> {
    let mut borrowed = 0;
    let limbs = one.iter().enumerate().map(|(index, limb)| {
        let taken = other.get(index).copied().unwrap_or_default() + borrowed;
        borrowed = u32::from(*limb < taken);
        limb + borrowed * BASE - taken
    });
    limbs.collect()
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => compare(&self.limbs, &other.limbs),
            (true, true) => compare(&other.limbs, &self.limbs),
            (is_negative, _) => {
                if is_negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limbs = self.limbs.iter().rev();
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{}", limbs.next().copied().unwrap_or_default())?;
        limbs.try_for_each(|limb| write!(f, "{limb:09}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Decimal;

    proptest! {
        #[test]
        fn numbers_that_fit_are_computed_as_such(one in any::<i64>(), other in any::<i64>()) {
            let (one, other) = (i128::from(one) << 40, i128::from(other));
            let (left, right) = (Decimal::from_i128(one), Decimal::from_i128(other));
            prop_assert_eq!(left.plus(&right).to_i128(), Some(one + other));
            prop_assert_eq!(left.plus(&right.negated()).to_i128(), Some(one - other));
            prop_assert_eq!(left.cmp(&right), one.cmp(&other));
            prop_assert_eq!(left.to_string(), one.to_string());
        }
    }
}
