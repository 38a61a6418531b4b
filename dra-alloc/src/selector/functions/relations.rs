//! Comparisons, membership and sizes.

use std::cmp::Ordering;

use super::{Function, Misuse, Run, function, int};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::equality::{equal, is_equal};
use crate::selector::value::map::Found;
use crate::selector::value::order::compare;
use crate::selector::value::{Answer, Value};

const fn order(name: &'static str, run: Run) -> Function {
    let takes = |value: &Value<'_>| {
        matches!(
            value,
            Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)
                | Value::Bytes(_)
                | Value::Timestamp(_)
                | Value::Duration(_)
        )
    };
    Function { name, run, misuse: Misuse::Operator(takes) }
}

pub(super) const FUNCTIONS: &[Function] = &[
    order("_<_", |_, arguments| ordered(arguments, Ordering::is_lt)),
    order("_<=_", |_, arguments| ordered(arguments, Ordering::is_le)),
    order("_>_", |_, arguments| ordered(arguments, Ordering::is_gt)),
    order("_>=_", |_, arguments| ordered(arguments, Ordering::is_ge)),
    Function { name: "_==_", run: equals, misuse: Misuse::Plain },
    Function { name: "_!=_", run: differs, misuse: Misuse::Plain },
    Function { name: "@in", run: contains, misuse: Misuse::Operator(|_| true) },
    Function { name: "size", run: size, misuse: Misuse::Operator(|_| false) },
    function("includes", includes),
];

fn ordered<'v>(arguments: &[Value<'v>], holds: fn(Ordering) -> bool) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    compare(one, other).map(holds).map(Value::Bool)
}

fn equals<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    equal(one, other, meter).map(Value::Bool)
}

/// Compares for `!=`, which holds also for what can't be compared.
fn differs<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [one, other] = arguments else { return Err(Fault::no_overload()) };
    is_equal(one, other, meter).map(|is_equal| Value::Bool(!is_equal))
}

fn contains<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [item, container] = arguments else { return Err(Fault::no_overload()) };
    match container {
        Value::List(list) => {
            for element in list.items() {
                if is_equal(item, element, meter)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Value::Map(map) => Ok(Value::Bool(matches!(map.find(item)?, Found::Value(_)))),
        _ => Err(Fault::no_overload()),
    }
}

fn size<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    Ok(match arguments {
        [Value::String(text)] => {
            meter.work(text.len() / 8)?;
            int(text.chars().count())
        }
        [Value::Bytes(bytes)] => int(bytes.len()),
        [Value::List(list)] => int(list.len()),
        [Value::Map(map)] => int(map.len()),
        _ => return Err(Fault::no_overload()),
    })
}

/// Most elements that `includes` looks at.
const MOST_INCLUDED: usize = 48;

fn includes<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [attribute, item] = arguments else { return Err(Fault::no_overload()) };
    let Value::List(list) = attribute else {
        return is_equal(attribute, item, meter).map(Value::Bool);
    };
    for (index, element) in list.items().iter().enumerate() {
        if index == MOST_INCLUDED {
            return Err("'includes' function cannot be applied to lists longer than 48 values".into());
        }
        if is_equal(element, item, meter)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
