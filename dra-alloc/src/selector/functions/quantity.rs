//! Quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use dra_attrs::QuantityError;

use super::amount::Amount;
use super::{Function, function};
use crate::selector::fault::Fault;
use crate::selector::value::{Answer, Origin, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    function("quantity", |_, arguments| match arguments {
        [Value::String(text)] => parse(text).map(read).map_err(Fault::text),
        _ => Err(Fault::no_overload()),
    }),
    function("isQuantity", |_, arguments| match arguments {
        [Value::String(text)] => Ok(Value::Bool(parse(text).is_ok())),
        _ => Err(Fault::no_overload()),
    }),
    function("sign", |_, arguments| match arguments {
        [Value::Quantity(amount, _)] => Ok(Value::Int(amount.sign())),
        _ => Err(Fault::no_overload()),
    }),
    function("isInteger", |_, arguments| match arguments {
        [Value::Quantity(amount, _)] => Ok(Value::Bool(amount.integer().is_some())),
        _ => Err(Fault::no_overload()),
    }),
    function("asInteger", |_, arguments| match arguments {
        [Value::Quantity(amount, _)] => {
            amount.integer().map(Value::Int).ok_or_else(|| "cannot convert value to integer".into())
        }
        _ => Err(Fault::no_overload()),
    }),
    function("asApproximateFloat", |_, arguments| match arguments {
        [Value::Quantity(amount, _)] => Ok(Value::Double(amount.approximate())),
        _ => Err(Fault::no_overload()),
    }),
    function("add", |_, arguments| computed(arguments, Amount::plus)),
    function("sub", |_, arguments| computed(arguments, Amount::minus)),
    function("compareTo", |_, arguments| compared(arguments, |order| Value::Int(order as i64))),
    function("isGreaterThan", |_, arguments| compared(arguments, |order| Value::Bool(order.is_gt()))),
    function("isLessThan", |_, arguments| compared(arguments, |order| Value::Bool(order.is_lt()))),
];

fn read<'v>(amount: Amount) -> Value<'v> {
    Value::Quantity(Arc::new(amount), Origin::Read)
}

fn parse(text: &str) -> Result<Amount, String> {
    text.parse().map_err(|error| match error {
        QuantityError::Format { .. } => {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()
        }
        QuantityError::Suffix { .. } => "unable to parse quantity's suffix".to_owned(),
        other => other.to_string(),
    })
}

fn computed<'v>(arguments: &[Value<'v>], compute: fn(&Amount, &Amount) -> Amount) -> Answer<'v> {
    let amount = match arguments {
        [Value::Quantity(one, _), Value::Quantity(other, _)] => compute(one, other),
        [Value::Quantity(one, _), Value::Int(units)] => compute(one, &Amount::from_units(*units)),
        _ => return Err(Fault::no_overload()),
    };
    Ok(Value::Quantity(Arc::new(amount), Origin::Computed))
}

/// Compares quantities, or versions, which have the same methods.
fn compared<'v>(arguments: &[Value<'v>], answer: fn(Ordering) -> Value<'static>) -> Answer<'v> {
    match arguments {
        [Value::Quantity(one, _), Value::Quantity(other, _)] => Ok(answer(one.cmp(other))),
        [Value::Version(one), Value::Version(other)] => Ok(answer(one.cmp(other))),
        _ => Err(Fault::no_overload()),
    }
}
