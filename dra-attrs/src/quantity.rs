//! Kubernetes' `resource.Quantity`: parsing, canonical form, exact comparison and arithmetic.
//!
//! Rules of apimachinery's `ParseQuantity` and `CanonicalizeBytes` (1.37): non-zero values are rounded away from zero
//! to nano-units; only a binary suffix (`Ki` to `Ei`) caps at 2⁶³ − 1; a binary quantity below 1 becomes a decimal one.
//! No floating point is involved.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use serde::{Deserialize, Serialize};

use crate::serde_text::serde_as_text;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const BINARY_CAP_NANOS: i128 = (i64::MAX as i128) * NANOS_PER_UNIT;

/// Family of suffixes that a quantity is parsed from and printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[expect(clippy::exhaustive_enums, reason = "apimachinery has exactly these three formats")]
pub enum QuantityFormat {
    /// Decimal suffixes: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[serde(rename = "DecimalSI")]
    DecimalSi,
    /// Binary suffixes: `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    #[serde(rename = "BinarySI")]
    BinarySi,
    /// Decimal exponents: `e3`, `E-6`.
    DecimalExponent,
}

/// Decimal suffixes with their powers of ten. `BINARY_SUFFIXES` has the powers of two.
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Reason that a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is not a number with an optional sign and suffix.
    #[error("quantity {text:?}: not a number with an optional suffix")]
    Format {
        /// The invalid text.
        text: String,
    },
    /// The text after the number is not a suffix of quantities.
    #[error("quantity {text:?}: unknown suffix {suffix:?}")]
    Suffix {
        /// The invalid text.
        text: String,
        /// The unknown suffix.
        suffix: String,
    },
    /// The value does not fit in 128 bits of nano-units (about 1.7e29 units).
    #[error("quantity {text:?}: out of range")]
    OutOfRange {
        /// The invalid text.
        text: String,
    },
}

/// Exact quantity with a resolution of one nano-unit (10⁻⁹).
///
/// Equality, order and hash use the value: `1` equals `1000m`. [`fmt::Display`] prints the canonical form.
///
/// ```
/// use dra_attrs::{Quantity, QuantityFormat};
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory.to_string(), "1536Mi");
/// assert_eq!(memory.format(), QuantityFormat::BinarySi);
/// assert_eq!("1".parse::<Quantity>()?, "1000m".parse()?);
/// assert_eq!(memory.checked_add("512Mi".parse()?).map(|sum| sum.to_string()), Some("2Gi".to_owned()));
/// assert!("1i".parse::<Quantity>().is_err());
/// # Ok::<(), dra_attrs::QuantityError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct Quantity {
    nanos: i128,
    format: QuantityFormat,
}

impl Quantity {
    /// Zero, in decimal format.
    pub const ZERO: Self = Self::from_nanos(0, QuantityFormat::DecimalSi);

    /// Builds a quantity from a number of nano-units.
    #[must_use]
    pub const fn from_nanos(nanos: i128, format: QuantityFormat) -> Self {
        Self { nanos, format }
    }

    /// Builds a quantity from a whole number of units.
    #[must_use]
    pub const fn from_units(units: i64, format: QuantityFormat) -> Self {
        Self { nanos: (units as i128) * NANOS_PER_UNIT, format }
    }

    /// Builds a quantity from a number of thousandths, the unit of CPU time.
    #[must_use]
    pub const fn from_millis(millis: i64, format: QuantityFormat) -> Self {
        Self { nanos: (millis as i128) * (NANOS_PER_UNIT / 1000), format }
    }

    /// Returns the value in nano-units.
    #[must_use]
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// Returns the format in which the quantity is printed.
    #[must_use]
    pub const fn format(self) -> QuantityFormat {
        self.format
    }

