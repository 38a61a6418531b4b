//! Quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use dra_attrs::QuantityError;

use super::function::functions;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::scalar::amount::Amount;
use crate::value::{Origin, Value};

functions! { meter;
    "quantity" {
        "(string) -> Quantity" Parse: [Value::String(text)] =>
            read(meter, text)?.map(|amount| Value::Quantity(Arc::new(amount), Origin::Read)).map_err(Fault::text);
    }
    "isQuantity" {
        "(string) -> bool" Parse: [Value::String(text)] => Ok(Value::Bool(read(meter, text)?.is_ok()));
    }
    "sign" { "(Quantity) -> int" One: [Value::Quantity(amount, _)] => Ok(Value::Int(amount.sign())); }
    "isInteger" {
        "Quantity.() -> bool" One: [Value::Quantity(amount, _)] => Ok(Value::Bool(amount.integer().is_some()));
    }
    "asInteger" {
        "Quantity.() -> int" One: [Value::Quantity(amount, _)] =>
            amount.integer().map(Value::Int).ok_or_else(|| "cannot convert value to integer".into());
    }
    "asApproximateFloat" {
        "Quantity.() -> double" One: [Value::Quantity(amount, _)] => Ok(Value::Double(amount.approximate()));
    }
    "add" {
        "Quantity.(Quantity) -> Quantity" One:
            [Value::Quantity(one, _), Value::Quantity(other, _)] => Ok(computed(one.plus(other)));
        "Quantity.(int) -> Quantity" One:
            [Value::Quantity(one, _), Value::Int(units)] => Ok(computed(one.plus(&Amount::from_units(*units))));
    }
    "sub" {
        "Quantity.(Quantity) -> Quantity" One:
            [Value::Quantity(one, _), Value::Quantity(other, _)] => Ok(computed(one.minus(other)));
        "Quantity.(int) -> Quantity" One:
            [Value::Quantity(one, _), Value::Int(units)] => Ok(computed(one.minus(&Amount::from_units(*units))));
    }
    // Versions have the same methods.
    "compareTo" {
        "Quantity.(Quantity) -> int; Semver.(Semver) -> int" One:
            [one, other] => compared(one, other).map(|order| Value::Int(order as i64));
    }
    "isGreaterThan" {
        "Quantity.(Quantity) -> bool; Semver.(Semver) -> bool" One:
            [one, other] => compared(one, other).map(|order| Value::Bool(order.is_gt()));
    }
    "isLessThan" {
        "Quantity.(Quantity) -> bool; Semver.(Semver) -> bool" One:
            [one, other] => compared(one, other).map(|order| Value::Bool(order.is_lt()));
    }
}

fn computed<'v>(amount: Amount) -> Value<'v> {
    Value::Quantity(Arc::new(amount), Origin::Computed)
}

fn compared(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Box<Fault>> {
    match (one, other) {
        (Value::Quantity(one, _), Value::Quantity(other, _)) => Ok(one.compare(other)),
        (Value::Version(one), Value::Version(other)) => Ok(one.cmp(other)),
        _ => Err(Fault::no_overload()),
    }
}

/// Reads a quantity. An exponent stands for thousands of digits.
fn read(meter: &mut Meter<'_>, text: &str) -> Result<Result<Amount, String>, Box<Fault>> {
    let amount = parse(text);
    meter.work(amount.as_ref().map_or(0, Amount::weight))?;
    Ok(amount)
}

fn parse(text: &str) -> Result<Amount, String> {
    Amount::parse(text).map_err(|error| match error {
        QuantityError::Format { .. } => {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()
        }
        QuantityError::Suffix { .. } => "unable to parse quantity's suffix".to_owned(),
        other => other.to_string(),
    })
}
