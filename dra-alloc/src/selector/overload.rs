//! Overload resolution: the overload that a call means, and the type of its result.

use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::error::CompileError;
use super::functions::Parameter;
use super::functions::metering::{ELEMENT, KEYS};
use super::names;
use super::types::{Part, Plain, Ty};

/// Returns the type of a call of a function or operator. The first of `types` is that of the receiver, if there is one.
pub(super) fn call_type(call: &CallExpr, types: &[Ty]) -> Result<Ty, CompileError> {
    let (name, member) = (call.func_name.as_str(), call.target.is_some());
    let refused = || no_overload(name, member, types);
    match (name, types) {
        (KEYS, [container]) => return keys_type(*container),
        (ELEMENT, [container, key]) => return indexed(*container, *key).ok_or_else(refused),
        ("sum" | "min" | "max" | "isSorted", [Ty::ListOf(element)]) if member => {
            return folded(name, *element).ok_or_else(refused);
        }
        _ => {}
    }
    if names::is_own(name, member) {
        return own_result(name, member, types).ok_or_else(refused);
    }
    let standard = if member { names::standard_member(name) } else { names::standard_global(name) };
    match standard {
        Some(result) => standard_result(name, types, result).ok_or_else(refused),
        None if names::exists(name) => Err(refused()),
        None if member => Err(undeclared(name)),
        None => operator_result(call, types),
    }
}

pub(super) fn undeclared(name: &str) -> CompileError {
    CompileError::UndeclaredReference { name: name.to_owned() }
}

/// Builds the error in cel-go's words: `(int, string)`, for a member function `int.(string)`.
fn no_overload(function: &str, member: bool, types: &[Ty]) -> CompileError {
    let list = |types: &[Ty]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let arguments = match types.split_first() {
        Some((receiver, arguments)) if member => format!("{receiver}.({})", list(arguments)),
        _ => format!("({})", list(types)),
    };
    CompileError::NoMatchingOverload { function: function.to_owned(), arguments }
}

/// Returns the type of `operand.field`; a field of an optional value is optional.
pub(super) fn field_type(operand: Ty, field: &str) -> Result<Ty, CompileError> {
    if let Some(content) = operand.content() {
        return field_type(content, field).map(|field| Ty::OptionalOf(field.plain()));
    }
    match operand {
        Ty::Device => match field {
            "driver" => Ok(Ty::STRING),
            "allowMultipleAllocations" => Ok(Ty::BOOL),
            "attributes" => Ok(Ty::Domains(Part::Attributes)),
            "capacity" => Ok(Ty::Domains(Part::Capacity)),
            _ => Err(CompileError::UndefinedField { field: field.to_owned() }),
        },
        Ty::ListOf(_) => Err(no_overload("_._", false, &[operand, Ty::STRING])),
        other => element_type(other).ok_or_else(|| no_overload("_._", false, &[operand, Ty::STRING])),
    }
}

/// Returns the result type of `min`, `max`, `sum` or `isSorted` over elements of a type.
fn folded(name: &str, element: Plain) -> Option<Ty> {
    let fits = match name {
        "sum" => is_number(element),
        _ => is_number(element) || matches!(element, Plain::Bool | Plain::String | Plain::Bytes),
    };
    let result = if name == "isSorted" { Ty::BOOL } else { Ty::One(element) };
    (fits || Ty::One(element).is_open()).then_some(result)
}

/// Returns the key type of a two-variable loop over a container.
fn keys_type(container: Ty) -> Result<Ty, CompileError> {
    match container {
        Ty::ListOf(_) | Ty::One(Plain::List) => Ok(Ty::ListOf(Plain::Int)),
        Ty::Domains(_) | Ty::Domain(_) => Ok(Ty::ListOf(Plain::String)),
        Ty::One(Plain::Unknown | Plain::Dyn | Plain::Map) => Ok(Ty::ListOf(Plain::Unknown)),
        Ty::One(_) | Ty::OptionalOf(_) | Ty::Device => Err(CompileError::NotIterable { actual: container.to_string() }),
    }
}

