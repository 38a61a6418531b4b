//! Whole numbers of any size, for quantities that do not fit in 128 bits of nano-units.

use std::cmp::Ordering;
use std::fmt;

/// Base of the limbs: nine decimal digits.
const BASE: i64 = 1_000_000_000;
const DIGITS: usize = 9;

/// Whole number: limbs to the base, the least first. The last has the sign of the number, the others have none.
#[derive(Clone, Debug)]
pub(super) struct Decimal(Vec<i64>);

impl Decimal {
    /// Makes a number of limbs of any sign.
    fn new(limbs: impl Iterator<Item = i64>) -> Self {
        let mut carry = 0;
        let mut limbs: Vec<i64> = limbs
            .map(|limb| {
                let total = limb + carry;
                carry = total.div_euclid(BASE);
                total.rem_euclid(BASE)
            })
            .collect();
        limbs.push(carry);
        while let [.., before, last @ (0 | -1)] = limbs.as_mut_slice() {
            *before += *last * BASE;
            limbs.pop();
        }
        Self(limbs)
    }

    /// Reads decimal digits without a sign.
    pub(super) fn from_digits(is_negative: bool, digits: &str) -> Self {
        let limbs = digits
            .as_bytes()
            .rchunks(DIGITS)
            .map(|chunk| chunk.iter().fold(0, |limb, digit| limb * 10 + i64::from(digit.saturating_sub(b'0'))));
        Self::new(limbs.map(|limb| if is_negative { -limb } else { limb }))
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
        self.0.len() * DIGITS
    }

    /// Returns -1, 0 or 1.
    pub(super) fn sign(&self) -> i64 {
        self.0.last().map_or(0, |last| last.signum())
    }

    pub(super) fn negated(&self) -> Self {
        Self::new(self.0.iter().map(|limb| -limb))
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let limb = |limbs: &Self, index: usize| limbs.0.get(index).copied().unwrap_or_default();
        Self::new((0..self.0.len().max(other.0.len())).map(|index| limb(self, index) + limb(other, index)))
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.plus(&other.negated()).sign().cmp(&0)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sign() < 0 {
            return write!(f, "-{}", self.negated());
        }
        let mut limbs = self.0.iter().rev();
        write!(f, "{}", limbs.next().copied().unwrap_or_default())?;
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
            prop_assert_eq!(left.compare(&right), one.cmp(&other));
            prop_assert_eq!(left.to_string(), one.to_string());
        }
    }
}
