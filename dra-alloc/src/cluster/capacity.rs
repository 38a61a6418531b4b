//! Consumable capacity: the amounts that a share of a device consumes of the device's capacities (KEP-5075).
//!
//! A request names amounts of capacities, which the request policy of the capacity rounds. Every capacity of the device
//! is consumed, also those that the request does not name:
//!
//! | request | policy | consumed |
//! |---|---|---|
//! | none | with a default | the default |
//! | none | without | the whole capacity |
//! | an amount | none | the amount |
//! | an amount | range | at least `min`, rounded up to the next step from there |
//! | an amount | values | the smallest listed value that suffices, else the amount |
//!
//! The consumed amount must satisfy the policy, unless it is the default. It must also not exceed the capacity that
//! other shares have left.
//!
//! Steps are computed in whole units, with all numbers rounded up. With the gate
//! [`crate::Gate::FractionalCapacityRange`], they are computed in thousandths if all numbers of the range are
//! multiples of a thousandth. The amount is printed in the format of the step.
//!
//! Source: `consumable_capacity.go` of kube-scheduler 1.37.

use dra_attrs::{Quantity, QuantityError, QuantityFormat};
use k8s_openapi::api::resource::v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Unit in which the steps of a capacity's `validRange` are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rounding {
    /// Whole units; all numbers of the range are rounded up.
    Whole,
    /// Thousandths, if all numbers of the range are multiples of 0.001; otherwise whole units.
    Fractional,
}

/// Reason why the consumed amount of a capacity can't be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The requested amount, rounded up to whole units, exceeds the largest 64-bit integer.
    #[error(
        "capacity request cannot be represented in the device's range arithmetic: request {request} exceeds MaxInt64"
    )]
    RequestTooLarge {
        /// The requested amount.
        request: Quantity,
    },
    /// The request rounded up to the next step of the range exceeds the largest 64-bit integer.
    #[error(
        "capacity request cannot be represented in the device's range arithmetic: rounding request {request} up to the \
         next step passes MaxInt64"
    )]
    StepTooLarge {
        /// The requested amount.
        request: Quantity,
    },
    /// The range has steps in thousandths, but the request is not a multiple of 0.001, or is too large to be counted in
    /// thousandths as a 64-bit integer.
    #[error(
        "capacity request cannot be represented in the device's range arithmetic: request {request} is not a representable \
         milli value"
    )]
    RequestNotMilli {
        /// The requested amount.
        request: Quantity,
    },
    /// The request rounded up to the next step is too large to be counted in thousandths as a 64-bit integer.
    #[error(
        "capacity request cannot be represented in the device's range arithmetic: rounding request {request} up to the \
         next step passes the milli-value range"
    )]
    StepNotMilli {
        /// The requested amount.
        request: Quantity,
    },
    /// The consumed amount is negative.
    #[error("capacity value is negative")]
    Negative,
    /// A field is not a valid quantity.
    #[error("{field}: {source}")]
    Quantity {
        /// Path of the field.
        field: String,
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
}

/// An amount of capacity, with its original text unless the amount was computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount<'a> {
    pub(crate) quantity: Quantity,
    text: Option<&'a KubeQuantity>,
}

impl<'a> Amount<'a> {
    pub(crate) fn read(text: &'a KubeQuantity) -> Result<Self, QuantityError> {
        Ok(Self { quantity: Quantity::from_kube(text)?, text: Some(text) })
    }

    const fn computed(quantity: Quantity) -> Self {
        Self { quantity, text: None }
    }

    /// Returns the amount as an API value: its original text, or the canonical form of a computed amount.
    pub(crate) fn to_kube(self) -> KubeQuantity {
        self.text.cloned().unwrap_or_else(|| self.quantity.to_kube())
    }
}

/// Quantities of one capacity of a device and of its request policy, read from their texts.
#[derive(Clone, Debug)]
pub(crate) struct CapacityAmounts {
    value: Quantity,
    default: Option<Quantity>,
    valid: Valid,
}

