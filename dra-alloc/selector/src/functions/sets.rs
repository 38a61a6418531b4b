//! Lists as sets.

use super::function::functions;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::equality::has;
use crate::value::{List, Value};

functions! { meter;
    "sets.contains" {
        "(list(A), list(A)) -> bool" SetPair:
            [Value::List(list), Value::List(items)] => covers(list, items, meter).map(Value::Bool);
    }
    "sets.intersects" {
        "(list(A), list(A)) -> bool" SetPair: [Value::List(one), Value::List(other)] => {
            for item in one.items() {
                if has(other.items(), item, meter)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        };
    }
    "sets.equivalent" {
        "(list(A), list(A)) -> bool" SetEquivalent: [Value::List(one), Value::List(other)] =>
            Ok(Value::Bool(covers(one, other, meter)? && covers(other, one, meter)?));
    }
}

fn covers<'v>(list: &List<'v>, items: &List<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    for item in items.items() {
        if !has(list.items(), item, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}
