//! CEL's set library: lists as sets.

use cel::ExecutionError;
use cel::common::types::CelBool;
use cel::common::value::{CowVal, Val};

use super::Parameter::List;
use super::{Function, elements, fuel, global, mismatch, units};
use crate::selector::types::Ty;

pub(super) const FUNCTIONS: &[Function] = &[
    global("sets.contains", &[List, List], Ty::BOOL, |args| contains(&args).map(CowVal::owned)),
    global("sets.equivalent", &[List, List], Ty::BOOL, |args| equivalent(&args).map(CowVal::owned)),
    global("sets.intersects", &[List, List], Ty::BOOL, |args| intersects(&args).map(CowVal::owned)),
];

/// Charges the budget of the evaluation for comparing all pairs of elements of two lists, and returns the lists.
fn pair<'a, 'v>(args: &'a [CowVal<'_, 'v>]) -> Result<[&'a [Box<dyn Val + 'v>]; 2], ExecutionError> {
    let [left, right, budget] = args else { return Err(mismatch()) };
    let (first, second) = (elements(left)?, elements(right)?);
    let budget = fuel(budget)?;
    budget.spend(units(first.len()).saturating_mul(units(second.len())))?;
    budget.spend_value(left.as_ref())?;
    budget.spend_value(right.as_ref())?;
    Ok([first, second])
}

fn has(list: &[Box<dyn Val + '_>], wanted: &dyn Val) -> bool {
    list.iter().any(|element| element.equals(wanted))
}

fn contains(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [list, wanted] = pair(args)?;
    Ok(wanted.iter().all(|wanted| has(list, wanted.as_ref())).into())
}

fn equivalent(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [left, right] = pair(args)?;
    let both =
        right.iter().all(|value| has(left, value.as_ref())) && left.iter().all(|value| has(right, value.as_ref()));
    Ok(both.into())
}

fn intersects(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [left, right] = pair(args)?;
    Ok(right.iter().any(|value| has(left, value.as_ref())).into())
}
