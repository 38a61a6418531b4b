//! Lists.

use std::cmp::Ordering;

use super::{Function, Misuse, function, list};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::equality::is_equal;
use crate::selector::value::order::compare;
use crate::selector::value::{Answer, List, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    function("isSorted", is_sorted),
    function("min", |meter, arguments| extreme(meter, arguments, "min", Ordering::Less)),
    function("max", |meter, arguments| extreme(meter, arguments, "max", Ordering::Greater)),
    function("sum", sum),
    function("reverse", |meter, arguments| match arguments {
        [Value::List(items)] => list(meter, items.items().iter().rev().cloned().collect()),
        _ => Err(Fault::no_overload()),
    }),
    function("slice", slice),
    Function { name: "flatten", run: flatten, misuse: Misuse::Method },
    function("lists.range", range),
    function("distinct", distinct),
];

/// Returns the type of a list's elements, as far as it says whether they have an order.
fn has_order(list: &List<'_>) -> bool {
    let ordered = |value: &Value<'_>| {
        matches!(
            value,
            Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::Bool(_)
                | Value::Duration(_)
                | Value::Timestamp(_)
                | Value::String(_)
                | Value::Bytes(_)
        )
    };
    list.items().first().is_none_or(ordered)
}

/// Returns the work of reading all elements once.
fn weight(list: &List<'_>) -> usize {
    list.items().iter().map(Value::weight).fold(0, usize::saturating_add)
}

fn is_sorted<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(list)] = arguments else { return Err(Fault::no_overload()) };
    if !has_order(list) {
        return Err(Fault::no_overload());
    }
    meter.work(weight(list))?;
    for pair in list.items().windows(2) {
        let [one, other] = pair else { continue };
        if compare(one, other).is_ok_and(Ordering::is_gt) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn extreme<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>], name: &str, wanted: Ordering) -> Answer<'v> {
    let [Value::List(list)] = arguments else { return Err(Fault::no_overload()) };
    if !has_order(list) {
        return Err(Fault::no_overload());
    }
    meter.work(weight(list))?;
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

fn sum<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(list)] = arguments else { return Err(Fault::no_overload()) };
    let mut total = match list.items().first() {
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        Some(_) => return Err(Fault::no_overload()),
    };
    let add = super::lookup("_+_").ok_or_else(Fault::no_overload)?;
    for item in list.items() {
        meter.work(1)?;
        total = (add.run)(meter, &[total, item.clone()])?;
    }
    Ok(total)
}

fn slice<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(items), Value::Int(start), Value::Int(end)] = arguments else { return Err(Fault::no_overload()) };
    let problem = |text: &str| Fault::text(format!("cannot slice({start}, {end}), {text}"));
    if *start < 0 || *end < 0 {
        return Err(problem("negative indexes not supported"));
    }
    if start > end {
        return Err(problem("start index must be less than or equal to end index"));
    }
    let range = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
    let part = range.and_then(|(start, end)| items.items().get(start..end));
    let part = part.ok_or_else(|| problem(&format!("list is length {}", items.len())))?;
    list(meter, part.to_vec())
}

fn flatten<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let (items, depth) = match arguments {
        [Value::List(items)] => (items, 1),
        [Value::List(items), Value::Int(depth)] => (items, *depth),
        [Value::List(_), _] => return Err(Fault::internal("interface conversion: not types.Int")),
        _ => return Err(Fault::no_overload()),
    };
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
    super::count(meter, items.len())?;
    for item in items.items() {
        match item {
            Value::List(inner) if depth > 0 => append_flat(meter, inner, depth - 1, flat)?,
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}

fn range<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::Int(end)] = arguments else { return Err(Fault::no_overload()) };
    super::count(meter, usize::try_from(*end).unwrap_or_default())?;
    List::new((0..*end).map(Value::Int).collect()).map(Value::List)
}

fn distinct<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(items)] = arguments else { return Err(Fault::no_overload()) };
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