    /// Returns the sum, or `None` on overflow. A zero takes the format of the other operand, as upstream.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_add(other.nanos)?, format: self.format_with(other) })
    }

    /// Returns the difference, or `None` on overflow. A zero takes the format of the other operand, as upstream.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_sub(other.nanos)?, format: self.format_with(other) })
    }

    /// Returns the product with a whole number, or `None` on overflow.
    #[must_use]
    pub fn checked_mul(self, factor: i64) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_mul(i128::from(factor))?, ..self })
    }

    /// Returns the product with another quantity in the format of this one, limited to the largest or smallest value on
    /// overflow. A fraction of a nano-unit is rounded away from zero, as the canonical text does.
    ///
    /// ```
    /// use dra_attrs::Quantity;
    /// let quantity = |text: &str| text.parse::<Quantity>().unwrap();
    /// assert_eq!(quantity("3").saturating_mul(quantity("1500m")), quantity("4500m"));
    /// assert_eq!(quantity("1500m").saturating_mul(quantity("2")), quantity("3"));
    /// assert_eq!(quantity("1Gi").saturating_mul(quantity("2")).to_string(), "2Gi");
    /// ```
    #[must_use]
    pub const fn saturating_mul(self, factor: Self) -> Self {
        let (units, rest) = (self.nanos / NANOS_PER_UNIT, self.nanos % NANOS_PER_UNIT);
        // The rest is below one unit, so that its product stays within the range unless the factor nearly fills it.
        let product = rest.saturating_mul(factor.nanos);
        let away_from_zero = if product % NANOS_PER_UNIT == 0 { 0 } else { product.signum() };
        let of_rest = product / NANOS_PER_UNIT + away_from_zero;
        Self { nanos: units.saturating_mul(factor.nanos).saturating_add(of_rest), ..self }
    }

    /// Returns the whole number of units, rounded up and limited to 64 bits, as upstream's `Value`.
    ///
    /// ```
    /// use dra_attrs::Quantity;
    /// assert_eq!("1500m".parse::<Quantity>()?.units_rounded_up(), 2);
    /// # Ok::<(), dra_attrs::QuantityError>(())
    /// ```
    #[must_use]
    pub fn units_rounded_up(self) -> i64 {
        let up = i128::from(self.nanos % NANOS_PER_UNIT > 0);
        let units = self.nanos / NANOS_PER_UNIT + up;
        i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the sum, limited to the largest or smallest value on overflow.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos), format: self.format_with(other) }
    }

    /// Returns the difference, limited to the largest or smallest value on overflow.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos), format: self.format_with(other) }
    }

    const fn format_with(self, other: Self) -> QuantityFormat {
        if self.nanos == 0 { other.format } else { self.format }
    }

    /// Parses a quantity of an API object like the API server: white space around the text is ignored.
    ///
    /// # Errors
    /// The errors of [`Quantity::from_str`].
    ///
    /// ```
    /// use dra_attrs::Quantity;
    /// use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
    /// let quantity = Quantity::from_kube(&KubeQuantity(" 40Gi ".to_owned()))?;
    /// assert_eq!(quantity.to_kube(), KubeQuantity("40Gi".to_owned()));
    /// # Ok::<(), dra_attrs::QuantityError>(())
    /// ```
    pub fn from_kube(quantity: &KubeQuantity) -> Result<Self, QuantityError> {
        quantity.0.trim().parse()
    }

    /// Returns the text that an API server stores for the text of a quantity: the canonical form, unless the server's quick
    /// check takes the text for canonical, which then stays as it is. White space around it goes.
    ///
    /// For example, `1.5` becomes `1500m` and `1.500` stays, `1000` becomes `1k` and `+5` stays.
    ///
    /// # Errors
    /// The errors of [`Quantity::from_str`].
    ///
    /// # Complexity
    /// Linear in the text.
    ///
    /// ```
    /// use dra_attrs::Quantity;
    /// let stored = |text| Quantity::stored_text(text).unwrap();
    /// assert_eq!(["1.5", "1000", " 1024Ki ", "0.5Gi"].map(stored), ["1500m", "1k", "1Mi", "512Mi"]);
    /// assert_eq!(["1.500", "+5", "007", "1E3", "+3Ki"].map(stored), ["1.500", "+5", "007", "1E3", "+3Ki"]);
    /// ```
    ///
    /// Source: `ParseQuantity` of apimachinery, 1.37.
    pub fn stored_text(text: &str) -> Result<String, QuantityError> {
        let text = text.trim();
        let quantity: Self = text.parse()?;
        let literal = Literal::split(text);
        let is_kept = literal
            .is_some_and(|literal| Scale::of(literal.suffix).is_some_and(|scale| literal.passes_for_canonical(scale)));
        Ok(if is_kept { text.to_owned() } else { quantity.to_string() })
    }

    /// Returns the canonical form as the API's `Quantity`.
    #[must_use]
    pub fn to_kube(self) -> KubeQuantity {
        KubeQuantity(self.to_string())
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Parses sign, digits with an optional fraction, and suffix.
    ///
    /// Accepts the same irregular forms as upstream: `+5`, `1.`, `.5`, and a sign, a dot or a suffix without digits as
    /// zero.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let literal = Literal::split(text).ok_or_else(|| QuantityError::Format { text: text.to_owned() })?;
        let scale = Scale::of(literal.suffix)
            .ok_or_else(|| QuantityError::Suffix { text: text.to_owned(), suffix: literal.suffix.to_owned() })?;
        literal.value(scale).ok_or_else(|| QuantityError::OutOfRange { text: text.to_owned() })
    }
}

