//! Sorted lists.

use std::cmp::Ordering;

use super::{Function, Misuse, Run, list};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::order::compare;
use crate::selector::value::{Answer, List, Value};

const fn operator(name: &'static str, run: Run) -> Function {
    Function { name, run, misuse: Misuse::Operator(|_| false) }
}

pub(super) const FUNCTIONS: &[Function] = &[operator("sort", sort), operator("@sortByAssociatedKeys", sort_by_keys)];

fn sort<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(items)] = arguments else { return Err(Fault::no_overload()) };
    sorted(meter, items, items)
}

fn sort_by_keys<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::List(items), Value::List(keys)] = arguments else { return Err(Fault::no_overload()) };
    if items.len() != keys.len() {
        return Err("@sortByAssociatedKeys() expected a list of the same size as the associated keys list".into());
    }
    sorted(meter, items, keys)
}

/// Orders two keys of one type; doubles that are no numbers, which have no order, are first or last by their sign.
fn total(one: &Value<'_>, other: &Value<'_>) -> Ordering {
    match (one, other) {
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other).unwrap_or_else(|| one.total_cmp(other)),
        _ => compare(one, other).unwrap_or(Ordering::Equal),
    }
}

fn sorted<'v>(meter: &mut Meter<'_>, items: &List<'v>, keys: &List<'v>) -> Answer<'v> {
    if let Some(first) = keys.items().first() {
        if keys.items().iter().any(|key| key.type_name() != first.type_name()) {
            return Err("list elements must have the same type".into());
        }
        if compare(first, first).is_err_and(|fault| matches!(*fault, Fault::NoOverload)) {
            return Err("list elements must be comparable".into());
        }
    }
    // An element is compared about as often as the number of elements has bits.
    let all = keys.items().iter().map(Value::weight).fold(0, usize::saturating_add);
    meter.work(all.saturating_mul(usize::BITS as usize - items.len().leading_zeros() as usize))?;
    let mut pairs: Vec<(&Value<'v>, &Value<'v>)> = keys.items().iter().zip(items.items()).collect();
    pairs.sort_by(|(one, _), (other, _)| total(one, other));
    list(meter, pairs.into_iter().map(|(_, item)| item.clone()).collect())
}
