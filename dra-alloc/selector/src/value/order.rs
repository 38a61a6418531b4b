//! Order of values, and conversions between numbers.

use std::cmp::Ordering;

use super::Value;
use crate::fault::Fault;

/// Compares two values that have an order.
pub(crate) fn compare(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Box<Fault>> {
    order(one, other).ok_or_else(Fault::no_overload)?.ok_or_else(|| Fault::text("NaN values cannot be ordered"))
}

/// Returns true for values of types that have an order.
pub(crate) const fn has_order(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
        || matches!(value, Value::Bytes(_) | Value::Timestamp(_) | Value::Duration(_))
}

/// Compares two values, numbers of all types with each other; nothing within if one is not a number, `None` for types
/// without an order.
#[expect(clippy::option_option, reason = "types without an order, or numbers without one")]
pub(super) fn order(one: &Value<'_>, other: &Value<'_>) -> Option<Option<Ordering>> {
    Some(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::String(one), Value::String(other)) => Some((**one).cmp(other)),
        (Value::Bytes(one), Value::Bytes(other)) => Some(one.cmp(other)),
        (Value::Duration(one), Value::Duration(other)) => Some(one.cmp(other)),
        (Value::Timestamp(one), Value::Timestamp(other)) => {
            Some((one.seconds, one.nanos).cmp(&(other.seconds, other.nanos)))
        }
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Uint(one), Value::Uint(other)) => Some(one.cmp(other)),
        (Value::Int(one), Value::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Uint(one), Value::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
        (Value::Double(one), Value::Int(_) | Value::Uint(_)) => with_double(other, *one).map(Ordering::reverse),
        (Value::Int(_) | Value::Uint(_), Value::Double(other)) => with_double(one, *other),
        _ => return None,
    })
}

/// Compares an integer with a double: beyond the integers by that alone, else as doubles.
#[expect(clippy::cast_precision_loss, reason = "upstream compares doubles")]
fn with_double(number: &Value<'_>, double: f64) -> Option<Ordering> {
    let (low, high, number) = match number {
        Value::Int(number) => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_807.0, *number as f64),
        Value::Uint(number) => (0.0, 18_446_744_073_709_551_615.0, *number as f64),
        _ => return None,
    };
    if double < low {
        Some(Ordering::Greater)
    } else if double > high {
        Some(Ordering::Less)
    } else {
        number.partial_cmp(&double)
    }
}

/// Returns a double without fraction as an int.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp, reason = "exact or nothing")]
pub(crate) fn to_int(number: f64) -> Option<i64> {
    let int = number as i64;
    (int as f64 == number && int < i64::MAX).then_some(int)
}

/// Returns a double without fraction as a uint.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp, reason = "exact or nothing")]
#[expect(clippy::cast_sign_loss, reason = "a negative number becomes 0 and differs")]
fn to_uint(number: f64) -> Option<u64> {
    let uint = number as u64;
    (uint as f64 == number && uint < u64::MAX).then_some(uint)
}

/// Returns the integers that are equal to a number of another type.
pub(crate) fn alike<'v>(number: &Value<'_>) -> impl Iterator<Item = Value<'v>> + use<'v> {
    let (int, uint) = match number {
        Value::Int(number) => (None, u64::try_from(*number).ok()),
        Value::Uint(number) => (i64::try_from(*number).ok(), None),
        Value::Double(number) => (to_int(*number), to_uint(*number)),
        _ => (None, None),
    };
    int.map(Value::Int).into_iter().chain(uint.map(Value::Uint))
}
