//! Quantities of expressions, stored as apimachinery stores them (`int64` or decimal): `isInteger`, `asInteger` and
//! `asApproximateFloat` depend on the representation, not on the value alone.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use dra_attrs::{Quantity, QuantityError, QuantityFormat};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::decimal::Decimal;
use super::digits::digits;

/// Quantity with its internal representation.
#[derive(Clone, Debug)]
pub(crate) struct Amount {
    number: Number,
    form: Form,
}

/// Value of a quantity.
#[derive(Clone, Debug)]
enum Number {
    Plain(Quantity),
    /// Nano-units beyond 128 bits.
    Large(Arc<Decimal>),
}

/// Internal representation of a quantity as digits and a power of ten.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Digits in 64 bits; `None` for a decimal number of any size.
    digits: Option<i64>,
    /// Power of ten that the last digit stands for.
    power: i32,
}

/// Power of ten of a nano-unit.
const NANO: i32 = -9;
/// Power of ten of a unit.
const UNIT: i32 = 0;

/// Largest number of zeros that an exponent stands for.
const MOST_ZEROS: usize = 10_000;

/// Largest number of digits for which a quantity without binary suffix is represented in 64 bits.
const DECIMAL_DIGITS: usize = 18;
/// Largest number of digits, those of the suffix included, for which a quantity with binary suffix is represented in
/// 64 bits.
const BINARY_DIGITS: usize = 14;

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("", 0), ("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Binary suffixes with their power of two and their approximate number of digits.
const BINARY_SUFFIXES: [(&str, u32, usize); 6] =
    [("Ki", 10, 3), ("Mi", 20, 6), ("Gi", 30, 9), ("Ti", 40, 12), ("Pi", 50, 15), ("Ei", 60, 18)];

impl Amount {
    pub(crate) fn parse(text: &str) -> Result<Self, QuantityError> {
        let number = match text.parse::<Quantity>() {
            Ok(quantity) => Number::Plain(quantity),
            Err(error @ QuantityError::OutOfRange { .. }) => Number::Large(Arc::new(large(text).ok_or(error)?)),
            Err(error) => return Err(error),
        };
        let largest = Quantity::from_units(i64::MAX, QuantityFormat::BinarySi);
        let capped = matches!(&number, Number::Plain(quantity) if *quantity == largest);
        let decimal = Form { digits: None, power: if capped { UNIT } else { NANO } };
        Ok(Self { number, form: Form::of(text).unwrap_or(decimal) })
    }

    /// Reads a quantity of an object.
    pub(crate) fn from_kube(quantity: &KubeQuantity) -> Result<Self, QuantityError> {
        Self::parse(quantity.0.trim())
    }

    pub(crate) const fn from_units(units: i64) -> Self {
        let quantity = Quantity::from_units(units, QuantityFormat::DecimalExponent);
        Self { number: Number::Plain(quantity), form: Form { digits: Some(units), power: UNIT } }
    }

    /// Returns the work of a calculation beyond that with a number of 128 bits.
    pub(crate) fn weight(&self) -> usize {
        match &self.number {
            Number::Plain(_) => 0,
            Number::Large(number) => number.digits() * 4,
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (&self.number, &other.number) {
            (Number::Plain(one), Number::Plain(other)) => one.cmp(other),
            (one, other) => one.nanos().compare(&other.nanos()),
        }
    }

    /// Returns -1, 0 or 1.
    pub(crate) fn sign(&self) -> i64 {
        match &self.number {
            Number::Plain(quantity) => quantity.cmp(&Quantity::ZERO) as i64,
            Number::Large(number) => number.sign(),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let plain = match (&self.number, &other.number) {
            (Number::Plain(one), Number::Plain(other)) => one.checked_add(*other),
            _ => None,
        };
        let sum = || Number::of(self.number.nanos().plus(&other.number.nanos()));
        Self { number: plain.map_or_else(sum, Number::Plain), form: self.form.plus(other.form) }
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        // Go negates in 64 bits, where the smallest number is its own negative.
        let wrapped = (other.form.digits == Some(i64::MIN)).then(|| self.plus(other));
        wrapped.filter(|sum| sum.form.digits.is_some()).unwrap_or_else(|| self.plus(&other.negated()))
    }

    fn negated(&self) -> Self {
        let plain = match self.number {
            Number::Plain(quantity) => Quantity::ZERO.checked_sub(quantity),
            Number::Large(_) => None,
        };
        let negated = || Number::of(self.number.nanos().negated());
        let form = Form { digits: self.form.digits.and_then(i64::checked_neg), ..self.form };
        Self { number: plain.map_or_else(negated, Number::Plain), form }
    }

    /// Returns the value if its representation is that of an integer.
    pub(crate) fn integer(&self) -> Option<i64> {
        self.form.digits_at(UNIT)
    }

    /// Returns the digits as a float times the power of ten as a float: `0.3` is `3 * 0.1`.
    #[expect(clippy::cast_precision_loss, clippy::float_arithmetic, reason = "the function promises an approximation")]
    pub(crate) fn approximate(&self) -> f64 {
        let Form { digits, power } = self.form;
        let unit = 10_i128.saturating_pow(power.saturating_sub(NANO).unsigned_abs());
        let digits = match (digits, &self.number) {
            (Some(digits), _) => digits as f64,
            (None, Number::Plain(quantity)) => quantity.nanos().checked_div(unit).unwrap_or(0) as f64,
            (None, Number::Large(number)) => number.to_string().parse().unwrap_or(f64::INFINITY),
        };
        // Reading a text rounds correctly, as a table of powers would.
        let factor: f64 = format!("1e{power}").parse().unwrap_or(f64::INFINITY);
        digits * factor
    }
}

impl fmt::Display for Amount {
    /// Writes the canonical text; of a number beyond 128 bits of nano-units, these.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.number {
            Number::Plain(quantity) => write!(f, "{quantity}"),
            Number::Large(number) => write!(f, "{number}n"),
        }
    }
}

impl Number {
    fn of(nanos: Decimal) -> Self {
        match nanos.to_i128() {
            Some(nanos) => Self::Plain(Quantity::from_nanos(nanos, QuantityFormat::DecimalSi)),
            None => Self::Large(Arc::new(nanos)),
        }
    }

    fn nanos(&self) -> Decimal {
        match self {
            Self::Plain(quantity) => Decimal::from_i128(quantity.nanos()),
            Self::Large(number) => (**number).clone(),
        }
    }
}

/// Reads a number of nano-units that does not fit in 128 bits.
fn large(text: &str) -> Option<Decimal> {
    let [whole, fraction, suffix] = split(text);
    let power = decimal_power(suffix)?.checked_sub(NANO)?;
    let zeros = i64::from(power) - i64::try_from(fraction.len()).ok()?;
    let digits = format!("{whole}{fraction}");
    let is_negative = text.starts_with('-');
    if let Ok(zeros) = usize::try_from(zeros) {
        let fits = zeros <= MOST_ZEROS;
        return fits.then(|| Decimal::from_digits(is_negative, &format!("{digits}{}", "0".repeat(zeros))));
    }
    // What is below a nano-unit counts as one.
    let dropped = usize::try_from(zeros.unsigned_abs()).ok()?;
    let (kept, dropped) = digits.split_at_checked(digits.len().checked_sub(dropped)?)?;
    let number = Decimal::from_digits(is_negative, kept);
    let is_whole = dropped.bytes().all(|digit| digit == b'0');
    let unit = Decimal::from_i128(if is_negative { -1 } else { 1 });
    Some(if is_whole { number } else { number.plus(&unit) })
}

impl Form {
    /// Returns the representation of a quantity's text, if it fits in 64 bits.
    fn of(text: &str) -> Option<Self> {
        let [whole, fraction, suffix] = split(text);
        let whole = whole.trim_start_matches('0');
        // A number without digits before its point counts as one with a zero there.
        let length = whole.len().max(1) + fraction.len();
        let (power, factor) = match BINARY_SUFFIXES.iter().find(|(name, ..)| *name == suffix) {
            Some((_, exponent, digits)) => {
                let fits = fraction.is_empty() && length + digits <= BINARY_DIGITS;
                (UNIT, fits.then_some(1_i64 << exponent)?)
            }
            None => (decimal_power(suffix)?, (length <= DECIMAL_DIGITS).then_some(1)?),
        };
        let power = power.checked_sub(i32::try_from(fraction.len()).ok()?).filter(|power| *power >= NANO)?;
        let digits = format!("0{whole}{fraction}").parse::<i64>().ok()?.checked_mul(factor)?;
        Some(Self { digits: Some(if text.starts_with('-') { -digits } else { digits }), power })
    }

    fn plus(self, other: Self) -> Self {
        let power = self.power.min(other.power);
        match (self.digits, other.digits) {
            (Some(_), Some(0)) => self,
            (Some(0), Some(_)) => other,
            _ => {
                let both = self.digits_at(power).zip(other.digits_at(power));
                Self { digits: both.and_then(|(own, other)| own.checked_add(other)), power }
            }
        }
    }

    /// Returns the digits of the value in the unit `10^lower`, if they fit in 64 bits.
    fn digits_at(self, lower: i32) -> Option<i64> {
        let power = u32::try_from(self.power.checked_sub(lower)?).ok()?;
        match self.digits? {
            0 => Some(0),
            digits => digits.checked_mul(10_i64.checked_pow(power)?),
        }
    }
}

fn decimal_power(suffix: &str) -> Option<i32> {
    let exponent = || suffix.strip_prefix(['e', 'E'])?.parse().ok();
    DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix).map(|(_, power)| *power).or_else(exponent)
}