/// Amounts that a request policy permits.
#[derive(Clone, Debug)]
enum Valid {
    Anything,
    Range {
        min: Option<Quantity>,
        max: Option<Quantity>,
        /// Steps from the least amount on, in whole units and, if all numbers are multiples of 0.001, in thousandths.
        steps: Option<(Steps, Option<Steps>)>,
    },
    Values(Box<[Quantity]>),
}

/// One capacity of a device: its name, its texts, and the quantities read from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity<'a> {
    pub(crate) name: &'a str,
    object: &'a DeviceCapacity,
    read: &'a CapacityAmounts,
}

/// Returns true if a capacity has no request policy and a simple value that is surely valid: 1 to 15 digits with at
/// most one of the suffixes Ki, Mi, Gi and Ti.
pub(crate) fn is_plain(capacity: &DeviceCapacity) -> bool {
    let text = capacity.value.0.as_str();
    let number = ["Ki", "Mi", "Gi", "Ti"].into_iter().find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(text);
    let is_number = (1..=15).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit());
    capacity.request_policy.is_none() && is_number
}

/// A field of a capacity that is not a quantity.
#[derive(Clone, Debug)]
pub(crate) struct InvalidCapacity {
    pub(crate) field: &'static str,
    pub(crate) error: QuantityError,
}

impl CapacityAmounts {
    /// Reads a capacity.
    ///
    /// # Errors
    /// The first field that is not a quantity.
    pub(crate) fn new(capacity: &DeviceCapacity) -> Result<Self, InvalidCapacity> {
        let value = parsed("value", &capacity.value)?;
        let policy = capacity.request_policy.as_ref();
        let default = policy.and_then(|policy| policy.default.as_ref());
        let default = default.map(|default| parsed("requestPolicy.default", default)).transpose()?;
        let valid = policy.map_or(Ok(Valid::Anything), Valid::read)?;
        Ok(Self { value, default, valid })
    }
}

impl<'a> Capacity<'a> {
    pub(crate) const fn new(name: &'a str, object: &'a DeviceCapacity, read: &'a CapacityAmounts) -> Self {
        Self { name, object, read }
    }

    /// Returns the amount that the device has.
    pub(crate) const fn value(self) -> Quantity {
        self.read.value
    }

    /// Returns the amount of this capacity that a request consumes, after the request policy.
    pub(crate) fn consumed(self, request: Option<Amount<'a>>, rounding: Rounding) -> Result<Amount<'a>, CapacityError> {
        let amount = match request {
            None => self.unasked(),
            Some(request) => self.round(request, rounding)?,
        };
        if amount.quantity < Quantity::ZERO { Err(CapacityError::Negative) } else { Ok(amount) }
    }

    /// Returns the amount of a request that names none: the default, or all.
    fn unasked(self) -> Amount<'a> {
        match self.read.default {
            Some(quantity) => Amount { quantity, text: self.policy().and_then(|policy| policy.default.as_ref()) },
            None => Amount { quantity: self.read.value, text: Some(&self.object.value) },
        }
    }

    fn policy(self) -> Option<&'a CapacityRequestPolicy> {
        self.object.request_policy.as_ref()
    }

    fn round(self, request: Amount<'a>, rounding: Rounding) -> Result<Amount<'a>, CapacityError> {
        match &self.read.valid {
            Valid::Range { min: Some(min), .. } if request.quantity < *min => {
                let range = self.policy().and_then(|policy| policy.valid_range.as_ref());
                Ok(Amount { quantity: *min, text: range.map(|range| &range.min) })
            }
            Valid::Range { steps: Some(steps), .. } => {
                rounding.steps(steps).round_up(request.quantity).map(Amount::computed)
            }
            Valid::Values(values) => {
                let sufficient = values.iter().enumerate().filter(|(_, value)| **value >= request.quantity);
                let least = sufficient.min_by_key(|(_, value)| **value);
                Ok(least.map_or(request, |(number, quantity)| {
                    let texts = self.policy().and_then(|policy| policy.valid_values.as_deref());
                    Amount { quantity: *quantity, text: texts.and_then(|texts| texts.get(number)) }
                }))
            }
            Valid::Anything | Valid::Range { .. } => Ok(request),
        }
    }

    /// Returns true if the request policy of the capacity allows a request to consume `amount`.
    pub(crate) fn permits(self, amount: Quantity, rounding: Rounding) -> bool {
        self.read.default == Some(amount)
            || match &self.read.valid {
                Valid::Anything => true,
                Valid::Values(values) => values.contains(&amount),
                Valid::Range { max, steps, .. } => {
                    steps.as_ref().is_none_or(|steps| rounding.steps(steps).reach(amount))
                        && max.is_none_or(|max| amount <= max)
                }
            }
    }
}

