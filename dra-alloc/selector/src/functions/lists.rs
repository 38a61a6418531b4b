//! Lists.

use std::cmp::Ordering;

use super::arithmetic::add;
use super::counted::{count, list};
use super::function::{Misuse, functions};
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::equality::is_equal;
use crate::value::order::{compare, has_order};
use crate::value::{Answer, List, Value};

functions! { meter;
    "isSorted" {
        "list(T).() -> bool" Aggregate: [Value::List(list)] if is_ordered(list) => {
            meter.work(list.weight())?;
            let pairs = || list.items().iter().zip(list.items().iter().skip(1));
            Ok(Value::Bool(!pairs().any(|(one, other)| compare(one, other).is_ok_and(Ordering::is_gt))))
        };
    }
    "min" {
        "list(T).() -> T" Aggregate:
            [Value::List(list)] if is_ordered(list) => extreme(meter, list, "min", Ordering::Less);
    }
    "max" {
        "list(T).() -> T" Aggregate:
            [Value::List(list)] if is_ordered(list) => extreme(meter, list, "max", Ordering::Greater);
    }
    "sum" {
        "list(int).() -> int; list(uint).() -> uint" Aggregate: [Value::List(list)] => sum(meter, list);
        "list(double).() -> double; list(duration).() -> duration" Aggregate;
    }
    "reverse" {
        "list(A).() -> list(A)" Reverse:
            [Value::List(items)] => list(meter, items.items().iter().rev().cloned().collect());
    }
    "slice" {
        "list(A).(int, int) -> list(A)" Slice:
            [Value::List(items), Value::Int(start), Value::Int(end)] => slice(meter, items, *start, *end);
    }
    "flatten"(Misuse::Method) {
        "list(list(A)).() -> list(A)" Flatten: [Value::List(items)] => flatten(meter, items, 1);
        "list(dyn).(int) -> list(dyn)" Flatten: [Value::List(items), Value::Int(depth)] => flatten(meter, items, *depth);
        "" One: [Value::List(_), _] => Err(Fault::internal("interface conversion: not types.Int"));
    }
    "lists.range" {
        "(int) -> list(int)" Range: [Value::Int(end)] => {
            count(meter, usize::try_from(*end).unwrap_or_default())?;
            List::new((0..*end).map(Value::Int).collect()).map(Value::List)
        };
    }
    "distinct" { "list(A).() -> list(A)" Distinct: [Value::List(items)] => distinct(meter, items); }
}

/// Returns true if the type of a list's elements, as far as the first says, has an order.
fn is_ordered(list: &List<'_>) -> bool {
    list.items().first().is_none_or(has_order)
}

fn extreme<'v>(meter: &mut Meter<'_>, list: &List<'v>, name: &str, wanted: Ordering) -> Answer<'v> {
    meter.work(list.weight())?;
    let mut items = list.items().iter();
    let mut best = items.next().ok_or_else(|| Fault::text(format!("{name} called on empty list")))?;
    for item in items {
        // What can't be compared is passed over.
        if compare(item, best).is_ok_and(|order| order == wanted) {
            best = item;
        }
    }
    Ok(best.clone())
}

fn sum<'v>(meter: &mut Meter<'_>, list: &List<'v>) -> Answer<'v> {
    let mut total = match list.items().first() {
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        Some(_) => return Err(Fault::no_overload()),
    };
    for item in list.items() {
        meter.work(1)?;
        total = add(meter, &total, item)?;
    }
    Ok(total)
}

fn slice<'v>(meter: &mut Meter<'_>, items: &List<'v>, start: i64, end: i64) -> Answer<'v> {
    let problem = |text: &str| Fault::text(format!("cannot slice({start}, {end}), {text}"));
    if start < 0 || end < 0 {
        return Err(problem("negative indexes not supported"));
    }
    if start > end {
        return Err(problem("start index must be less than or equal to end index"));
    }
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| items.items().get(start..end));
    let part = part.ok_or_else(|| problem(&format!("list is length {}", items.len())))?;
    list(meter, part.to_vec())
}

fn flatten<'v>(meter: &mut Meter<'_>, items: &List<'v>, depth: i64) -> Answer<'v> {
    if depth < 0 {
        return Err("level must be non-negative".into());
    }
    let mut flat = Vec::new();
    append_flat(meter, items, depth, &mut flat)?;
    List::new(flat).map(Value::List)
}

/// Appends elements, and instead of lists theirs. Lists nest to a limited depth.
fn append_flat<'v>(
    meter: &mut Meter<'_>,
    items: &List<'v>,
    depth: i64,
    flat: &mut Vec<Value<'v>>,
) -> Result<(), Box<Fault>> {
    // A list that grows takes up to twice its memory.
    count(meter, 2 * items.len())?;
    for item in items.items() {
        match item {
            Value::List(inner) if depth > 0 => append_flat(meter, inner, depth - 1, flat)?,
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}

fn distinct<'v>(meter: &mut Meter<'_>, items: &List<'v>) -> Answer<'v> {
    let mut kept: Vec<Value<'v>> = Vec::new();
    'items: for item in items.items() {
        for other in &kept {
            if is_equal(other, item, meter)? {
                continue 'items;
            }
        }
        kept.push(item.clone());
    }
    list(meter, kept)
}
