//! `+`, `-`, `*`, `/`, `%`, the sign and `!`.
#![expect(clippy::float_arithmetic, reason = "the language has doubles")]

use super::counted::{count, made};
use super::function::{Misuse, functions};
use crate::fault::Fault;
use crate::meter::Meter;
use crate::scalar::time::{later, span};
use crate::value::{Answer, Value};

pub(super) const OVERFLOW: &str = "integer overflow";
pub(super) const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

const NUMBERS: Misuse = Misuse::Operator(is_number);
const TIMES: Misuse =
    Misuse::Operator(|value| matches!(value, Value::Timestamp(_) | Value::Duration(_)) || is_number(value));
const SUMMANDS: Misuse = Misuse::Operator(|value| {
    let is_joined = matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_));
    is_joined || matches!(value, Value::Timestamp(_) | Value::Duration(_)) || is_number(value)
});
const WHOLE: Misuse = Misuse::Operator(|value| matches!(value, Value::Int(_) | Value::Uint(_)));
const BOOLS: Misuse = Misuse::Operator(|value| matches!(value, Value::Bool(_)));
const SIGNED: Misuse = Misuse::Operator(|value| matches!(value, Value::Int(_) | Value::Double(_) | Value::Duration(_)));

functions! { meter;
    "_+_"(SUMMANDS) {
        "(bytes, bytes) -> bytes" AddText: [one, other] => add(meter, one, other);
        "(double, double) -> double; (duration, duration) -> duration" One;
        "(duration, timestamp) -> timestamp; (timestamp, duration) -> timestamp; (int, int) -> int" One;
        "(list(A), list(A)) -> list(A)" AddList;
        "(string, string) -> string" AddText;
        "(uint, uint) -> uint" One;
    }
    "_-_"(TIMES) {
        "(double, double) -> double" One: [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one - other));
        "(duration, duration) -> duration" One:
            [Value::Duration(one), Value::Duration(other)] => duration(one.checked_sub(*other));
        "(int, int) -> int" One: [Value::Int(one), Value::Int(other)] => int(one.checked_sub(*other));
        "(timestamp, duration) -> timestamp" One:
            [Value::Timestamp(time), Value::Duration(nanos)] => later(*time, -i128::from(*nanos)).map(Value::Timestamp);
        "(timestamp, timestamp) -> duration" One:
            [Value::Timestamp(one), Value::Timestamp(other)] => duration(span(*other, *one));
        "(uint, uint) -> uint" One: [Value::Uint(one), Value::Uint(other)] => uint(one.checked_sub(*other));
    }
    "_*_"(NUMBERS) {
        "(double, double) -> double" One: [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one * other));
        "(int, int) -> int" One: [Value::Int(one), Value::Int(other)] => int(one.checked_mul(*other));
        "(uint, uint) -> uint" One: [Value::Uint(one), Value::Uint(other)] => uint(one.checked_mul(*other));
    }
    "_/_"(NUMBERS) {
        "(double, double) -> double" One: [Value::Double(one), Value::Double(other)] => Ok(Value::Double(one / other));
        "" One: [Value::Int(_), Value::Int(0)] => Err("division by zero".into());
        "(int, int) -> int" One: [Value::Int(one), Value::Int(other)] => int(one.checked_div(*other));
        "" One: [Value::Uint(_), Value::Uint(0)] => Err("division by zero".into());
        "(uint, uint) -> uint" One: [Value::Uint(one), Value::Uint(other)] => uint(one.checked_div(*other));
    }
    "_%_"(WHOLE) {
        "" One: [Value::Int(_), Value::Int(0)] => Err("modulus by zero".into());
        "(int, int) -> int" One: [Value::Int(one), Value::Int(other)] => int(one.checked_rem(*other));
        "" One: [Value::Uint(_), Value::Uint(0)] => Err("modulus by zero".into());
        "(uint, uint) -> uint" One: [Value::Uint(one), Value::Uint(other)] => uint(one.checked_rem(*other));
    }
    "-_"(BOOLS) {
        "(double) -> double" One: [Value::Double(number)] => Ok(Value::Double(-number));
        "(int) -> int" One: [Value::Int(number)] => int(number.checked_neg());
        "" One: [Value::Duration(nanos)] => duration(nanos.checked_neg());
    }
    "!_"(SIGNED) { "(bool) -> bool" One: [Value::Bool(value)] => Ok(Value::Bool(!value)); }
}

/// Adds two values: numbers and times, texts, bytes and lists.
pub(super) fn add<'v>(meter: &mut Meter<'_>, one: &Value<'v>, other: &Value<'v>) -> Answer<'v> {
    match (one, other) {
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.make(one.len() + other.len())?;
            Ok(Value::Bytes([&**one, &**other].concat().into()))
        }
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one + other)),
        (Value::Duration(one), Value::Duration(other)) => duration(one.checked_add(*other)),
        (Value::Duration(nanos), Value::Timestamp(time)) | (Value::Timestamp(time), Value::Duration(nanos)) => {
            later(*time, i128::from(*nanos)).map(Value::Timestamp)
        }
        (Value::Int(one), Value::Int(other)) => int(one.checked_add(*other)),
        (Value::List(one), Value::List(other)) => {
            count(meter, one.len() + other.len())?;
            Ok(Value::List(one.clone().joined(other)))
        }
        (Value::String(one), Value::String(other)) => made(meter, [&**one, &**other].concat()),
        (Value::Uint(one), Value::Uint(other)) => uint(one.checked_add(*other)),
        _ => Err(Fault::no_overload()),
    }
}

const fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn int<'v>(number: Option<i64>) -> Answer<'v> {
    Ok(Value::Int(number.ok_or(OVERFLOW)?))
}

fn uint<'v>(number: Option<u64>) -> Answer<'v> {
    Ok(Value::Uint(number.ok_or(UNSIGNED_OVERFLOW)?))
}

fn duration<'v>(nanos: Option<i64>) -> Answer<'v> {
    Ok(Value::Duration(nanos.ok_or(OVERFLOW)?))
}