impl Rounding {
    /// Returns the steps in the unit in which they are counted.
    fn steps(self, (whole, fractional): &(Steps, Option<Steps>)) -> &Steps {
        match self {
            Self::Whole => whole,
            Self::Fractional => fractional.as_ref().unwrap_or(whole),
        }
    }
}

impl Valid {
    fn read(policy: &CapacityRequestPolicy) -> Result<Self, InvalidCapacity> {
        if let Some(CapacityRequestPolicyRange { min, max, step }) = &policy.valid_range {
            // `min` is not optional in the API type: an absent one is the empty text, and disables rounding.
            let min = (!min.0.is_empty()).then(|| parsed("requestPolicy.validRange.min", min)).transpose()?;
            let max = max.as_ref().map(|max| parsed("requestPolicy.validRange.max", max)).transpose()?;
            let step = step.as_ref().map(|step| parsed("requestPolicy.validRange.step", step)).transpose()?;
            // A step of zero or less is ignored; the API server rejects it.
            let step = step.filter(|step| *step > Quantity::ZERO);
            let steps = min.zip(step).map(|(min, step)| {
                let is_milli = |quantity: Quantity| Unit::Milli.count(quantity).is_some();
                let has_milli = [min, step, max.unwrap_or(step)].into_iter().all(is_milli);
                let fractional = has_milli.then(|| Steps::new(min, step, Unit::Milli));
                (Steps::new(min, step, Unit::Whole), fractional)
            });
            return Ok(Self::Range { min, max, steps });
        }
        match policy.valid_values.as_deref() {
            None | Some([]) => Ok(Self::Anything),
            Some(values) => {
                let values = values.iter().map(|value| parsed("requestPolicy.validValues", value));
                values.collect::<Result<_, _>>().map(Self::Values)
            }
        }
    }
}

/// Unit in which the steps of a `validRange` are counted: whole numbers, or thousandths.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Whole,
    Milli,
}

impl Unit {
    const fn nanos(self) -> i128 {
        match self {
            Self::Whole => NANOS_PER_UNIT,
            Self::Milli => NANOS_PER_MILLI,
        }
    }

    /// Returns an amount counted in this unit. Whole units are rounded up; `None` if thousandths are not exact or
    /// exceed 64 bits.
    fn count(self, amount: Quantity) -> Option<i128> {
        let units = div_ceil(amount.nanos(), self.nanos());
        match self {
            Self::Whole => Some(units),
            Self::Milli => fits(units).filter(|units| *units * NANOS_PER_MILLI == amount.nanos()),
        }
    }

    const fn bad_request(self, request: Quantity) -> CapacityError {
        match self {
            Self::Whole => CapacityError::RequestTooLarge { request },
            Self::Milli => CapacityError::RequestNotMilli { request },
        }
    }

    const fn bad_step(self, request: Quantity) -> CapacityError {
        match self {
            Self::Whole => CapacityError::StepTooLarge { request },
            Self::Milli => CapacityError::StepNotMilli { request },
        }
    }
}

/// Returns the number if it fits into 64 bits.
fn fits(number: i128) -> Option<i128> {
    i64::try_from(number).ok().map(i128::from)
}

/// Permitted amounts of a `validRange` (`min`, `min + step`, …), as integers of one common unit.
#[derive(Clone, Copy, Debug)]
struct Steps {
    min: i128,
    step: i128,
    unit: Unit,
    format: QuantityFormat,
}

impl Steps {
    fn new(min: Quantity, step: Quantity, unit: Unit) -> Self {
        let in_units = |quantity: Quantity| div_ceil(quantity.nanos(), unit.nanos());
        Self { min: in_units(min), step: in_units(step).max(1), unit, format: step.format() }
    }

