//! `+`, `-`, `*`, `/`, `%` and the sign.
#![expect(clippy::float_arithmetic, reason = "the language has doubles")]

use super::time::{later, span};
use super::{Function, Misuse, Run, made};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::{Answer, Value};

const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

const fn operator(name: &'static str, run: Run, takes: fn(&Value<'_>) -> bool) -> Function {
    Function { name, run, misuse: Misuse::Operator(takes) }
}

pub(super) const FUNCTIONS: &[Function] = &[
    operator("_+_", add, |value| {
        matches!(value, Value::String(_) | Value::Timestamp(_) | Value::Duration(_))
            || is_number(value)
            || matches!(value, Value::Bytes(_) | Value::List(_))
    }),
    operator("_-_", subtract, |value| matches!(value, Value::Timestamp(_) | Value::Duration(_)) || is_number(value)),
    operator("_*_", multiply, is_number),
    operator("_/_", divide, is_number),
    operator("_%_", modulo, |value| matches!(value, Value::Int(_) | Value::Uint(_))),
    operator("-_", negate, |value| matches!(value, Value::Bool(_))),
    operator("!_", not, |value| matches!(value, Value::Int(_) | Value::Double(_) | Value::Duration(_))),
];

const fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn add<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    Ok(match (one, other) {
        (Value::Int(one), Value::Int(other)) => Value::Int(one.checked_add(*other).ok_or(OVERFLOW)?),
        (Value::Uint(one), Value::Uint(other)) => Value::Uint(one.checked_add(*other).ok_or(UNSIGNED_OVERFLOW)?),
        (Value::Double(one), Value::Double(other)) => Value::Double(one + other),
        (Value::String(one), Value::String(other)) => return made(meter, [&**one, &**other].concat()),
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.make(one.len() + other.len())?;
            Value::Bytes([&**one, &**other].concat().into())
        }
        (Value::List(one), Value::List(other)) => {
            super::count(meter, one.len() + other.len())?;
            Value::List(one.clone().joined(other))
        }
        (Value::Duration(one), Value::Duration(other)) => Value::Duration(one.checked_add(*other).ok_or(OVERFLOW)?),
        (Value::Timestamp(time), Value::Duration(nanos)) | (Value::Duration(nanos), Value::Timestamp(time)) => {
            Value::Timestamp(later(*time, i128::from(*nanos))?)
        }
        _ => return Err(Fault::no_overload()),
    })
}

fn subtract<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    Ok(match (one, other) {
        (Value::Int(one), Value::Int(other)) => Value::Int(one.checked_sub(*other).ok_or(OVERFLOW)?),
        (Value::Uint(one), Value::Uint(other)) => Value::Uint(one.checked_sub(*other).ok_or(UNSIGNED_OVERFLOW)?),
        (Value::Double(one), Value::Double(other)) => Value::Double(one - other),
        (Value::Duration(one), Value::Duration(other)) => Value::Duration(one.checked_sub(*other).ok_or(OVERFLOW)?),
        (Value::Timestamp(time), Value::Duration(nanos)) => Value::Timestamp(later(*time, -i128::from(*nanos))?),
        (Value::Timestamp(one), Value::Timestamp(other)) => Value::Duration(span(*other, *one).ok_or(OVERFLOW)?),
        _ => return Err(Fault::no_overload()),
    })
}

fn multiply<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    Ok(match (one, other) {
        (Value::Int(one), Value::Int(other)) => Value::Int(one.checked_mul(*other).ok_or(OVERFLOW)?),
        (Value::Uint(one), Value::Uint(other)) => Value::Uint(one.checked_mul(*other).ok_or(UNSIGNED_OVERFLOW)?),
        (Value::Double(one), Value::Double(other)) => Value::Double(one * other),
        _ => return Err(Fault::no_overload()),
    })
}

fn divide<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    Ok(match (one, other) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err("division by zero".into()),
        (Value::Int(one), Value::Int(other)) => Value::Int(one.checked_div(*other).ok_or(OVERFLOW)?),
        (Value::Uint(one), Value::Uint(other)) => Value::Uint(one.checked_div(*other).ok_or(UNSIGNED_OVERFLOW)?),
        (Value::Double(one), Value::Double(other)) => Value::Double(one / other),
        _ => return Err(Fault::no_overload()),
    })
}

fn modulo<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    Ok(match (one, other) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err("modulus by zero".into()),
        (Value::Int(one), Value::Int(other)) => Value::Int(one.checked_rem(*other).ok_or(OVERFLOW)?),
        (Value::Uint(one), Value::Uint(other)) => Value::Uint(one.checked_rem(*other).ok_or(UNSIGNED_OVERFLOW)?),
        _ => return Err(Fault::no_overload()),
    })
}

fn negate<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Int(number)] => Ok(Value::Int(number.checked_neg().ok_or(OVERFLOW)?)),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        [Value::Duration(nanos)] => Ok(Value::Duration(nanos.checked_neg().ok_or(OVERFLOW)?)),
        _ => Err(Fault::no_overload()),
    }
}

fn not<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(Fault::no_overload()),
    }
}
