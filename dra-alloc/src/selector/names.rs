//! Names of functions, types and variables that an expression may use.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr};

use super::error::CompileError;
use super::functions::{self, Function};
use super::tree;
use super::types::{Plain, Ty};

/// Returns the overloads of a function that is not the `cel` crate's own.
pub(super) fn overloads(name: &str, member: bool) -> impl Iterator<Item = &'static Function> {
    functions::all().filter(move |function| function.member == member && function.name == name)
}

pub(super) fn is_own(name: &str, member: bool) -> bool {
    overloads(name, member).next().is_some()
}

/// Returns true if there is a function of this name, called on a receiver or not.
pub(super) fn exists(name: &str) -> bool {
    functions::all().any(|function| function.name == name)
        || standard_global(name).is_some()
        || standard_member(name).is_some()
}

/// Returns the result type of a global function of the `cel` crate, if it is always the same.
pub(super) fn standard_global(name: &str) -> Option<Ty> {
    Some(match name {
        "size" | "int" => Ty::INT,
        "string" => Ty::STRING,
        "bool" => Ty::BOOL,
        "uint" => Ty::One(Plain::Uint),
        "double" => Ty::One(Plain::Double),
        "bytes" => Ty::One(Plain::Bytes),
        "dyn" => Ty::One(Plain::Dyn),
        "type" => Ty::One(Plain::Type),
        "optional.of" | "optional.none" | "optional.ofNonZeroValue" => Ty::UNKNOWN,
        _ => return None,
    })
}

/// Returns the result type of a member function of the `cel` crate, if it is always the same.
pub(super) fn standard_member(name: &str) -> Option<Ty> {
    Some(match name {
        "size" => Ty::INT,
        "contains" | "startsWith" | "endsWith" | "hasValue" => Ty::BOOL,
        "value" | "or" | "orValue" => Ty::UNKNOWN,
        _ => return None,
    })
}

/// Returns true if `name` is the name of a type, such as `int`.
pub(super) fn is_type(name: &str) -> bool {
    let types =
        ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];
    types.contains(&name)
}

/// Returns true if `namespace.name` is a type: `net.IP` or `net.CIDR`.
pub(super) fn is_qualified_type(namespace: &str, name: &str) -> bool {
    namespace.strip_prefix('.').unwrap_or(namespace) == "net" && matches!(name, "IP" | "CIDR")
}

/// Name of the loop accumulator in older versions of CEL.
const OLD_ACCUMULATOR: &str = "__result__";

/// Resolves namespaced names of functions, as cel-go does before variables: `sets.contains`, which looks like a call on
/// a receiver, and names that begin with a dot.
///
/// # Errors
/// A loop variable has a reserved name.
pub(super) fn resolve(expression: &mut IdedExpr) -> Result<(), CompileError> {
    match &mut expression.expr {
        Expr::Call(call) => {
            if let Some(name) = global_name(call) {
                (call.target, call.func_name) = (None, name);
            }
        }
        Expr::Comprehension(comprehension) => allowed_variable(&comprehension.iter_var)?,
        _ => {}
    }
    tree::children_mut(expression).into_iter().try_for_each(resolve)
}

fn global_name(call: &CallExpr) -> Option<String> {
    let name = match call.target.as_deref().map(|target| &target.expr) {
        None => call.func_name.strip_prefix('.')?.to_owned(),
        Some(Expr::Ident(namespace)) => {
            format!("{}.{}", namespace.strip_prefix('.').unwrap_or(namespace), call.func_name)
        }
        Some(_) => return None,
    };
    (is_own(&name, false) || standard_global(&name).is_some()).then_some(name)
}

/// Rejects the name of an accumulator as a variable.
///
/// # Errors
/// The name is reserved.
pub(super) fn allowed_variable(name: &str) -> Result<(), CompileError> {
    if name != OLD_ACCUMULATOR {
        return Ok(());
    }
    let message = "Syntax error: iteration variable overwrites accumulator variable".to_owned();
    Err(CompileError::Syntax { message })
}

/// Returns true if a comprehension is `cel.bind`: a loop over nothing.
pub(super) fn is_binding(comprehension: &ComprehensionExpr) -> bool {
    let nothing = matches!(&comprehension.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    nothing && matches!(comprehension.loop_step.expr, Expr::Ident(_))
}