/// Splits a quantity without its sign into the digits before and after the point, and the suffix.
fn split(text: &str) -> [&str; 3] {
    let (whole, rest) = digits(text.strip_prefix(['-', '+']).unwrap_or(text));
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    [whole, fraction, suffix]
}

#[cfg(test)]
mod tests {
    use super::Amount;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    #[test]
    fn an_integer_is_what_is_held_as_one() {
        let rows = [
            ("5", Some(5)),
            ("-5", Some(-5)),
            ("+007", Some(7)),
            ("0", Some(0)),
            (".", Some(0)),
            ("10Gi", Some(10 << 30)),
            ("99Ti", Some(99 << 40)),
            ("100Ti", None),
            ("1Pi", None),
            ("1.5Gi", None),
            ("1e3", Some(1_000)),
            ("50000000G", Some(50_000_000_000_000_000)),
            ("1000m", None),
            ("1.0", None),
            ("1.5k", Some(1_500)),
            ("1.5000k", None),
            ("123456789012345678", Some(123_456_789_012_345_678)),
            ("1234567890123456789", None),
            ("10E", None),
            ("1E", Some(1_000_000_000_000_000_000)),
        ];
        for (text, integer) in rows {
            assert_eq!(amount(text).integer(), integer, "{text}");
        }
    }