/// Power of ten or two that a suffix stands for.
#[derive(Clone, Copy)]
enum Scale {
    Ten { power: i64, format: QuantityFormat },
    Two { power: u32 },
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
            return Some(Self::Ten { power: i64::from(*power), format: QuantityFormat::DecimalSi });
        }
        if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
            return Some(Self::Two { power: *power });
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        let power = exponent.parse().ok()?;
        Some(Self::Ten { power, format: QuantityFormat::DecimalExponent })
    }
}

/// Parts of a quantity's text.
struct Literal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Literal<'a> {
    fn split(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let digits = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        digits.bytes().all(|c| c.is_ascii_digit()).then_some(Self { negative, whole, fraction, suffix })
    }

    /// Returns true if the server's quick check takes the text for canonical: a number of few digits whose last three, after the
    /// point is moved to a power of a thousand, are not zeros; of binary ones a whole number that is no multiple of 8.
    fn passes_for_canonical(&self, scale: Scale) -> bool {
        let whole = self.whole.trim_start_matches('0');
        let digits = whole.len().max(1) + self.fraction.len();
        match scale {
            Scale::Ten { power, .. } => {
                let power = i64::try_from(self.fraction.len()).ok().and_then(|moved| power.checked_sub(moved));
                let moved = format!("{whole}{}", self.fraction);
                digits <= 18
                    && power.is_some_and(|power| power >= -9 && power % 3 == 0)
                    && !whole.is_empty()
                    && !moved.ends_with("000")
            }
            Scale::Two { power } => {
                // The digits that a power of two has at least.
                let most = 14_usize.checked_sub(usize::try_from(power * 3 / 10).unwrap_or(usize::MAX));
                let value: u64 = whole.parse().unwrap_or_default();
                self.fraction.is_empty() && most.is_some_and(|most| digits <= most) && !value.is_multiple_of(8)
            }
        }
    }

    fn value(&self, scale: Scale) -> Option<Quantity> {
        let (magnitude, format) = match scale {
            Scale::Ten { power, format } => (self.scaled(power, NANOS_PER_UNIT)?, format),
            Scale::Two { power } => {
                let nanos = self.scaled(0, NANOS_PER_UNIT << power).unwrap_or(BINARY_CAP_NANOS).min(BINARY_CAP_NANOS);
                let below_one = nanos > 0 && nanos < NANOS_PER_UNIT;
                (nanos, if below_one { QuantityFormat::DecimalSi } else { QuantityFormat::BinarySi })
            }
        };
        Some(Quantity { nanos: if self.negative { -magnitude } else { magnitude }, format })
    }

    /// Returns `digits × 10^power × unit`, rounded up; `None` on overflow.
    fn scaled(&self, power: i64, unit: i128) -> Option<i128> {
        let digits = || self.whole.bytes().chain(self.fraction.bytes()).map(|c| i128::from(c - b'0'));
        if digits().all(|digit| digit == 0) {
            return Some(0);
        }
        let point = i64::try_from(self.whole.len()).ok()?.checked_add(power)?;
        let len = self.whole.len() + self.fraction.len();
        let split = usize::try_from(point).unwrap_or(0);
        let mut whole: i128 = 0;
        for digit in digits().take(split) {
            whole = whole.checked_mul(10)?.checked_add(digit)?;
        }
        for _ in len..split {
            whole = whole.checked_mul(10)?;
        }
        let leading_zeros = usize::try_from(point.min(0).unsigned_abs()).ok()?;
        let rest = fraction_of(digits().skip(split).collect(), leading_zeros, unit);
        whole.checked_mul(unit)?.checked_add(rest)
    }
}

