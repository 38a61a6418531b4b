//! Which names exist.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr};

use super::functions::{self, Function};
use super::types::{Plain, Ty};

/// The overloads of a function that is not the `cel` crate's own.
pub(super) fn overloads(name: &str, member: bool) -> impl Iterator<Item = &'static Function> {
    functions::all().filter(move |function| function.member == member && function.name == name)
}

pub(super) fn is_own(name: &str, member: bool) -> bool {
    overloads(name, member).next().is_some()
}

/// Whether there is a function of this name, called on a receiver or not.
pub(super) fn exists(name: &str) -> bool {
    functions::all().any(|function| function.name == name)
        || standard_global(name).is_some()
        || standard_member(name).is_some()
}

/// The result of a global function of the `cel` crate, where it is always the same.
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

/// The result of a member function of the `cel` crate, where it is always the same.
pub(super) fn standard_member(name: &str) -> Option<Ty> {
    Some(match name {
        "size" => Ty::INT,
        "contains" | "startsWith" | "endsWith" | "hasValue" => Ty::BOOL,
        "value" | "or" | "orValue" => Ty::UNKNOWN,
        _ => return None,
    })
}

/// Whether a name is that of a type.
pub(super) fn is_type(name: &str) -> bool {
    let types =
        ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];
    types.contains(&name)
}

/// The name of a global function in a namespace, `sets.contains`, that looks like a call on a receiver.
pub(super) fn qualified(call: &CallExpr, variables: &[String]) -> Option<String> {
    let Expr::Ident(namespace) = &call.target.as_deref()?.expr else { return None };
    if variables.contains(namespace) {
        return None;
    }
    let name = format!("{namespace}.{}", call.func_name);
    (is_own(&name, false) || standard_global(&name).is_some()).then_some(name)
}

/// Whether a comprehension is `cel.bind`: a loop over nothing.
pub(super) fn is_binding(comprehension: &ComprehensionExpr) -> bool {
    let nothing = matches!(&comprehension.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    nothing && matches!(comprehension.loop_step.expr, Expr::Ident(_))
}