/// Returns the type of a map's or list's elements.
const fn element_type(container: Ty) -> Option<Ty> {
    Some(match container {
        Ty::Domains(part) => Ty::Domain(part),
        Ty::Domain(Part::Attributes) | Ty::One(Plain::Dyn) => Ty::One(Plain::Dyn),
        Ty::Domain(Part::Capacity) => Ty::One(Plain::Quantity),
        Ty::ListOf(element) => Ty::One(element),
        Ty::One(Plain::Unknown | Plain::Map | Plain::List) => Ty::UNKNOWN,
        Ty::OptionalOf(_) | Ty::One(_) | Ty::Device => return None,
    })
}

fn accepts(parameter: Parameter, argument: Ty) -> bool {
    argument.agrees_with(match parameter {
        Parameter::Any => return true,
        Parameter::Bool => Ty::BOOL,
        Parameter::Int => Ty::INT,
        Parameter::String => Ty::STRING,
        Parameter::List => Ty::One(Plain::List),
        Parameter::Quantity => Ty::One(Plain::Quantity),
        Parameter::Version => Ty::One(Plain::Semver),
        Parameter::Ip => Ty::One(Plain::Ip),
        Parameter::Cidr => Ty::One(Plain::Cidr),
        // Only the rewriting passes one.
        Parameter::Pattern => return false,
    })
}

fn own_result(name: &str, member: bool, types: &[Ty]) -> Option<Ty> {
    let fits = |parameters: &[Parameter]| {
        parameters.len() == types.len() && parameters.iter().zip(types).all(|(parameter, ty)| accepts(*parameter, *ty))
    };
    let mut results = names::overloads(name, member).filter(|function| fits(function.parameters)).map(|f| f.result);
    let first = results.next()?;
    Some(if results.all(|result| result == first) { first } else { Ty::UNKNOWN })
}

/// Returns the result type of a call of a `cel` crate function. `result` is the type for functions that always have
/// one.
fn standard_result(name: &str, types: &[Ty], result: Ty) -> Option<Ty> {
    match (name, types) {
        ("optional.none", []) => Some(Ty::OptionalOf(Plain::Unknown)),
        ("optional.of" | "optional.ofNonZeroValue", [value]) => Some(Ty::OptionalOf(value.plain())),
        ("hasValue", [optional]) => content(*optional).map(|_| result),
        ("value", [optional]) => content(*optional),
        ("or", [first, second]) => {
            either(content(*first)?, content(*second)?).map(|content| Ty::OptionalOf(content.plain()))
        }
        ("orValue", [optional, value]) => either(content(*optional)?, *value),
        ("contains" | "startsWith" | "endsWith", [text, part]) => {
            [text, part].into_iter().all(|ty| ty.agrees_with(Ty::STRING)).then_some(result)
        }
        ("size", [Ty::Device]) => None,
        ("type" | "dyn", [_]) => Some(result),
        (_, [value]) => (value.is_open() || converts(name, value.plain())).then_some(result),
        _ => None,
    }
}

/// Returns true if a conversion function, such as `int`, takes an argument of a type.
const fn converts(function: &str, argument: Plain) -> bool {
    match function.as_bytes() {
        b"size" => matches!(argument, Plain::String | Plain::Bytes | Plain::List | Plain::Map),
        b"bool" => matches!(argument, Plain::Bool | Plain::String),
        b"bytes" => matches!(argument, Plain::Bytes | Plain::String),
        b"int" | b"uint" | b"double" => is_number(argument) || matches!(argument, Plain::String),
        b"string" => {
            is_number(argument)
                || matches!(argument, Plain::Bool | Plain::Bytes | Plain::String | Plain::Ip | Plain::Cidr)
        }
        _ => false,
    }
}

/// Returns the content type of an optional value.
fn content(optional: Ty) -> Option<Ty> {
    if optional.is_open() { Some(optional) } else { optional.content() }
}

/// Returns the common type of two alternatives: `dyn` if one of them is.
fn either(one: Ty, other: Ty) -> Option<Ty> {
    let joined = one.joined(other)?;
    let dynamic = Ty::One(Plain::Dyn);
    Some(if one == dynamic || other == dynamic { dynamic } else { joined })
}

const fn is_number(plain: Plain) -> bool {
    matches!(plain, Plain::Int | Plain::Uint | Plain::Double)
}

