//! Functions that Kubernetes adds to CEL, and those of CEL's extension libraries.
//!
//! Each takes the budget as its last argument; the rewriting of an expression appends it.

mod amount;
pub(super) mod cidr;
pub(super) mod conversions;
pub(super) mod equality;
pub(super) mod includes;
pub(super) mod ip;
pub(super) mod lists;
pub(super) mod metering;
mod pattern;
pub(super) mod quantity;
pub(super) mod regex;
pub(super) mod semver;
pub(super) mod sets;
pub(super) mod strings;

use cel::ExecutionError;
use cel::common::functions::Function as Operation;
use cel::common::types::{self, CelBool, CelInt, CelList, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};

use super::fuel::Fuel;
use super::types::Ty;
use cidr::CidrValue;
use ip::IpValue;
use quantity::QuantityValue;
use regex::PatternValue;
use semver::VersionValue;

/// Overload of a function.
pub(super) struct Function {
    /// Name of the function; with the namespace if the function is global.
    pub(super) name: &'static str,
    /// True for a member function, whose first parameter is the receiver.
    pub(super) member: bool,
    /// Types of the parameters, without the budget that metered functions get as their last argument.
    pub(super) parameters: &'static [Parameter],
    /// Type of the result.
    pub(super) result: Ty,
    /// Implementation of the overload.
    pub(super) operation: Operation,
}

/// Type of a parameter.
#[derive(Clone, Copy)]
pub(super) enum Parameter {
    Any,
    Bool,
    Int,
    String,
    List,
    Quantity,
    Version,
    Ip,
    Cidr,
    Pattern,
}

impl Parameter {
    pub(super) fn to_type(self) -> Type {
        match self {
            Self::Any => types::DYN_TYPE,
            Self::Bool => types::BOOL_TYPE,
            Self::Int => types::INT_TYPE,
            Self::String => types::STRING_TYPE,
            Self::List => types::LIST_TYPE,
            Self::Quantity => QuantityValue::cel_type().to_owned(),
            Self::Version => VersionValue::cel_type().to_owned(),
            Self::Ip => IpValue::cel_type().to_owned(),
            Self::Cidr => CidrValue::cel_type().to_owned(),
            Self::Pattern => PatternValue::cel_type().to_owned(),
        }
    }
}

/// Returns every function of this module.
pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    [
        cidr::FUNCTIONS,
        includes::FUNCTIONS,
        ip::FUNCTIONS,
        lists::FUNCTIONS,
        metering::FUNCTIONS,
        quantity::FUNCTIONS,
        regex::FUNCTIONS,
        semver::FUNCTIONS,
        sets::FUNCTIONS,
        strings::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

const fn member(name: &'static str, parameters: &'static [Parameter], result: Ty, operation: Operation) -> Function {
    Function { name, member: true, parameters, result, operation }
}

const fn global(name: &'static str, parameters: &'static [Parameter], result: Ty, operation: Operation) -> Function {
    Function { name, member: false, parameters, result, operation }
}

/// Builds an error with a given text.
fn failed(message: impl ToString) -> ExecutionError {
    ExecutionError::function_error("", message)
}

/// Builds the error for a wrong number or type of arguments, which overload resolution excludes.
fn mismatch() -> ExecutionError {
    failed("no such overload")
}

fn text<'a>(value: &'a CowVal<'_, '_>) -> Result<&'a str, ExecutionError> {
    value.downcast_ref::<CelString<'_>>().map(CelString::inner).ok_or_else(mismatch)
}

fn int(value: &CowVal<'_, '_>) -> Result<i64, ExecutionError> {
    value.downcast_ref::<CelInt>().map(|value| *value.inner()).ok_or_else(mismatch)
}

fn boolean(value: &CowVal<'_, '_>) -> Result<bool, ExecutionError> {
    value.downcast_ref::<CelBool>().map(|value| *value.inner()).ok_or_else(mismatch)
}

fn elements<'a, 'v>(value: &'a CowVal<'_, 'v>) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    value.downcast_ref::<CelList<'v>>().map(CelList::inner).ok_or_else(mismatch)
}

fn own<'a, T: StaticVal>(value: &'a CowVal<'_, '_>) -> Result<&'a T, ExecutionError> {
    value.downcast_ref::<T>().ok_or_else(mismatch)
}

fn fuel<'a>(value: &'a CowVal<'_, '_>) -> Result<&'a Fuel, ExecutionError> {
    own(value)
}

/// Parses the only argument, a text; the inner error says why it can't be parsed.
fn read<T>(
    args: &[CowVal<'_, '_>],
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Result<T, String>, ExecutionError> {
    let [source, budget] = args else { return Err(mismatch()) };
    let source = text(source)?;
    fuel(budget)?.spend_bytes(source.len())?;
    Ok(parse(source))
}

fn truth<'b, 'v>(value: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelBool::from(value))
}

/// Converts a number to a CEL integer.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number to units of the budget.
fn units(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
