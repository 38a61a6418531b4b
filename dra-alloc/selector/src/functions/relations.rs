//! Comparisons, membership and sizes.

use std::cmp::Ordering;

use super::counted::int;
use super::function::{Misuse, functions};
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::equality::{equal, has, is_equal};
use crate::value::order::{compare, has_order};
use crate::value::{Answer, List, Value};

/// Pairs of types that have an order: bools and numbers, texts, times.
const NUMBERS: &str = "(bool, bool) -> bool; (int, int) -> bool; (int, double) -> bool; (int, uint) -> bool; \
                       (uint, uint) -> bool; (uint, double) -> bool; (uint, int) -> bool; (double, double) -> bool; \
                       (double, int) -> bool; (double, uint) -> bool";
const TEXTS: &str = "(string, string) -> bool; (bytes, bytes) -> bool";
const TIMES: &str = "(timestamp, timestamp) -> bool; (duration, duration) -> bool";

/// Most elements that `includes` looks at.
const MOST_INCLUDED: usize = 48;

functions! { meter;
    "_<_"(Misuse::Operator(has_order)) {
        NUMBERS One: [one, other] => ordered(one, other, Ordering::is_lt);
        TEXTS Compare; TIMES One;
    }
    "_<=_"(Misuse::Operator(has_order)) {
        NUMBERS One: [one, other] => ordered(one, other, Ordering::is_le);
        TEXTS Compare; TIMES One;
    }
    "_>_"(Misuse::Operator(has_order)) {
        NUMBERS One: [one, other] => ordered(one, other, Ordering::is_gt);
        TEXTS Compare; TIMES One;
    }
    "_>=_"(Misuse::Operator(has_order)) {
        NUMBERS One: [one, other] => ordered(one, other, Ordering::is_ge);
        TEXTS Compare; TIMES One;
    }
    "_==_"(Misuse::Plain) {
        "(A, A) -> bool" Equal: [one, other] => equal(one, other, meter).map(Value::Bool);
    }
    // What can't be compared differs.
    "_!=_"(Misuse::Plain) {
        "(A, A) -> bool" NotEqual: [one, other] => is_equal(one, other, meter).map(|is_equal| Value::Bool(!is_equal));
    }
    "@in"(Misuse::Operator(|_| true)) {
        "(A, list(A)) -> bool" InList: [item, Value::List(list)] => has(list.items(), item, meter).map(Value::Bool);
        "(A, map(A, B)) -> bool" One: [item, Value::Map(map)] => {
            meter.work(map.work_of(item))?;
            Ok(Value::Bool(map.find(item)?.is_some()))
        };
    }
    "size"(Misuse::Operator(|_| false)) {
        "(bytes) -> int; bytes.() -> int" One: [Value::Bytes(bytes)] => Ok(int(bytes.len()));
        "(list(A)) -> int; list(A).() -> int" One: [Value::List(list)] => Ok(int(list.len()));
        "(map(A, B)) -> int; map(A, B).() -> int" One: [Value::Map(map)] => Ok(int(map.len()));
        "(string) -> int; string.() -> int" One: [Value::String(text)] => {
            meter.work(text.len() / 8)?;
            Ok(int(text.chars().count()))
        };
    }
    "includes" {
        "" One: [Value::List(list), item] => includes(list, item, meter).map(Value::Bool);
        "dyn.(dyn) -> bool" Includes: [attribute, item] => is_equal(attribute, item, meter).map(Value::Bool);
    }
}

fn ordered<'v>(one: &Value<'_>, other: &Value<'_>, holds: fn(Ordering) -> bool) -> Answer<'v> {
    compare(one, other).map(holds).map(Value::Bool)
}

fn includes<'v>(list: &List<'v>, item: &Value<'v>, meter: &mut Meter<'_>) -> Result<bool, Box<Fault>> {
    for (index, element) in list.items().iter().enumerate() {
        if index == MOST_INCLUDED {
            return Err("'includes' function cannot be applied to lists longer than 48 values".into());
        }
        if is_equal(element, item, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}
