//! CEL's and Kubernetes' list libraries.

use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelInt, CelList, CelOptional};
use cel::common::value::{CowVal, Val};

use super::Parameter::{Any, Int, List};
use super::{Function, count, elements, failed, fuel, global, int, member, mismatch, units};
use crate::selector::types::{Plain, Ty};

const LIST: Ty = Ty::ListOf(Plain::Unknown);
const OPTIONAL: Ty = Ty::OptionalOf(Plain::Unknown);

/// Name of the function behind the macro `sortBy`: sorts a list by precomputed keys.
pub(in crate::selector) const SORT_BY_KEYS: &str = "@sortByKeys";

pub(super) const FUNCTIONS: &[Function] = &[
    member("isSorted", &[List], Ty::BOOL, |args| is_sorted(&args).map(CowVal::owned)),
    member("sum", &[List], Ty::UNKNOWN, |args| sum(&args).map(CowVal::Owned)),
    member("min", &[List], Ty::UNKNOWN, |args| extreme(&args, "min", Ordering::Less).map(CowVal::Owned)),
    member("max", &[List], Ty::UNKNOWN, |args| extreme(&args, "max", Ordering::Greater).map(CowVal::Owned)),
    member("indexOf", &[List, Any], Ty::INT, |args| position(&args, false).map(CowVal::owned)),
    member("lastIndexOf", &[List, Any], Ty::INT, |args| position(&args, true).map(CowVal::owned)),
    member("slice", &[List, Int, Int], LIST, |args| slice(&args).map(CowVal::owned)),
    member("flatten", &[List], LIST, |args| flatten(&args).map(CowVal::owned)),
    member("flatten", &[List, Int], LIST, |args| flatten(&args).map(CowVal::owned)),
    member("distinct", &[List], LIST, |args| distinct(&args).map(CowVal::owned)),
    member("reverse", &[List], LIST, |args| reverse(&args).map(CowVal::owned)),
    member("sort", &[List], LIST, |args| sort(&args).map(CowVal::owned)),
    member(SORT_BY_KEYS, &[List, List], LIST, |args| sort_by_keys(&args).map(CowVal::owned)),
    member("first", &[List], OPTIONAL, |args| first(&args).map(CowVal::owned)),
    member("last", &[List], OPTIONAL, |args| last(&args).map(CowVal::owned)),
    member("unwrapOpt", &[List], LIST, |args| unwrapped(&args).map(CowVal::owned)),
    global("optional.unwrap", &[List], LIST, |args| unwrapped(&args).map(CowVal::owned)),
    global("lists.range", &[Int], Ty::ListOf(Plain::Int), |args| range(&args).map(CowVal::owned)),
];

/// Charges the budget of the evaluation for one traversal of the list on which the function was called, and returns its
/// elements.
fn values<'a, 'v>(args: &'a [CowVal<'_, 'v>]) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let [target, .., budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend_value(target.as_ref())?;
    elements(target)
}

/// Charges the budget of the evaluation for `times` traversals of the list on which the function was called.
fn pay(args: &[CowVal<'_, '_>], times: usize) -> Result<(), ExecutionError> {
    let [target, .., budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(units(elements(target)?.len()).saturating_mul(units(times)))
}

fn list<'v>(values: impl Iterator<Item = Box<dyn Val + 'v>>) -> CelList<'v> {
    CelList::from(values.collect::<Vec<_>>())
}

fn compare(left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    if left.get_type() != right.get_type() {
        return Err(failed("list elements must have the same type"));
    }
    left.as_comparer().ok_or_else(|| failed("list elements must be comparable"))?.compare(right)
}

/// Names of the numeric types, whose values can be added.
const NUMBERS: [&str; 3] = ["int", "uint", "double"];
/// Names of the types whose values have an order.
const ORDERED: [&str; 6] = ["int", "uint", "double", "bool", "string", "bytes"];

/// Returns the elements of the list on which the function was called; an error if the first one has none of the
/// `types`.
fn values_of<'a, 'v>(args: &'a [CowVal<'_, 'v>], types: &[&str]) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let values = values(args)?;
    let fits = values.first().is_none_or(|first| types.contains(&first.get_type().name()));
    if fits { Ok(values) } else { Err(mismatch()) }
}

/// Returns the order of two elements; `None` if they have none, which is no error in Kubernetes.
fn order(left: &dyn Val, right: &dyn Val) -> Result<Option<Ordering>, ExecutionError> {
    right.as_comparer().ok_or_else(mismatch)?;
    Ok(left.as_comparer().ok_or_else(mismatch)?.compare(right).ok())
}

