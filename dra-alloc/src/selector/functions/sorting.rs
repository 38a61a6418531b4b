//! Sorted lists.

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

fn sorted<'v>(meter: &mut Meter<'_>, items: &List<'v>, keys: &List<'v>) -> Answer<'v> {
    if let Some(first) = keys.items().first() {
        if keys.items().iter().any(|key| key.type_name() != first.type_name()) {
            return Err("list elements must have the same type".into());
        }
        if compare(first, first).is_err_and(|fault| matches!(*fault, Fault::NoOverload)) {
            return Err("list elements must be comparable".into());
        }
    }
    // A comparison costs a few steps; sorting needs n log n of them.
    meter.work(items.len().saturating_mul(32))?;
    let mut pairs: Vec<(&Value<'v>, &Value<'v>)> = keys.items().iter().zip(items.items()).collect();
    pairs.sort_by(|(one, _), (other, _)| compare(one, other).unwrap_or(std::cmp::Ordering::Equal));
    list(meter, pairs.into_iter().map(|(_, item)| item.clone()).collect())
}
