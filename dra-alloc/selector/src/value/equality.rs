//! Equality of values.

use std::cmp::Ordering;

use super::{List, Map, Origin, Value, order};
use crate::fault::Fault;
use crate::meter::Meter;

/// Returns true if two values are equal. Some types are not compared with others.
pub(crate) fn equal<'v>(one: &Value<'v>, other: &Value<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    // Values and their types are looked at: a comparison takes twice the time of other work.
    meter.work(2 * one.weight().min(other.weight()))?;
    Ok(match (one, other) {
        (Value::Null, _) | (_, Value::Null) => matches!((one, other), (Value::Null, Value::Null)),
        (Value::String(one), Value::String(other)) => **one == **other,
        (Value::Int(one), Value::Int(other)) | (Value::Duration(one), Value::Duration(other)) => one == other,
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other).is_some_and(Ordering::is_eq),
        (Value::Type(one), Value::Type(other)) => one == other,
        (Value::List(one), Value::List(other)) => lists(one, other, meter)?,
        (Value::Map(one), Value::Map(other)) => maps(one, other, meter)?,
        (Value::Optional(one), Value::Optional(other)) => match (one, other) {
            (Some(one), Some(other)) => equal(&one.value, &other.value, meter)?,
            (one, other) => one.is_none() == other.is_none(),
        },
        (Value::Quantity(one, _), Value::Quantity(other, Origin::Read)) => one.compare(other).is_eq(),
        (Value::Version(one), Value::Version(other)) => one == other,
        (Value::Ip(one), Value::Ip(other)) => one == other,
        (Value::Cidr(one), Value::Cidr(other)) => one == other,
        (Value::Url(one), Value::Url(other)) => one.to_string() == other.to_string(),
        (Value::Format(one), Value::Format(other)) => one.name == other.name,
        (one, _) if one.is_opaque() => return Err(Fault::no_overload()),
        _ => order::order(one, other).flatten().is_some_and(Ordering::is_eq),
    })
}

/// Returns true if two values are equal; what can't be compared is not.
pub(crate) fn is_equal<'v>(one: &Value<'v>, other: &Value<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    match equal(one, other, meter) {
        Err(fault) if !fault.is_fatal() => Ok(false),
        answer => answer,
    }
}

/// Returns true if a list has an item.
pub(crate) fn has<'v>(list: &[Value<'v>], item: &Value<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    for element in list {
        if is_equal(item, element, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Compares lists: elements that can't be compared count as equal, but make the comparison of a sum fail.
fn lists<'v>(one: &List<'v>, other: &List<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    if one.len() != other.len() {
        return Ok(false);
    }
    let mut failed = None;
    for (left, right) in one.items().iter().zip(other.items()) {
        match equal(left, right, meter) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(fault) if fault.is_fatal() => return Err(fault),
            Err(fault) => failed = failed.or(Some(fault)),
        }
    }
    match failed {
        Some(fault) if one.is_sum() => Err(fault),
        _ => Ok(true),
    }
}

fn maps<'v>(one: &Map<'v>, other: &Map<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    meter.work(one.work() + other.work())?;
    if one.len() != other.len() {
        return Ok(false);
    }
    meter.work(one.len())?;
    for key in one.keys() {
        meter.work(one.work_of(&key) + other.work_of(&key))?;
        let Some(right) = other.find(&key)? else { return Ok(false) };
        match equal(&one.value(&key)?, &right, meter) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(fault) if fault.is_fatal() => return Err(fault),
            Err(_) => {}
        }
    }
    Ok(true)
}
