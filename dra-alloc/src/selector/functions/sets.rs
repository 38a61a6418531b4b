//! Lists as sets.

use super::{Function, function};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::equality::is_equal;
use crate::selector::value::{Answer, List, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    function("sets.contains", |meter, arguments| match arguments {
        [Value::List(list), Value::List(items)] => covers(list, items, meter).map(Value::Bool),
        _ => Err(Fault::no_overload()),
    }),
    function("sets.equivalent", |meter, arguments| match arguments {
        [Value::List(one), Value::List(other)] => {
            Ok(Value::Bool(covers(one, other, meter)? && covers(other, one, meter)?))
        }
        _ => Err(Fault::no_overload()),
    }),
    function("sets.intersects", intersects),
];

fn has<'v>(list: &List<'v>, item: &Value<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    for element in list.items() {
        if is_equal(item, element, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn covers<'v>(list: &List<'v>, items: &List<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    for item in items.items() {
        if !has(list, item, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(one), Value::List(other)] = arguments else { return Err(Fault::no_overload()) };
    for item in one.items() {
        if has(other, item, meter)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
