//! Optional values.

use super::counted::list;
use super::function::functions;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::{Answer, List, Value};

functions! { meter;
    "optional.of" { "(A) -> optional(A)" One: [value, ..] => value.clone().held(); }
    "optional.ofNonZeroValue" {
        "(A) -> optional(A)" One: [value] => if is_zero(value) { Ok(Value::NONE) } else { value.clone().held() };
    }
    "optional.none" { "() -> optional(A)" One: [] => Ok(Value::NONE); }
    "optional.unwrap" { "(list(optional(A))) -> list(A)" One: [Value::List(wrapped)] => unwrap(meter, wrapped); }
    "unwrapOpt" { "list(optional(A)).() -> list(A)" One: [Value::List(wrapped)] => unwrap(meter, wrapped); }
    "hasValue" { "optional(A).() -> bool" One: [Value::Optional(held)] => Ok(Value::Bool(held.is_some())); }
    "value" {
        "optional(A).() -> A" One: [Value::Optional(held)] => match held {
            Some(held) => Ok(held.value.clone()),
            None => Err("optional.none() dereference".into()),
        };
    }
    "first" { "list(A).() -> optional(A)" One: [Value::List(list)] => held(list.items().first()); }
    "last" { "list(A).() -> optional(A)" One: [Value::List(list)] => held(list.items().last()); }
}

fn held<'v>(value: Option<&Value<'v>>) -> Answer<'v> {
    value.map_or(Ok(Value::NONE), |value| value.clone().held())
}

/// Seconds from the year 1 to 1970.
const FIRST_SECOND: i64 = -62_135_596_800;

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        Value::Timestamp(time) => time.seconds == FIRST_SECOND && time.nanos == 0,
        _ => false,
    }
}

fn unwrap<'v>(meter: &mut Meter<'_>, wrapped: &List<'v>) -> Answer<'v> {
    if !matches!(wrapped.items().first(), None | Some(Value::Optional(_))) {
        return Err(Fault::no_overload());
    }
    let mut values = Vec::new();
    for item in wrapped.items() {
        match item {
            Value::Optional(Some(held)) => values.push(held.value.clone()),
            Value::Optional(None) => {}
            _ => return Err("value is not optional".into()),
        }
    }
    list(meter, values)
}
