//! Optional values.

use super::{Function, Misuse, Run, function, list};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::{Answer, Value};

const fn method(name: &'static str, run: Run) -> Function {
    Function { name, run, misuse: Misuse::Signature }
}

pub(super) const FUNCTIONS: &[Function] = &[
    function("optional.of", |_, arguments| arguments.first().ok_or_else(Fault::no_overload)?.clone().held()),
    function("optional.none", |_, _| Ok(Value::NONE)),
    function("optional.ofNonZeroValue", of_non_zero),
    function("optional.unwrap", unwrap),
    method("unwrapOpt", unwrap),
    method("hasValue", |_, arguments| match arguments {
        [Value::Optional(held)] => Ok(Value::Bool(held.is_some())),
        _ => Err(Fault::no_overload()),
    }),
    method("value", |_, arguments| match arguments {
        [Value::Optional(Some(held))] => Ok(held.value.clone()),
        [Value::Optional(None)] => Err("optional.none() dereference".into()),
        _ => Err(Fault::no_overload()),
    }),
    method("first", |_, arguments| match arguments {
        [Value::List(list)] => list.items().first().map_or(Ok(Value::NONE), |value| value.clone().held()),
        _ => Err(Fault::no_overload()),
    }),
    method("last", |_, arguments| match arguments {
        [Value::List(list)] => list.items().last().map_or(Ok(Value::NONE), |value| value.clone().held()),
        _ => Err(Fault::no_overload()),
    }),
];

fn of_non_zero<'v>(_: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [value] = arguments else { return Err(Fault::no_overload()) };
    if is_zero(value) { Ok(Value::NONE) } else { value.clone().held() }
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

fn unwrap<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(wrapped)] = arguments else { return Err(Fault::no_overload()) };
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