fn is_sorted(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let values = values_of(args, &ORDERED)?;
    for (left, right) in values.iter().zip(values.iter().skip(1)) {
        if order(left.as_ref(), right.as_ref())? == Some(Ordering::Greater) {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

fn sum<'v>(args: &[CowVal<'_, 'v>]) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    let values = values_of(args, &NUMBERS)?;
    let Some((first, rest)) = values.split_first() else { return Ok(Box::new(CelInt::from(0))) };
    let mut sum = first.clone_as_boxed();
    for value in rest {
        let is_number = NUMBERS.contains(&value.get_type().name());
        let adder = sum.as_adder().filter(|_| is_number).ok_or_else(mismatch)?;
        sum = adder.add(value.as_ref())?.into_owned();
    }
    Ok(sum)
}

fn extreme<'v>(args: &[CowVal<'_, 'v>], name: &str, wanted: Ordering) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    let values = values_of(args, &ORDERED)?;
    let (first, rest) = values.split_first().ok_or_else(|| failed(format!("{name} called on empty list")))?;
    let mut extreme = first;
    for value in rest {
        if order(extreme.as_ref(), value.as_ref())? == Some(wanted.reverse()) {
            extreme = value;
        }
    }
    Ok(extreme.clone_as_boxed())
}

fn position(args: &[CowVal<'_, '_>], last: bool) -> Result<CelInt, ExecutionError> {
    let [_, wanted, _] = args else { return Err(mismatch()) };
    let values = values(args)?;
    let mut equal = values.iter().map(|value| value.equals(wanted.as_ref()));
    let found = if last { equal.rposition(|equal| equal) } else { equal.position(|equal| equal) };
    Ok(CelInt::from(found.map_or(-1, count)))
}

fn slice<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let [_, start, end, _] = args else { return Err(mismatch()) };
    let values = values(args)?;
    let (start, end) = (int(start)?, int(end)?);
    let invalid = || failed(format!("cannot slice({start}, {end}), list is length {}", values.len()));
    let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = bounds.and_then(|(start, end)| values.get(start..end)).ok_or_else(invalid)?;
    Ok(list(part.iter().cloned()))
}

fn flatten<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let [_, depth @ .., _] = args else { return Err(mismatch()) };
    let values = values(args)?;
    let depth = depth.first().map_or(Ok(1), int)?;
    let mut flat = Vec::new();
    flatten_into(&mut flat, values, u64::try_from(depth).map_err(|_| failed("level must be non-negative"))?);
    Ok(CelList::from(flat))
}

fn flatten_into<'v>(flat: &mut Vec<Box<dyn Val + 'v>>, values: &[Box<dyn Val + 'v>], depth: u64) {
    for value in values {
        match value.downcast_ref::<CelList<'v>>().filter(|_| depth > 0) {
            Some(inner) => flatten_into(flat, inner.inner(), depth - 1),
            None => flat.push(value.clone_as_boxed()),
        }
    }
}

fn distinct<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let values = values(args)?;
    let mut distinct: Vec<&Box<dyn Val + 'v>> = Vec::new();
    for value in values {
        pay(args, 1)?;
        if !distinct.iter().any(|known| known.equals(value.as_ref())) {
            distinct.push(value);
        }
    }
    Ok(list(distinct.into_iter().cloned()))
}

fn reverse<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let values = values(args)?;
    Ok(list(values.iter().rev().cloned()))
}

fn sort<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let values = values(args)?;
    sorted(args, values, values)
}

fn sort_by_keys<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let [_, keys, _] = args else { return Err(mismatch()) };
    sorted(args, values(args)?, elements(keys)?)
}

/// Sorts values by their keys; equal keys keep their order.
fn sorted<'v>(
    args: &[CowVal<'_, 'v>],
    values: &[Box<dyn Val + 'v>],
    keys: &[Box<dyn Val + 'v>],
) -> Result<CelList<'v>, ExecutionError> {
    // Neighbours of a common type that has an order are enough for all pairs to compare.
    for key in keys {
        compare(key.as_ref(), keys.first().ok_or_else(mismatch)?.as_ref())?;
    }
    pay(args, usize::BITS.saturating_sub(values.len().leading_zeros()) as usize)?;
    let mut pairs: Vec<_> = keys.iter().zip(values).collect();
    pairs.sort_by(|(left, _), (right, _)| compare(left.as_ref(), right.as_ref()).unwrap_or(Ordering::Equal));
    Ok(list(pairs.into_iter().map(|(_, value)| value.clone_as_boxed())))
}

/// Returns the first element, if there is one.
fn first<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelOptional<'v>, ExecutionError> {
    Ok(CelOptional::from(values(args)?.first().cloned()))
}

/// Returns the last element, if there is one.
fn last<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelOptional<'v>, ExecutionError> {
    Ok(CelOptional::from(values(args)?.last().cloned()))
}

/// Returns the contents of a list's optional values, without the empty ones.
fn unwrapped<'v>(args: &[CowVal<'_, 'v>]) -> Result<CelList<'v>, ExecutionError> {
    let mut contents = Vec::new();
    for value in values(args)? {
        let optional = value.downcast_ref::<CelOptional<'v>>();
        let optional =
            optional.ok_or_else(|| failed(format!("value of type {} is not optional", value.get_type().name())))?;
        contents.extend(optional.option().map(Val::clone_as_boxed));
    }
    Ok(CelList::from(contents))
}

fn range<'v>(args: &[CowVal<'_, '_>]) -> Result<CelList<'v>, ExecutionError> {
    let [length, budget] = args else { return Err(mismatch()) };
    let length = int(length)?;
    if length < 0 {
        return Err(failed(format!("lists.range: size must be non-negative, got {length}")));
    }
    fuel(budget)?.spend(length.unsigned_abs())?;
    Ok(list((0..length).map(|number| {
        let number: Box<dyn Val + 'v> = Box::new(CelInt::from(number));
        number
    })))
}
