//! Functions that only rewritten expressions call: users can't write their names.

use cel::common::types::{CelInt, CelList, CelMap, CelOptional};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

use super::Parameter::Any;
use super::{Function, count, failed, fuel, global, int, mismatch, truth, units};
use crate::selector::fuel::Fuel;
use crate::selector::types::Ty;

/// Name of the function that charges one iteration of a loop.
pub(in crate::selector) const TICK: &str = "@tick";
/// Name of the function that returns a value after charging its size.
pub(in crate::selector) const USE: &str = "@use";
/// Name of the function that returns a loop's range as a list.
pub(in crate::selector) const RANGE: &str = "@range";
/// Name of the function that returns the range of a two-variable loop: the indices of a list, the keys of a map.
pub(in crate::selector) const KEYS: &str = "@keys";
/// Name of the function that returns an element of a list or map.
pub(in crate::selector) const ELEMENT: &str = "@element";
/// Name of the function that checks that the value of an optional element is optional.
pub(in crate::selector) const OPTIONAL_ELEMENT: &str = "@optionalElement";
/// Name of the function for `in` with a list of constants.
pub(in crate::selector) const IN_CONSTANTS: &str = "@inConstants";
/// Name of the function for a sum within another sum.
pub(in crate::selector) const ADD: &str = "@add";

pub(super) const FUNCTIONS: &[Function] = &[
    global(KEYS, &[Any], Ty::UNKNOWN, keys),
    global(ELEMENT, &[Any, Any], Ty::UNKNOWN, |args| element(&args).map(CowVal::Owned)),
];

pub(in crate::selector) fn declare(env: &mut Env) -> Result<(), cel::DeclarationError> {
    let any = || cel::common::types::DYN_TYPE;
    let budget = || Fuel::cel_type().to_owned();
    env.add_overload(TICK, TICK, vec![budget(), cel::common::types::INT_TYPE], |args| tick(&args))?;
    env.add_overload(USE, USE, vec![budget(), any()], charged)?;
    env.add_overload(OPTIONAL_ELEMENT, OPTIONAL_ELEMENT, vec![any()], optional_element)?;
    env.add_overload(IN_CONSTANTS, IN_CONSTANTS, vec![any(), any()], |args| in_constants(&args))?;
    env.add_overload(RANGE, RANGE, vec![budget(), any()], range)?;
    env.add_overload(ADD, ADD, vec![budget(), any(), any()], |args| add(&args))
}

fn tick<'b, 'v>(args: &[CowVal<'_, '_>]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, cost] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(int(cost)?.unsigned_abs())?;
    Ok(CowVal::owned(cel::common::types::CelBool::from(true)))
}

fn charged<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, value] = <[_; 2]>::try_from(args).map_err(|_| mismatch())?;
    fuel(&budget)?.spend_value(value.as_ref())?;
    Ok(value)
}

/// Returns a list unchanged, and the sorted keys of a map: the maps of the `cel` crate have no order.
fn range<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, value] = <[_; 2]>::try_from(args).map_err(|_| mismatch())?;
    fuel(&budget)?.spend_value(value.as_ref())?;
    if value.downcast_ref::<CelList<'_>>().is_some() {
        return Ok(value);
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let mut keys: Vec<_> = map.inner().keys().collect();
        keys.sort_unstable();
        let keys: Vec<Box<dyn Val + 'v>> = keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect();
        return Ok(CowVal::owned(CelList::from(keys)));
    }
    let Some(iterable) = value.as_iterable() else {
        return Err(failed(format!("got '{}', expected iterable type", go_type(value.as_ref()))));
    };
    let mut keys: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut names = iterable.iter();
    while let Some(name) = names.next() {
        fuel(&budget)?.spend_value(name)?;
        keys.push(name.clone_as_boxed());
    }
    Ok(CowVal::owned(CelList::from(keys)))
}

fn keys<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [container, budget] = <[_; 2]>::try_from(args).map_err(|_| mismatch())?;
    let Some(list) = container.downcast_ref::<CelList<'_>>() else {
        let is_map = container.downcast_ref::<CelMap<'_>>().is_some() || container.as_iterable().is_some();
        return if is_map { range(vec![budget, container]) } else { Err(unsupported(container.as_ref())) };
    };
    let length = list.inner().len();
    fuel(&budget)?.spend(units(length))?;
    let indices = (0..count(length)).map(|index| Box::new(CelInt::from(index)) as Box<dyn Val + 'v>);
    Ok(CowVal::owned(CelList::from(indices.collect::<Vec<_>>())))
}

fn optional_element<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = args.pop().ok_or_else(mismatch)?;
    if value.downcast_ref::<CelOptional<'_>>().is_some() {
        return Ok(value);
    }
    Err(failed(format!(
        "cannot initialize optional element from non-optional value of type {}",
        go_type(value.as_ref())
    )))
}

/// Implements `in` with a list of constants. cel-go searches them in a map, which is an error for versions and bytes.
fn in_constants<'b, 'v>(args: &[CowVal<'_, '_>]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [item, constants] = args else { return Err(mismatch()) };
    let name = go_type(item.as_ref());
    if matches!(name.as_str(), "cel.Semver" | "types.Bytes") {
        return Err(failed(format!("internal error: runtime error: hash of unhashable type {name}")));
    }
    constants.as_container().ok_or_else(mismatch)?.contains(item.as_ref()).map(truth)
}

fn element<'v>(args: &[CowVal<'_, 'v>]) -> Result<Box<dyn Val + 'v>, ExecutionError> {
    let [container, key, budget] = args else { return Err(mismatch()) };
    let element = container.as_indexer().ok_or_else(mismatch)?.get(key.as_ref())?;
    fuel(budget)?.spend_value(element.as_ref())?;
    Ok(element.into_owned())
}

fn add<'b, 'v>(args: &[CowVal<'b, 'v>]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, left, right] = args else { return Err(mismatch()) };
    fuel(budget)?.spend_value(left.as_ref())?;
    fuel(budget)?.spend_value(right.as_ref())?;
    let adder = left.as_adder().ok_or_else(mismatch)?;
    Ok(CowVal::Owned(adder.add(right.as_ref())?.into_owned()))
}

fn unsupported(value: &dyn Val) -> ExecutionError {
    failed(format!("unsupported comprehension range type: {}", go_type(value)))
}

/// Returns the name that cel-go's messages give to the type of a value.
fn go_type(value: &dyn Val) -> String {
    match value.get_type().name() {
        "int" => "types.Int".to_owned(),
        "uint" => "types.Uint".to_owned(),
        "double" => "types.Double".to_owned(),
        "bool" => "types.Bool".to_owned(),
        "string" => "types.String".to_owned(),
        "bytes" => "types.Bytes".to_owned(),
        "null_type" => "types.Null".to_owned(),
        "optional_type" => "*types.Optional".to_owned(),
        "kubernetes.Semver" => "cel.Semver".to_owned(),
        "kubernetes.Quantity" => "cel.Quantity".to_owned(),
        "net.IP" => "cel.IP".to_owned(),
        "net.CIDR" => "cel.CIDR".to_owned(),
        other => other.to_owned(),
    }
}
