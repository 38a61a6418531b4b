//! Macros beyond those of the `cel` crate: `cel.bind` and `sortBy`. Macros with two variables are in `two_variables`.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env};

use super::functions::lists::SORT_BY_KEYS;

/// Iteration variable of a binding, which is a loop over nothing with the value as its accumulator.
const UNUSED: &str = "#unused";
pub(super) const RESULT: &str = "@result";
const ITEMS: &str = "@items";

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_macro(Macro::receiver("bind", 3, |helper, target, args| {
        let is_cel = matches!(target.as_ref().map(|target| &target.expr), Some(Expr::Ident(name)) if name == "cel");
        let arguments = if is_cel { take(args) } else { None };
        let Some([name, value, body]) = arguments else { return Ok(None) };
        let name = identifier(helper, name)?;
        Ok(Some(bind(helper, name, value, body)))
    }))?;
    env.add_macro(Macro::receiver("sortBy", 2, |helper, target, args| {
        let Some(arguments) = take(args) else { return Ok(None) };
        let Some(list) = target.take() else { return Ok(None) };
        let [name, key] = arguments;
        let name = identifier(helper, name)?;
        let items = helper.next_expr(Expr::Ident(ITEMS.to_owned()));
        let keys = map(helper, items, name, key);
        let items = helper.next_expr(Expr::Ident(ITEMS.to_owned()));
        let func_name = SORT_BY_KEYS.to_owned();
        let sorted = CallExpr { func_name, target: Some(Box::new(items)), args: vec![keys] };
        let sorted = helper.next_expr(Expr::Call(sorted));
        Ok(Some(bind(helper, ITEMS.to_owned(), list, sorted)))
    }))
}

/// Takes the arguments if their number is `N`, and leaves the list empty.
fn take<const N: usize>(args: &mut Vec<IdedExpr>) -> Option<[IdedExpr; N]> {
    if args.len() == N { std::mem::take(args).try_into().ok() } else { None }
}

pub(super) fn identifier(helper: &MacroExprHelper<'_>, argument: IdedExpr) -> Result<String, ParseError> {
    match argument.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err(helper.new_error(argument.id, "Syntax error: argument must be a simple name")),
    }
}

pub(super) fn bind(helper: &mut MacroExprHelper<'_>, name: String, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    let binding = binding(name, value, body, &mut |expr| helper.next_expr(expr));
    helper.next_expr(binding)
}

/// Builds the binding of `value` to a name in `body`.
pub(super) fn binding(name: String, value: IdedExpr, body: IdedExpr, node: &mut impl FnMut(Expr) -> IdedExpr) -> Expr {
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::default())),
        iter_var: UNUSED.to_owned(),
        iter_var2: None,
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: node(Expr::Ident(name.clone())),
        accu_var: name,
        accu_init: value,
        result: body,
    }))
}

/// Builds `list.map(name, element)`.
fn map(helper: &mut MacroExprHelper<'_>, list: IdedExpr, name: String, element: IdedExpr) -> IdedExpr {
    let result = helper.next_expr(Expr::Ident(RESULT.to_owned()));
    let element = helper.next_expr(Expr::List(ListExpr::new(vec![element])));
    let step = CallExpr { func_name: operators::ADD.to_owned(), target: None, args: vec![result, element] };
    let comprehension = ComprehensionExpr {
        iter_range: list,
        iter_var: name,
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: helper.next_expr(Expr::List(ListExpr::default())),
        loop_cond: helper.next_expr(Expr::Literal(LiteralValue::Boolean(true.into()))),
        loop_step: helper.next_expr(Expr::Call(step)),
        result: helper.next_expr(Expr::Ident(RESULT.to_owned())),
    };
    helper.next_expr(Expr::Comprehension(Box::new(comprehension)))
}
