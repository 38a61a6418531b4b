//! Kubernetes' quantity library.

use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelDouble, CelInt};
use cel::common::value::{CowVal, Val};
use dra_attrs::{Quantity, QuantityError};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::Parameter::{Int, Quantity as Kube, String};
use super::amount::Amount;
use super::{Function, failed, fuel, global, int, member, mismatch, own, text};
use crate::selector::opaque::opaque;
use crate::selector::types::{Plain, Ty};

const RESULT: Ty = Ty::One(Plain::Quantity);

/// Quantity as a CEL value.
#[derive(Clone, Copy, Debug)]
pub(in crate::selector) struct QuantityValue {
    amount: Amount,
    origin: Origin,
}

/// Origin of a quantity. In Kubernetes nothing equals a computed quantity, which has another Go type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Read,
    Computed,
}

impl QuantityValue {
    /// Returns the CEL value of a capacity.
    pub(in crate::selector) fn read<'v>(quantity: &KubeQuantity) -> Result<Box<dyn Val + 'v>, QuantityError> {
        Ok(Box::new(Self::from_text(quantity.0.trim())?))
    }

    /// Implements `==`. Returns an error unless `other` is a quantity that was parsed, not computed.
    pub(in crate::selector) fn equality(&self, other: &dyn Val) -> Result<bool, ExecutionError> {
        let other = other.downcast_ref::<Self>().filter(|other| other.origin == Origin::Read);
        Ok(self.quantity() == other.ok_or_else(mismatch)?.quantity())
    }

    const fn quantity(&self) -> Quantity {
        self.amount.quantity()
    }

    fn from_text(text: &str) -> Result<Self, QuantityError> {
        Ok(Self { amount: text.parse()?, origin: Origin::Read })
    }

    fn computed(amount: Option<Amount>) -> Result<Self, ExecutionError> {
        let amount = amount.ok_or_else(|| failed("quantity out of range"))?;
        Ok(Self { amount, origin: Origin::Computed })
    }
}

opaque!(QuantityValue, "kubernetes.Quantity", |one, other| one.quantity() == other.quantity());

pub(super) const FUNCTIONS: &[Function] = &[
    global("quantity", &[String], RESULT, |args| parse(&args).map(CowVal::owned)),
    global("isQuantity", &[String], Ty::BOOL, |args| is_quantity(&args).map(CowVal::owned)),
    global("sign", &[Kube], Ty::INT, |args| sign(&args).map(CowVal::owned)),
    member("isInteger", &[Kube], Ty::BOOL, |args| is_integer(&args).map(CowVal::owned)),
    member("asInteger", &[Kube], Ty::INT, |args| as_integer(&args).map(CowVal::owned)),
    member("asApproximateFloat", &[Kube], Ty::One(Plain::Double), |args| as_float(&args).map(CowVal::owned)),
    member("compareTo", &[Kube, Kube], Ty::INT, |args| {
        compare(&args).map(|order| CowVal::owned(CelInt::from(order as i64)))
    }),
    member("isGreaterThan", &[Kube, Kube], Ty::BOOL, |args| {
        compare(&args).map(|order| CowVal::owned(CelBool::from(order.is_gt())))
    }),
    member("isLessThan", &[Kube, Kube], Ty::BOOL, |args| {
        compare(&args).map(|order| CowVal::owned(CelBool::from(order.is_lt())))
    }),
    member("add", &[Kube, Kube], RESULT, |args| add(&args).map(CowVal::owned)),
    member("add", &[Kube, Int], RESULT, |args| add(&args).map(CowVal::owned)),
    member("sub", &[Kube, Kube], RESULT, |args| subtract(&args).map(CowVal::owned)),
    member("sub", &[Kube, Int], RESULT, |args| subtract(&args).map(CowVal::owned)),
];

fn parse(args: &[CowVal<'_, '_>]) -> Result<QuantityValue, ExecutionError> {
    let [source, budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    QuantityValue::from_text(source).map_err(failed)
}

fn is_quantity(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let [source, budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    Ok(source.parse::<Quantity>().is_ok().into())
}

/// Charges one unit to the budget of the evaluation, and returns the quantity on which the function was called.
fn receiver(args: &[CowVal<'_, '_>]) -> Result<Amount, ExecutionError> {
    let [target, .., budget] = args else { return Err(mismatch()) };
    fuel(budget)?.spend(1)?;
    own::<QuantityValue>(target).map(|value| value.amount)
}

/// Returns the argument of a function as a quantity; an integer is a number of units.
fn argument(args: &[CowVal<'_, '_>]) -> Result<Amount, ExecutionError> {
    let [_, value, _] = args else { return Err(mismatch()) };
    match value.downcast_ref::<QuantityValue>() {
        Some(value) => Ok(value.amount),
        None => Ok(Amount::from_units(int(value)?)),
    }
}

fn sign(args: &[CowVal<'_, '_>]) -> Result<CelInt, ExecutionError> {
    let sign = receiver(args)?.quantity().nanos().signum();
    i64::try_from(sign).map(CelInt::from).map_err(failed)
}

fn is_integer(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    Ok(receiver(args)?.integer().is_some().into())
}

fn as_integer(args: &[CowVal<'_, '_>]) -> Result<CelInt, ExecutionError> {
    receiver(args)?.integer().map(CelInt::from).ok_or_else(|| failed("cannot convert value to integer"))
}

fn as_float(args: &[CowVal<'_, '_>]) -> Result<CelDouble, ExecutionError> {
    Ok(CelDouble::from(receiver(args)?.approximate()))
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(receiver(args)?.quantity().cmp(&argument(args)?.quantity()))
}

fn add(args: &[CowVal<'_, '_>]) -> Result<QuantityValue, ExecutionError> {
    QuantityValue::computed(receiver(args)?.checked_add(argument(args)?))
}

fn subtract(args: &[CowVal<'_, '_>]) -> Result<QuantityValue, ExecutionError> {
    QuantityValue::computed(receiver(args)?.checked_sub(argument(args)?))
}
