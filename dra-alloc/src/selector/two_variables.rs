//! Macros with two variables: one for the keys of a map or the indices of a list, one for the values.
//!
//! `container.all(k, v, p)` is a loop over the keys, in which both are bound: with `c` for the container,
//! `keys(c).all(key, cel.bind(k, key, cel.bind(v, c[key], p)))`.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env};

use super::functions::metering::{ELEMENT, KEYS};
use super::macros::{RESULT, bind, identifier};
use super::names::allowed_variable;

/// Prefix of the variable that holds the container; a number follows. Only [`KEYS`] and [`ELEMENT`] read it, and both
/// charge for their result.
pub(super) const CONTAINER: &str = "@container";

/// Parts of a loop that its macro decides.
struct Loop {
    start: Expr,
    condition: IdedExpr,
    step: IdedExpr,
    result: IdedExpr,
}

/// Function that builds a loop from the arguments that follow the two variables. The number of arguments was checked.
type Body = fn(&mut MacroExprHelper<'_>, Vec<IdedExpr>) -> Loop;

const MACROS: [(&str, usize, Body); 6] = [
    ("all", 3, all),
    ("exists", 3, exists),
    ("exists_one", 3, exists_one),
    ("existsOne", 3, exists_one),
    ("transformList", 3, transform_list),
    ("transformList", 4, transform_list),
];

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    for (name, arguments, body) in MACROS {
        env.add_macro(Macro::receiver(name, arguments, move |helper, target, args| {
            expand(helper, target, args, body)
        }))?;
    }
    Ok(())
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    body: Body,
) -> Result<Option<IdedExpr>, ParseError> {
    let Some((names, bodies)) = args.split_at_mut_checked(2) else { return Ok(None) };
    let [key, value] = names else { return Ok(None) };
    let Some(container) = target.take() else { return Ok(None) };
    let value_id = value.id;
    let key = identifier(helper, std::mem::take(key))?;
    let value = identifier(helper, std::mem::take(value))?;
    if key == value {
        return Err(helper.new_error(value_id, format!("Syntax error: duplicate variable name: {key}")));
    }
    for name in [&key, &value] {
        allowed_variable(name).map_err(|error| helper.new_error(value_id, error.to_string()))?;
    }
    // Names of their own, so that nothing within hides them.
    let (name, iter_var) = (format!("{CONTAINER}{value_id}"), format!("@key{value_id}"));
    let mut bound = Vec::with_capacity(bodies.len());
    for body in bodies {
        let element = [ident(helper, &name), ident(helper, &iter_var)];
        let element = call(helper, ELEMENT, element);
        let body = bind(helper, value.clone(), element, std::mem::take(body));
        let own_key = ident(helper, &iter_var);
        bound.push(bind(helper, key.clone(), own_key, body));
    }
    args.clear();
    let keys = [ident(helper, &name)];
    let iter_range = call(helper, KEYS, keys);
    let Loop { start, condition, step, result } = body(helper, bound);
    let over_keys = ComprehensionExpr {
        iter_range,
        iter_var,
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: helper.next_expr(start),
        loop_cond: condition,
        loop_step: step,
        result,
    };
    let over_keys = helper.next_expr(Expr::Comprehension(Box::new(over_keys)));
    Ok(Some(bind(helper, name, container, over_keys)))
}

fn all(helper: &mut MacroExprHelper<'_>, predicate: Vec<IdedExpr>) -> Loop {
    let so_far = [accumulator(helper)];
    let condition = call(helper, operators::NOT_STRICTLY_FALSE, so_far);
    let operands = std::iter::once(accumulator(helper)).chain(predicate);
    Loop {
        start: boolean(true),
        condition,
        step: call(helper, operators::LOGICAL_AND, operands),
        result: accumulator(helper),
    }
}

fn exists(helper: &mut MacroExprHelper<'_>, predicate: Vec<IdedExpr>) -> Loop {
    let so_far = [accumulator(helper)];
    let not_yet = [call(helper, operators::LOGICAL_NOT, so_far)];
    let condition = call(helper, operators::NOT_STRICTLY_FALSE, not_yet);
    let operands = std::iter::once(accumulator(helper)).chain(predicate);
    Loop {
        start: boolean(false),
        condition,
        step: call(helper, operators::LOGICAL_OR, operands),
        result: accumulator(helper),
    }
}

fn exists_one(helper: &mut MacroExprHelper<'_>, mut predicate: Vec<IdedExpr>) -> Loop {
    let more = [accumulator(helper), helper.next_expr(int(1))];
    predicate.push(call(helper, operators::ADD, more));
    predicate.push(accumulator(helper));
    let found = [accumulator(helper), helper.next_expr(int(1))];
    Loop {
        start: int(0),
        condition: helper.next_expr(boolean(true)),
        step: call(helper, operators::CONDITIONAL, predicate),
        result: call(helper, operators::EQUALS, found),
    }
}

/// Builds `transformList`. The first of two arguments is a filter.
fn transform_list(helper: &mut MacroExprHelper<'_>, mut arguments: Vec<IdedExpr>) -> Loop {
    let element = arguments.pop().unwrap_or_default();
    let longer = [accumulator(helper), helper.next_expr(Expr::List(ListExpr::new(vec![element])))];
    let mut step = call(helper, operators::ADD, longer);
    if let Some(filter) = arguments.pop() {
        let alternatives = [filter, step, accumulator(helper)];
        step = call(helper, operators::CONDITIONAL, alternatives);
    }
    Loop {
        start: Expr::List(ListExpr::default()),
        condition: helper.next_expr(boolean(true)),
        step,
        result: accumulator(helper),
    }
}

fn accumulator(helper: &mut MacroExprHelper<'_>) -> IdedExpr {
    ident(helper, RESULT)
}

fn ident(helper: &mut MacroExprHelper<'_>, name: &str) -> IdedExpr {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn call(helper: &mut MacroExprHelper<'_>, function: &str, args: impl IntoIterator<Item = IdedExpr>) -> IdedExpr {
    let args = args.into_iter().collect();
    helper.next_expr(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

fn boolean(value: bool) -> Expr {
    Expr::Literal(LiteralValue::Boolean(value.into()))
}

fn int(value: i64) -> Expr {
    Expr::Literal(LiteralValue::Int(value.into()))
}