fn operator_result(call: &CallExpr, types: &[Ty]) -> Result<Ty, CompileError> {
    let refused = || no_overload(&call.func_name, false, types);
    let all = |fits: fn(Plain) -> bool| types.iter().all(|ty| ty.is_open() || fits(ty.plain()));
    let numbers = || types.iter().all(|ty| is_number(ty.plain()));
    let truth = |holds: bool| if holds { Ok(Ty::BOOL) } else { Err(refused()) };
    match (call.func_name.as_str(), types) {
        (operators::CONDITIONAL, [condition, first, second]) => {
            let joined = first.joined(*second).filter(|_| condition.agrees_with(Ty::BOOL));
            joined.ok_or_else(refused)
        }
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, _])
        | (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [_]) => truth(all(|plain| plain == Plain::Bool)),
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => truth(left.agrees_with(*right) || numbers()),
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [left, right]) => {
            let ordered = all(|plain| is_number(plain) || matches!(plain, Plain::Bool | Plain::String | Plain::Bytes));
            truth(ordered && (left.agrees_with(*right) || numbers()))
        }
        (operators::IN, [item, container]) => truth(contains(*container, *item)),
        (operators::ADD, [left, right]) => sum_type(*left, *right).ok_or_else(refused),
        (operators::MODULO, [Ty::One(Plain::Double), _] | [_, Ty::One(Plain::Double)]) => Err(refused()),
        (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [left, right]) => {
            if !all(is_number) || !left.agrees_with(*right) {
                return Err(refused());
            }
            Ok(if left.is_open() { *right } else { *left })
        }
        (operators::NEGATE, [operand]) => {
            if all(|plain| matches!(plain, Plain::Int | Plain::Double)) {
                Ok(*operand)
            } else {
                Err(refused())
            }
        }
        (operators::INDEX, [container, index]) => indexed(*container, *index).ok_or_else(refused),
        (operators::OPT_INDEX, [container, index]) => {
            let element = indexed(*container, *index).ok_or_else(refused)?;
            if container.is_open() {
                return Ok(Ty::UNKNOWN);
            }
            Ok(if element.content().is_some() { element } else { Ty::OptionalOf(element.plain()) })
        }
        (operators::OPT_SELECT, [operand, _]) => match call.args.get(1).map(|field| &field.expr) {
            Some(Expr::Literal(LiteralValue::String(field))) => {
                let field = field_type(*operand, field.inner())?;
                Ok(if operand.content().is_some() { field } else { Ty::OptionalOf(field.plain()) })
            }
            _ => Ok(Ty::OptionalOf(Plain::Unknown)),
        },
        _ => Err(undeclared(&call.func_name)),
    }
}

/// Returns true if `item in container` is permitted.
fn contains(container: Ty, item: Ty) -> bool {
    match container {
        Ty::Domains(_) | Ty::Domain(_) => item.agrees_with(Ty::STRING),
        Ty::ListOf(element) => item.agrees_with(Ty::One(element)),
        other => other.is_open() || matches!(other, Ty::One(Plain::List | Plain::Map)),
    }
}

/// Returns the type of `container[index]`; an element of an optional value is optional.
fn indexed(container: Ty, index: Ty) -> Option<Ty> {
    if let Some(content) = container.content() {
        return indexed(content, index).map(|element| Ty::OptionalOf(element.plain()));
    }
    let by = match container {
        Ty::Domains(_) | Ty::Domain(_) => Ty::STRING,
        Ty::ListOf(_) | Ty::One(Plain::List) => Ty::INT,
        _ => Ty::UNKNOWN,
    };
    element_type(container).filter(|_| index.agrees_with(by))
}

fn sum_type(left: Ty, right: Ty) -> Option<Ty> {
    match (left, right) {
        (Ty::ListOf(left), Ty::ListOf(right)) if left == right || right == Plain::Unknown => Some(Ty::ListOf(left)),
        (Ty::ListOf(Plain::Unknown), list @ Ty::ListOf(_)) => Some(list),
        (Ty::ListOf(_), Ty::ListOf(_)) => Some(Ty::ListOf(Plain::Unknown)),
        (left, right) if left.is_open() || right.is_open() => Some(Ty::UNKNOWN),
        (left, right) if left.plain() != right.plain() => None,
        (left, _) => {
            let addable = is_number(left.plain()) || matches!(left.plain(), Plain::String | Plain::Bytes | Plain::List);
            addable.then_some(left)
        }
    }
}