/// Returns `0.00…digits × unit`, rounded up, by Horner's rule from the last digit. The result is exact: dividing a
/// rounded-down quotient again loses only what the `inexact` flag remembers.
fn fraction_of(digits: Vec<i128>, leading_zeros: usize, unit: i128) -> i128 {
    let mut quotient = 0;
    let mut inexact = false;
    // After 64 zeros the quotient is 0 in any case: unit is below 2^90.
    let zeros = std::iter::repeat_n(0, leading_zeros.min(64));
    for digit in digits.into_iter().rev().chain(zeros) {
        let dividend = quotient + digit * unit;
        quotient = dividend / 10;
        inexact |= dividend % 10 != 0;
    }
    quotient + i128::from(inexact)
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        match self.format {
            QuantityFormat::BinarySi if self.prints_binary() => {
                let (amount, power) = strip_factors(self.nanos / NANOS_PER_UNIT, 1024, BINARY_SUFFIXES.len());
                let suffix = power.checked_sub(1).and_then(|index| BINARY_SUFFIXES.get(index)).map_or("", |(s, _)| s);
                write!(f, "{amount}{suffix}")
            }
            format => self.fmt_decimal(f, format),
        }
    }
}

impl Quantity {
    /// Returns true if the value can be printed in the binary format: a whole number of at least 1024 (or at most
    /// -1024).
    const fn prints_binary(self) -> bool {
        self.nanos % NANOS_PER_UNIT == 0 && self.nanos.unsigned_abs() >= 1024 * NANOS_PER_UNIT.unsigned_abs()
    }

    /// Prints the value without its trailing groups of three zeros, which become a suffix, or an exponent such as `e21`
    /// if there is no suffix.
    fn fmt_decimal(self, f: &mut fmt::Formatter<'_>, format: QuantityFormat) -> fmt::Result {
        let (thousands, groups) = strip_factors(self.nanos, 1000, usize::MAX);
        let exponent = i64::try_from(groups).unwrap_or(i64::MAX).saturating_mul(3).saturating_sub(9);
        let suffix = DECIMAL_SUFFIXES.iter().find(|(_, power)| i64::from(*power) == exponent);
        match (format, suffix) {
            (_, _) if exponent == 0 => write!(f, "{thousands}"),
            (QuantityFormat::DecimalExponent, _) | (_, None) => write!(f, "{thousands}e{exponent}"),
            (_, Some((suffix, _))) => write!(f, "{thousands}{suffix}"),
        }
    }
}

/// Divides `value` by `factor` while there is no remainder, at most `most` times. Returns the quotient and the number
/// of divisions.
fn strip_factors(mut value: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut times = 0;
    while times < most && value != 0 && value % factor == 0 {
        value /= factor;
        times += 1;
    }
    (value, times)
}

serde_as_text!(Quantity, |text: &str| text.trim().parse());

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}
