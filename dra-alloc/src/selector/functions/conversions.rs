//! Conversions between types.

use std::fmt::Write;

use super::{Function, function, made, time};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::{Answer, Value};

const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

pub(super) const FUNCTIONS: &[Function] = &[
    function("bool", bool),
    function("bytes", bytes),
    function("double", double),
    function("duration", duration),
    function("dyn", |_, arguments| arguments.first().cloned().ok_or_else(Fault::no_overload)),
    function("int", int),
    function("string", string),
    function("timestamp", timestamp),
    function("type", |_, arguments| Ok(Value::Type(arguments.first().map_or("", Value::type_name)))),
    function("uint", uint),
];

/// Names of the functions that convert, which a constant needs only once.
pub(in crate::selector) const NAMES: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

fn unreadable<'v>(from: &str, to: &str) -> Answer<'v> {
    Err(Fault::text(format!("type conversion error from '{from}' to '{to}'")))
}

fn bool<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => unreadable("string", "bool"),
        },
        _ => Err(Fault::no_overload()),
    }
}

fn bytes<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => {
            meter.make(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        _ => Err(Fault::no_overload()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the conversion rounds")]
fn double<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Double(number)] => Ok(Value::Double(*number)),
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [Value::String(text)] => {
            read_double(text).map_or_else(|| unreadable("string", "double"), |number| Ok(Value::Double(number)))
        }
        _ => Err(Fault::no_overload()),
    }
}

/// Reads a double as Go does: with underscores between digits only in hexadecimal, and without overflow.
fn read_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        "nan" if unsigned.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let magnitude = if let Some(digits) = lower.strip_prefix("0x") {
        read_hexadecimal(digits)?
    } else {
        let is_plain = lower.bytes().all(|byte| byte.is_ascii_digit() || b".e+-".contains(&byte));
        lower.parse::<f64>().ok().filter(|_| is_plain)?
    };
    let signed = magnitude.copysign(if text.starts_with('-') { -1.0 } else { 1.0 });
    signed.is_finite().then_some(signed)
}

/// Reads `1.8p3` after `0x`. An exponent has to come.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the language has doubles")]
fn read_hexadecimal(digits: &str) -> Option<f64> {
    let digits = digits.replace('_', "");
    let (mantissa, exponent) = digits.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let joined = [whole, fraction].concat();
    let number = u64::from_str_radix(&joined, 16).ok()?;
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(shift)?;
    Some(number as f64 * 2.0_f64.powi(exponent))
}

fn duration<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Duration(nanos)] => Ok(Value::Duration(*nanos)),
        [Value::Int(_)] => unreadable("int", "google.protobuf.Duration"),
        [Value::String(text)] => match time::parse_duration(text) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => unreadable("string", "google.protobuf.Duration"),
        },
        _ => Err(Fault::no_overload()),
    }
}

fn timestamp<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Timestamp(time)] => Ok(Value::Timestamp(*time)),
        [Value::Int(seconds)] => time::at(*seconds).map(Value::Timestamp),
        [Value::String(text)] => match time::parse_timestamp(text) {
            Some(time) => time::bounded(time).map(Value::Timestamp),
            None => unreadable("string", "google.protobuf.Timestamp"),
        },
        _ => Err(Fault::no_overload()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the value is in range")]
fn int<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Int(number) | Value::Duration(number)] => Ok(Value::Int(*number)),
        [Value::Double(number)] => {
            let fits = *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_808.0;
            if fits { Ok(Value::Int(*number as i64)) } else { Err(OVERFLOW.into()) }
        }
        [Value::Uint(number)] => Ok(Value::Int(i64::try_from(*number).map_err(|_| OVERFLOW)?)),
        [Value::Timestamp(time)] => Ok(Value::Int(time.seconds)),
        [Value::String(text)] => {
            text.parse().map_or_else(|_| unreadable("string", "int"), |number| Ok(Value::Int(number)))
        }
        _ => Err(Fault::no_overload()),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is in range")]
fn uint<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Uint(number)] => Ok(Value::Uint(*number)),
        [Value::Double(number)] => {
            let fits = *number >= 0.0 && *number < 18_446_744_073_709_551_616.0;
            if fits { Ok(Value::Uint(*number as u64)) } else { Err(UNSIGNED_OVERFLOW.into()) }
        }
        [Value::Int(number)] => Ok(Value::Uint(u64::try_from(*number).map_err(|_| UNSIGNED_OVERFLOW)?)),
        [Value::String(text)] => {
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            number.map_or_else(|| unreadable("string", "uint"), |number| Ok(Value::Uint(number)))
        }
        _ => Err(Fault::no_overload()),
    }
}

fn string<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [value] = arguments else { return Err(Fault::no_overload()) };
    let text = match value {
        Value::String(text) => return Ok(Value::String(text.clone())),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => shown(*number),
        Value::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes);
            text.map_err(|_| "invalid UTF-8 in bytes, cannot convert to string")?.to_owned()
        }
        Value::Duration(nanos) => time::shown_duration(*nanos),
        Value::Timestamp(time) => time::shown_timestamp(*time),
        Value::Ip(address) => super::ip::shown(*address),
        Value::Cidr(address, length) => format!("{}/{length}", super::ip::shown(*address)),
        _ => return Err(Fault::no_overload()),
    };
    made(meter, text)
}

/// Shows a double in as few digits as it needs, with an exponent below 0.0001 and from 1,000,000 on.
pub(in crate::selector) fn shown(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&power) {
        return number.to_string();
    }
    let mut text = mantissa.to_owned();
    let sign = if power < 0 { '-' } else { '+' };
    // Writing to a string does not fail.
    let _ = write!(text, "e{sign}{:02}", power.abs());
    text
}
