//! Actual price of a call, from its arguments and its result.

use super::own::LIST;
use super::range::{PAIR, PATTERN, TEXT_PAIR, WALK, priced};
use crate::fault::Fault;
use crate::functions::cost::Cost;
use crate::meter::Meter;
use crate::value::Value;

/// Price of a list that a function makes, with that of the call.
const MADE: u64 = LIST + 1;

/// Returns the price of a call by its arguments and its result. What has no value has the size 1. The error is that of
/// too much work.
pub(crate) fn actual<'a, 'v: 'a>(
    cost: Cost,
    argument: impl Fn(usize) -> Option<&'a Value<'v>>,
    result: Option<&Value<'v>>,
    meter: &mut Meter<'_>,
) -> Result<u64, Box<Fault>> {
    let n = |index: usize| argument(index).map_or(1, held_size);
    let own = |index: usize| argument(index).map_or(1, size);
    let walk = |index: usize| priced(n(index), WALK);
    Ok(match cost {
        Cost::One | Cost::Index | Cost::AddList | Cost::Includes | Cost::Check | Cost::Selector => 1,
        Cost::Fallback | Cost::Control => 0,
        Cost::AddText => priced(n(0).saturating_add(n(1)), WALK),
        Cost::Compare | Cost::NotEqual => priced(n(0).min(n(1)), WALK),
        Cost::Equal if argument(0).is_some_and(Value::is_opaque) => 1,
        Cost::Equal => priced(n(0).min(n(1)), WALK),
        Cost::InList => n(1),
        Cost::BytesOfString | Cost::StringOfBytes | Cost::Quote | Cost::Format | Cost::Affix => walk(0),
        Cost::Copy | Cost::Parse => priced(own(0), WALK),
        Cost::Contains => walk(0).saturating_mul(walk(1)),
        Cost::Matches => search(n(0), n(1)),
        Cost::Find => search(own(0), own(1)),
        Cost::IndexOf | Cost::Aggregate => argument(0).map_or(Ok(1), |value| traversal(value, meter))?,
        Cost::Replace | Cost::Split | Cost::Canonical => twice(own(0)),
        Cost::Join => twice(result.map_or(1, size)),
        Cost::Sort | Cost::Distinct => sorted(own(0), argument(0)),
        Cost::SortBy => sorted(own(0), argument(1)),
        Cost::Reverse | Cost::Slice | Cost::Range => result.map_or(1, size).saturating_add(MADE),
        Cost::Flatten => {
            let depth = match argument(1) {
                Some(Value::Int(depth)) => u64::try_from(*depth).unwrap_or_default(),
                _ => 1,
            };
            own(0).saturating_mul(depth).saturating_add(MADE)
        }
        Cost::SetPair => own(0).saturating_mul(own(1)).saturating_add(1),
        Cost::SetEquivalent => own(0).saturating_mul(own(1)).saturating_mul(2).saturating_add(1),
        Cost::ContainsIp => twice(own(0)),
        Cost::ContainsIpText => twice(own(0)).saturating_add(text(argument(1))),
        Cost::ContainsCidr => contains_cidr(own(0)),
        Cost::ContainsCidrText => contains_cidr(own(0)).saturating_add(text(argument(1))),
        Cost::Validate => {
            let length = match argument(0) {
                Some(Value::Format(format)) => format.pattern_length,
                _ => 0,
            };
            search(own(1), count(length))
        }
    })
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Returns the size of a value.
fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => count(text.chars().count()),
        Value::Bytes(bytes) => count(bytes.len()),
        Value::List(list) => count(list.len()),
        Value::Map(map) => count(map.len()),
        Value::Ip(address) if address.is_ipv4() => 4,
        Value::Ip(_) => 16,
        Value::Cidr(network) => u64::from(network.length.div_ceil(8)),
        _ => 1,
    }
}

/// Returns the size of a value, or of that in an optional.
fn held_size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(held)) => held_size(&held.value),
        other => size(other),
    }
}

/// Price of looking at all parts of a value. Parts that are shared are looked at again: that is counted as work.
fn traversal(value: &Value<'_>, meter: &mut Meter<'_>) -> Result<u64, Box<Fault>> {
    meter.work(1)?;
    Ok(match value {
        Value::String(text) => count(text.len() / 10),
        Value::Bytes(bytes) => count(bytes.len() / 10),
        Value::List(list) => {
            let mut sum: u64 = 0;
            for item in list.items() {
                sum = sum.saturating_add(traversal(item, meter)?);
            }
            sum
        }
        Value::Map(map) => {
            let mut sum: u64 = 0;
            for key in map.keys() {
                let value = map.value(&key).as_ref().map_or(Ok(1), |value| traversal(value, meter))?;
                sum = sum.saturating_add(traversal(&key, meter)?).saturating_add(value);
            }
            sum
        }
        _ => 1,
    })
}

fn search(text: u64, pattern: u64) -> u64 {
    priced(text.saturating_add(1), WALK).saturating_mul(priced(pattern, PATTERN))
}

/// Price of two walks.
fn twice(size: u64) -> u64 {
    priced(size.saturating_mul(2), WALK)
}

fn contains_cidr(network: u64) -> u64 {
    twice(network).saturating_add(priced(network, WALK)).saturating_add(1)
}

/// Price of reading an argument that is no address yet.
fn text(argument: Option<&Value<'_>>) -> u64 {
    match argument {
        Some(Value::Ip(_) | Value::Cidr(..)) => 0,
        argument => priced(argument.map_or(1, size), WALK),
    }
}

fn sorted(size: u64, keys: Option<&Value<'_>>) -> u64 {
    let first = match keys {
        Some(Value::List(list)) => list.items().first(),
        _ => None,
    };
    let is_text = matches!(first, Some(Value::String(_) | Value::Bytes(_)));
    squared(size, if is_text { TEXT_PAIR } else { PAIR })
}

/// Price of comparing each with each.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "prices are floating-point numbers")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float ends at the limits")]
fn squared(size: u64, factor: f64) -> u64 {
    ((size as f64 * size as f64 * factor) as u64).saturating_add(MADE)
}
