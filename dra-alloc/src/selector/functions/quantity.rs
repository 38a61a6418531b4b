//! Kubernetes' quantity library.

use std::any::Any;
use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelDouble, CelInt, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use dra_attrs::quantity::{Quantity, QuantityFormat};

use super::Parameter::{Int, Quantity as Amount, String};
use super::{Function, failed, fuel, global, int, member, mismatch, own, text};
use crate::selector::types::{Plain, Ty};

static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const RESULT: Ty = Ty::One(Plain::Quantity);

/// A quantity in an expression.
#[derive(Clone, Copy, Debug)]
pub(in crate::selector) struct QuantityValue(Quantity);

impl QuantityValue {
    pub(in crate::selector) fn boxed<'v>(quantity: Quantity) -> Box<dyn Val + 'v> {
        Box::new(Self(quantity))
    }
}

impl Val for QuantityValue {
    fn get_type(&self) -> &Type {
        &QUANTITY
    }

    fn cel_type() -> &'static Type {
        &QUANTITY
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for QuantityValue {}

pub(super) const FUNCTIONS: &[Function] = &[
    global("quantity", &[String], RESULT, |args| parse(&args).map(CowVal::owned)),
    global("isQuantity", &[String], Ty::BOOL, |args| is_quantity(&args).map(CowVal::owned)),
    member("sign", &[Amount], Ty::INT, |args| sign(&args).map(CowVal::owned)),
    member("isInteger", &[Amount], Ty::BOOL, |args| is_integer(&args).map(CowVal::owned)),
    member("asInteger", &[Amount], Ty::INT, |args| as_integer(&args).map(CowVal::owned)),
    member("asApproximateFloat", &[Amount], Ty::One(Plain::Double), |args| as_float(&args).map(CowVal::owned)),
    member("compareTo", &[Amount, Amount], Ty::INT, |args| {
        compare(&args).map(|order| CowVal::owned(CelInt::from(order as i64)))
    }),
    member("isGreaterThan", &[Amount, Amount], Ty::BOOL, |args| {
        compare(&args).map(|order| CowVal::owned(CelBool::from(order.is_gt())))
    }),
    member("isLessThan", &[Amount, Amount], Ty::BOOL, |args| {
        compare(&args).map(|order| CowVal::owned(CelBool::from(order.is_lt())))
    }),
    member("add", &[Amount, Amount], RESULT, |args| add(&args).map(CowVal::owned)),
    member("add", &[Amount, Int], RESULT, |args| add(&args).map(CowVal::owned)),
    member("sub", &[Amount, Amount], RESULT, |args| subtract(&args).map(CowVal::owned)),
    member("sub", &[Amount, Int], RESULT, |args| subtract(&args).map(CowVal::owned)),
];

fn parse(args: &[CowVal<'_, '_>]) -> Result<QuantityValue, ExecutionError> {
    let [source, budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    source.parse().map(QuantityValue).map_err(failed)
}

fn is_quantity(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [source, budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    Ok(source.parse::<Quantity>().is_ok().into())
}

/// The receiver, after the budget was charged.
fn receiver(args: &[CowVal<'_, '_>]) -> Result<Quantity, ExecutionError> {
    let [target, .., budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(1)?;
    own::<QuantityValue>(target).map(|value| value.0)
}

/// The argument; an integer is a number of units.
fn argument(args: &[CowVal<'_, '_>]) -> Result<Quantity, ExecutionError> {
    let [_, value, _] = args else { return Err(mismatch()) };
    match value.downcast_ref::<QuantityValue>() {
        Some(value) => Ok(value.0),
        None => Ok(Quantity::from_units(int(value)?, QuantityFormat::DecimalSi)),
    }
}

fn sign(args: &[CowVal<'_, '_>]) -> Result<CelInt, ExecutionError> {
    let sign = receiver(args)?.nanos().signum();
    i64::try_from(sign).map(CelInt::from).map_err(failed)
}

/// The value as an integer, where it is one of 64 bits.
fn whole(quantity: Quantity) -> Option<i64> {
    let nanos = quantity.nanos();
    (nanos % NANOS_PER_UNIT == 0).then(|| i64::try_from(nanos / NANOS_PER_UNIT).ok()).flatten()
}

fn is_integer(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    Ok(whole(receiver(args)?).is_some().into())
}

fn as_integer(args: &[CowVal<'_, '_>]) -> Result<CelInt, ExecutionError> {
    whole(receiver(args)?).map(CelInt::from).ok_or_else(|| failed("cannot convert value to integer"))
}

#[expect(clippy::cast_precision_loss, clippy::float_arithmetic, reason = "the function promises an approximation")]
fn as_float(args: &[CowVal<'_, '_>]) -> Result<CelDouble, ExecutionError> {
    Ok(CelDouble::from(receiver(args)?.nanos() as f64 / NANOS_PER_UNIT as f64))
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(receiver(args)?.cmp(&argument(args)?))
}

fn add(args: &[CowVal<'_, '_>]) -> Result<QuantityValue, ExecutionError> {
    let sum = receiver(args)?.checked_add(argument(args)?);
    sum.map(QuantityValue).ok_or_else(|| failed("quantity out of range"))
}

fn subtract(args: &[CowVal<'_, '_>]) -> Result<QuantityValue, ExecutionError> {
    let difference = receiver(args)?.checked_sub(argument(args)?);
    difference.map(QuantityValue).ok_or_else(|| failed("quantity out of range"))
}
