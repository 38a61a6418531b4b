//! Amounts of resources, exact to a billionth of a unit, and what a pod requests.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Serialize;

const NANOS: i128 = 1_000_000_000;

/// Suffixes with their power of ten.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Suffixes with their power of two.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Why a text is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmountError {
    /// Not a number with a suffix that Kubernetes knows.
    #[error("quantity {text:?}: not a number with an optional suffix")]
    Format {
        /// The text.
        text: String,
    },
    /// Too large to be counted in billionths.
    #[error("quantity {text:?}: out of range")]
    OutOfRange {
        /// The text.
        text: String,
    },
}

/// An amount of a resource. Sums saturate: an overcommitted node must not stop a report.
///
/// ```
/// use nnn::amount::Amount;
/// let memory = Amount::parse("1.5Gi")?;
/// assert_eq!(memory, Amount::parse("1536Mi")?);
/// assert_eq!(memory.plus(Amount::parse("500m")?).to_string(), "1610612736500m");
/// assert!(Amount::parse("1i").is_err());
/// # Ok::<(), nnn::amount::AmountError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    nanos: i128,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A whole number of units.
    #[must_use]
    pub const fn from_units(units: i64) -> Self {
        Self { nanos: (units as i128) * NANOS }
    }

    /// A number of thousandths, as CPU time is counted.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self { nanos: (millis as i128) * 1_000_000 }
    }

    /// Reads a `resource.Quantity`. What is finer than a billionth is rounded away from zero.
    ///
    /// # Errors
    /// The text is none, or beyond 128 bits of billionths.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let format = || AmountError::Format { text: text.to_owned() };
        let range = || AmountError::OutOfRange { text: text.to_owned() };
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at_checked(end).ok_or_else(format)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(format());
        }
        let scale = Scale::of(suffix).ok_or_else(format)?;
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let mantissa: i128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| range())? };
        let places = i32::try_from(fraction.len()).map_err(|_| range())?;
        let nanos = scale.nanos(mantissa, places).ok_or_else(range)?;
        Ok(Self { nanos: if negative { nanos.saturating_neg() } else { nanos } })
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }

    /// The difference, which may be below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos) }
    }

    /// How many thousandths of `whole` it is: 1000 of nothing, if it is more than nothing.
    ///
    /// ```
    /// use nnn::amount::Amount;
    /// assert_eq!(Amount::from_units(1).permille_of(Amount::from_units(4)), 250);
    /// assert_eq!(Amount::from_units(1).permille_of(Amount::ZERO), 1000);
    /// ```
    #[must_use]
    pub fn permille_of(self, whole: Self) -> u32 {
        if self.nanos <= 0 {
            return 0;
        }
        let permille = self.nanos.saturating_mul(1000).checked_div(whole.nanos.max(0));
        permille.map_or(1000, |permille| u32::try_from(permille).unwrap_or(u32::MAX))
    }
}

/// What a suffix multiplies with.
enum Scale {
    Ten(i32),
    Two(u32),
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        let decimal = DECIMAL.iter().find(|(known, _)| *known == suffix).map(|(_, power)| Self::Ten(*power));
        let binary = || BINARY.iter().find(|(known, _)| *known == suffix).map(|(_, power)| Self::Two(*power));
        let exponent = || suffix.strip_prefix(['e', 'E'])?.parse().ok().map(Self::Ten);
        decimal.or_else(binary).or_else(exponent)
    }

    /// `mantissa` with `places` digits after the point, in billionths.
    fn nanos(&self, mantissa: i128, places: i32) -> Option<i128> {
        match *self {
            Self::Ten(power) => shift(mantissa, power.checked_add(9)?.checked_sub(places)?),
            Self::Two(power) => shift(mantissa.checked_mul(1_i128.checked_shl(power)?)?, 9_i32.checked_sub(places)?),
        }
    }
}

