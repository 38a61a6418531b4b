//! Function `x.includes(v)`: true if the list `x` contains `v`, or if the scalar `x` equals `v`.

use cel::ExecutionError;
use cel::common::types::{CelBool, CelList};
use cel::common::value::CowVal;
use dra_attrs::MAX_VALUES_PER_DEVICE;

use super::Parameter::Any;
use super::{Function, failed, fuel, member, mismatch};
use crate::selector::types::Ty;

pub(super) const FUNCTIONS: &[Function] =
    &[member("includes", &[Any, Any], Ty::BOOL, |args| includes(&args).map(CowVal::owned))];

fn includes(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [target, value, budget] = args else { return Err(mismatch()) };
    let Some(list) = target.downcast_ref::<CelList<'_>>() else {
        fuel(budget)?.spend(1)?;
        return Ok(target.equals(value.as_ref()).into());
    };
    fuel(budget)?.spend_value(target.as_ref())?;
    let (elements, rest) = list.inner().split_at(list.inner().len().min(MAX_VALUES_PER_DEVICE));
    let found = elements.iter().any(|element| element.equals(value.as_ref()));
    if !found && !rest.is_empty() {
        return Err(failed(format!(
            "'includes' function cannot be applied to lists longer than {MAX_VALUES_PER_DEVICE} values"
        )));
    }
    Ok(found.into())
}