    #[test]
    fn a_sum_is_an_integer_if_both_are_and_it_fits() {
        let rows = [
            ("10Gi", "5", Some((10 << 30) + 5)),
            ("1500m", "500m", None),
            ("1500m", "0", None),
            ("0", "1k", Some(1_000)),
            ("1k", "0m", Some(1_000)),
            ("1k", "1", Some(1_001)),
            ("100Ti", "1", None),
            ("5", "1.5Gi", None),
            ("9E", "9E", None),
        ];
        for (one, other, integer) in rows {
            let sum = amount(one).plus(&amount(other));
            assert_eq!(sum.integer(), integer, "{one} + {other}");
        }
        let difference = amount("1k").minus(&Amount::from_units(1));
        assert_eq!(difference.integer(), Some(999));
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the same bits are wanted")]
    fn a_float_is_digits_times_a_power() {
        let rows = [
            ("0.3", 3.0 * 0.1),
            ("1.5", 1.5),
            ("1500m", 1.5),
            ("100Ti", 109_951_162_777_600.0),
            ("1.5Gi", 1_610_612_736_000_000_000.0 * 1e-9),
            ("1e21", 1e21),
            ("9Ei", 9_223_372_036_854_775_807.0),
            ("0", 0.0),
        ];
        for (text, float) in rows {
            assert_eq!(amount(text).approximate(), float, "{text}");
        }
    }
}
