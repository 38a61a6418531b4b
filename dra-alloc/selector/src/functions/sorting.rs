//! Sorted lists.

use std::cmp::Ordering;

use super::counted::list;
use super::function::{Misuse, functions};
use crate::meter::Meter;
use crate::value::order::{compare, has_order};
use crate::value::{Answer, List, Value};

const ANY: Misuse = Misuse::Operator(|_| false);

functions! { meter;
    "sort"(ANY) { "list(T).() -> list(T)" Sort: [Value::List(items)] => sorted(meter, items, items); }
    "@sortByAssociatedKeys"(ANY) {
        "list(A).(list(T)) -> list(A)" SortBy: [Value::List(items), Value::List(keys)] => {
            if items.len() == keys.len() { sorted(meter, items, keys) } else { Err(OTHER_SIZE.into()) }
        };
    }
}

const OTHER_SIZE: &str = "@sortByAssociatedKeys() expected a list of the same size as the associated keys list";

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
        if !has_order(first) {
            return Err("list elements must be comparable".into());
        }
    }
    // An element is compared about as often as the number of elements has bits.
    meter.work(keys.weight().saturating_mul(usize::BITS as usize - items.len().leading_zeros() as usize))?;
    let mut pairs: Vec<(&Value<'v>, &Value<'v>)> = keys.items().iter().zip(items.items()).collect();
    pairs.sort_by(|(one, _), (other, _)| total(one, other));
    list(meter, pairs.into_iter().map(|(_, item)| item.clone()).collect())
}