/// `value · 10^power`, rounded away from zero.
fn shift(value: i128, power: i32) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    let Some(factor) = 10_i128.checked_pow(power.unsigned_abs()) else {
        return (power < 0).then_some(1);
    };
    if power >= 0 {
        return value.checked_mul(factor);
    }
    let quotient = value.checked_div(factor)?;
    let rest = value.checked_rem(factor)?;
    quotient.checked_add(i128::from(rest != 0))
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, suffix) in [(NANOS, ""), (1_000_000, "m"), (1_000, "u"), (1, "n")] {
            if self.nanos.checked_rem(unit) == Some(0) {
                return write!(f, "{}{suffix}", self.nanos.checked_div(unit).unwrap_or_default());
            }
        }
        Ok(())
    }
}

impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Amounts by the names of resources. What is not named is zero.
///
/// ```
/// use nnn::amount::{Amount, Resources};
/// let two = Resources::new([("cpu", Amount::from_units(2))]);
/// let one = Resources::new([("cpu", Amount::from_units(1)), ("memory", Amount::ZERO)]);
/// assert!(one.fits_into(&two) && !two.fits_into(&one));
/// assert!(two.minus(&one).of("cpu") == Amount::from_units(1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Resources {
    amounts: BTreeMap<String, Amount>,
}

impl Resources {
    /// Amounts by name.
    #[must_use]
    pub fn new<'a>(amounts: impl IntoIterator<Item = (&'a str, Amount)>) -> Self {
        Self { amounts: amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect() }
    }

    /// Reads a list of quantities, as `allocatable` or `requests` are.
    ///
    /// # Errors
    /// The first quantity, in the order of names, that can't be read.
    pub fn parse(list: &BTreeMap<String, Quantity>) -> Result<Self, AmountError> {
        let read = list.iter().map(|(name, quantity)| Ok((name.clone(), Amount::parse(&quantity.0)?)));
        Ok(Self { amounts: read.collect::<Result<_, AmountError>>()? })
    }

    /// What a pod requests: the larger of its containers together and of each init container with the sidecars before it;
    /// overhead on top. Requests of the pod as a whole win over those of its containers.
    ///
    /// The number of pods is no request; a caller that counts pods does so in its fit function.
    ///
    /// # Errors
    /// A quantity that can't be read.
    pub fn requested_by(spec: &PodSpec) -> Result<Self, AmountError> {
        let mut running = Self::default();
        for container in &spec.containers {
            running.add(&requests(container)?);
        }
        let (mut sidecars, mut starting) = (Self::default(), Self::default());
        for container in spec.init_containers.iter().flatten() {
            let mut now = requests(container)?;
            if container.restart_policy.as_deref() == Some("Always") {
                running.add(&now);
                sidecars.add(&now);
                now.clone_from(&sidecars);
            } else {
                now.add(&sidecars);
            }
            starting.raise_to(&now);
        }
        running.raise_to(&starting);
        for (name, amount) in stated(spec.resources.as_ref())?.amounts {
            running.amounts.insert(name, amount);
        }
        if let Some(overhead) = &spec.overhead {
            running.add(&Self::parse(overhead)?);
        }
        Ok(running)
    }

    /// Adds to each resource.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.amounts {
            let sum = self.of(name).plus(*amount);
            self.amounts.insert(name.clone(), sum);
        }
    }

    /// The difference; a resource may be below zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = self.clone();
        for (name, amount) in &other.amounts {
            let rest = left.of(name).minus(*amount);
            left.amounts.insert(name.clone(), rest);
        }
        left
    }

    /// The amount of a resource.
    #[must_use]
    pub fn of(&self, name: &str) -> Amount {
        self.amounts.get(name).copied().unwrap_or_default()
    }

    /// Every resource that is named, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Amount)> {
        self.amounts.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Whether there is enough in `free`. Nothing of a resource fits always, as in kube-scheduler.
    #[must_use]
    pub fn fits_into(&self, free: &Self) -> bool {
        self.amounts.iter().all(|(name, amount)| *amount <= Amount::ZERO || *amount <= free.of(name))
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.amounts {
            let larger = self.of(name).max(*amount);
            self.amounts.insert(name.clone(), larger);
        }
    }
}

fn requests(container: &Container) -> Result<Resources, AmountError> {
    stated(container.resources.as_ref())
}

fn stated(requirements: Option<&ResourceRequirements>) -> Result<Resources, AmountError> {
    let requests = requirements.and_then(|requirements| requirements.requests.as_ref());
    requests.map_or_else(|| Ok(Resources::default()), Resources::parse)
}