    fn round_up(&self, request: Quantity) -> Result<Quantity, CapacityError> {
        let wanted = self.unit.count(request).and_then(fits).ok_or_else(|| self.unit.bad_request(request))?;
        let steps = div_ceil(wanted.saturating_sub(self.min), self.step);
        let rounded = steps.checked_mul(self.step).and_then(|above| above.checked_add(self.min)).and_then(fits);
        let nanos = rounded.and_then(|rounded| rounded.checked_mul(self.unit.nanos()));
        nanos.map(|nanos| Quantity::from_nanos(nanos, self.format)).ok_or_else(|| self.unit.bad_step(request))
    }

    fn reach(&self, amount: Quantity) -> bool {
        self.unit.count(amount).is_some_and(|amount| amount.saturating_sub(self.min) % self.step == 0)
    }
}

/// Returns `value / unit`, rounded towards positive infinity. The unit is above zero.
const fn div_ceil(value: i128, unit: i128) -> i128 {
    // Rounded towards zero, which is up for a negative value. A second division would take as long.
    let quotient = value / unit;
    if value > quotient * unit { quotient + 1 } else { quotient }
}

/// Parses a quantity of a field.
fn parsed(field: &'static str, text: &KubeQuantity) -> Result<Quantity, InvalidCapacity> {
    Quantity::from_kube(text).map_err(|error| InvalidCapacity { field, error })
}

impl Rounding {
    /// Returns the amount that a request consumes of one capacity of a device.
    ///
    /// `request` is the requested amount, or none if the request does not name the capacity.
    ///
    /// # Errors
    /// The consumed amount is negative or too large, or a field is not a quantity.
    ///
    /// ```
    /// use dra_alloc::capacity::Rounding;
    /// use dra_attrs::Quantity;
    /// use k8s_openapi::api::resource::v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity};
    /// use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
    ///
    /// let quantity = |text: &str| KubeQuantity(text.to_owned());
    /// let range = CapacityRequestPolicyRange { min: quantity("1Gi"), step: Some(quantity("1Gi")), max: None };
    /// let policy = CapacityRequestPolicy { valid_range: Some(range), ..Default::default() };
    /// let memory = DeviceCapacity { value: quantity("80Gi"), request_policy: Some(policy) };
    /// assert_eq!(Rounding::Whole.consumed(Some(&quantity("2500Mi")), &memory)?.to_string(), "3Gi");
    /// assert_eq!(Rounding::Whole.consumed(None, &memory)?.to_string(), "80Gi");
    /// # Ok::<(), dra_alloc::capacity::CapacityError>(())
    /// ```
    pub fn consumed(
        self,
        request: Option<&KubeQuantity>,
        capacity: &DeviceCapacity,
    ) -> Result<Quantity, CapacityError> {
        let invalid = |invalid: InvalidCapacity| CapacityError::Quantity {
            field: invalid.field.to_owned(),
            source: invalid.error,
        };
        let read = |text| parsed("request", text).map(|quantity| Amount { quantity, text: Some(text) });
        let request = request.map(read).transpose().map_err(invalid)?;
        let read = CapacityAmounts::new(capacity).map_err(invalid)?;
        Ok(Capacity::new("", capacity, &read).consumed(request, self)?.quantity)
    }
}

impl Rounding {
    /// Returns true if the request policy of a capacity allows a request to consume `amount`. Does not check that so much
    /// of the capacity is left.
    ///
    /// # Errors
    /// A field is not a quantity.
    pub fn permits(self, amount: &KubeQuantity, capacity: &DeviceCapacity) -> Result<bool, CapacityError> {
        let invalid = |invalid: InvalidCapacity| CapacityError::Quantity {
            field: invalid.field.to_owned(),
            source: invalid.error,
        };
        let amount = parsed("amount", amount).map_err(invalid)?;
        let read = CapacityAmounts::new(capacity).map_err(invalid)?;
        Ok(Capacity::new("", capacity, &read).permits(amount, self))
    }
}
