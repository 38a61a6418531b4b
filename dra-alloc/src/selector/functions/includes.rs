//! `x.includes(v)`: a list has an element, or a scalar is it.

use cel::ExecutionError;
use cel::common::types::{CelBool, CelList};
use cel::common::value::CowVal;

use super::Parameter::Any;
use super::{Function, failed, fuel, member, mismatch};
use crate::selector::types::Ty;

/// The most values that the attributes of a device can have together.
const LONGEST_LIST: usize = 48;

pub(super) const FUNCTIONS: &[Function] =
    &[member("includes", &[Any, Any], Ty::BOOL, |args| includes(&args).map(CowVal::owned))];

fn includes(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [target, value, budget] = args else { return Err(mismatch()) };
    let Some(list) = target.downcast_ref::<CelList<'_>>() else {
        fuel(budget)?.spend(1)?;
        return Ok(target.equals(value.as_ref()).into());
    };
    let elements = list.inner();
    if elements.len() > LONGEST_LIST {
        return Err(failed(format!(
            "'includes' function cannot be applied to lists longer than {LONGEST_LIST} values"
        )));
    }
    fuel(budget)?.spend_value(target.as_ref())?;
    Ok(elements.iter().any(|element| element.equals(value.as_ref())).into())
}
