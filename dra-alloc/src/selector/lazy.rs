//! Rewriting for lazy evaluation. The `cel` crate evaluates the value of `cel.bind` and the alternatives of `orValue`
//! and `or` in any case, cel-go only if they are needed.
//!
//! An error in a value counts only where its variable is used, and `&&` and `||` absorb it there. A value that can't
//! fail, or whose variable is used in any case, may be evaluated first. Any other value replaces its variable, unless
//! it is a loop within another loop, or the expression would grow too large.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, SelectExpr, operators};

use super::environment::DEVICE_VARIABLE;
use super::macros::binding;
use super::names;
use super::tree::{self, is_device};

/// Largest number of nodes that values may add to an expression by replacing variables.
const MOST_NODES: usize = 20_000;

/// Name of the variable that holds the optional value in a rewritten `orValue` or `or`.
const OPTIONAL: &str = "@optional";

/// Rewrites a checked expression so that its evaluation is lazy.
pub(super) fn rewrite(expression: &mut IdedExpr) {
    Rewriting { room: MOST_NODES, hides_device: binds_device(expression) }.rewrite(expression);
}

/// Returns true if a loop or binding has a variable named `device`.
fn binds_device(expression: &IdedExpr) -> bool {
    let own = matches!(&expression.expr, Expr::Comprehension(inner)
        if [&inner.iter_var, &inner.accu_var].into_iter().any(|name| name == DEVICE_VARIABLE));
    own || tree::children(expression).into_iter().any(binds_device)
}

struct Rewriting {
    /// True if a variable may hide `device`; then the name is never taken for the device.
    hides_device: bool,
    /// Number of nodes that replacing variables may still add to the expression.
    room: usize,
}

impl Rewriting {
    fn rewrite(&mut self, expression: &mut IdedExpr) {
        while let Some(unfolded) = self.unfolded(expression) {
            *expression = unfolded;
        }
        if is_in_nothing(expression) {
            expression.expr = Expr::Literal(LiteralValue::Boolean(false.into()));
        }
        for child in tree::children_mut(expression) {
            self.rewrite(child);
        }
        if let Expr::Call(call) = &mut expression.expr
            && let Some(lazy) = self.lazy_alternative(call)
        {
            expression.expr = lazy;
        }
    }

    /// Returns the body of a `cel.bind` with its variable replaced by the value, if evaluating the value first could
    /// fail where the body does not.
    fn unfolded(&mut self, expression: &IdedExpr) -> Option<IdedExpr> {
        let Expr::Comprehension(binding) = &expression.expr else { return None };
        let ComprehensionExpr { accu_var, accu_init, result, .. } = binding.as_ref();
        let is_repeated = has_loop(accu_init) && loops(result, accu_var);
        if !names::is_binding(binding) || !self.can_fail(accu_init) || needs(result, accu_var) || is_repeated {
            return None;
        }
        let added = uses(result, accu_var).saturating_mul(tree::nodes(accu_init));
        self.room = self.room.checked_sub(added)?;
        let mut body = result.clone();
        Replacement { variable: accu_var, value: accu_init }.apply(&mut body).then_some(body)
    }

    fn can_fail(&self, expression: &IdedExpr) -> bool {
        can_fail(expression) || (self.hides_device && !matches!(expression.expr, Expr::Literal(_) | Expr::Ident(_)))
    }

    /// Rewrites `target.orValue(alternative)` to `cel.bind(o, target, o.hasValue() ? o.value() : alternative)`, if the
    /// alternative may fail.
    fn lazy_alternative(&self, call: &mut CallExpr) -> Option<Expr> {
        let is_value = call.func_name == "orValue";
        let [alternative] = call.args.as_mut_slice() else { return None };
        let target = call.target.as_deref_mut().filter(|_| is_value || call.func_name == "or")?;
        if !self.can_fail(alternative) {
            return None;
        }
        let (target, alternative) = (std::mem::take(target), std::mem::take(alternative));
        let mut node = |expr| IdedExpr { id: 0, expr };
        let optional = || node(Expr::Ident(OPTIONAL.to_owned()));
        let ask = |name: &str| {
            node(Expr::Call(CallExpr {
                func_name: name.to_owned(),
                target: Some(Box::new(optional())),
                args: Vec::new(),
            }))
        };
        // Of what is no optional value, `hasValue` fails as `orValue` does.
        let found = if is_value { ask("value") } else { optional() };
        let func_name = operators::CONDITIONAL.to_owned();
        let result = CallExpr { func_name, target: None, args: vec![ask("hasValue"), found, alternative] };
        Some(binding(OPTIONAL.to_owned(), target, node(Expr::Call(result)), &mut node))
    }
}

/// Returns true for `item in []`, which is false for every item.
fn is_in_nothing(expression: &IdedExpr) -> bool {
    let Expr::Call(call) = &expression.expr else { return false };
    let is_empty = |list: &IdedExpr| matches!(&list.expr, Expr::List(list) if list.elements.is_empty());
    call.func_name == operators::IN && call.args.get(1).is_some_and(is_empty)
}

fn has_loop(expression: &IdedExpr) -> bool {
    let is_loop = matches!(&expression.expr, Expr::Comprehension(inner) if !names::is_binding(inner));
    is_loop || tree::children(expression).into_iter().any(has_loop)
}

/// Returns true if an expression has a loop that reads a variable in every iteration.
fn loops(expression: &IdedExpr, variable: &str) -> bool {
    let own = match &expression.expr {
        Expr::Comprehension(inner) if !names::is_binding(inner) => {
            [&inner.loop_cond, &inner.loop_step].into_iter().any(|part| reads(part, variable))
        }
        _ => false,
    };
    own || tree::children(expression).into_iter().any(|child| loops(child, variable))
}

/// Returns the number of occurrences of a name in an expression.
fn uses(expression: &IdedExpr, name: &str) -> usize {
    let own = matches!(&expression.expr, Expr::Ident(ident) if ident == name);
    tree::children(expression).into_iter().map(|child| uses(child, name)).fold(usize::from(own), usize::saturating_add)
}

/// Replacement of a variable by a value.
struct Replacement<'e> {
    variable: &'e str,
    value: &'e IdedExpr,
}

impl Replacement<'_> {
    /// Replaces the variable and returns true; false if a loop or binding hides a name that the value reads.
    fn apply(&self, expression: &mut IdedExpr) -> bool {
        match &mut expression.expr {
            Expr::Ident(name) if name == self.variable => {
                *expression = self.value.clone();
                true
            }
            Expr::Comprehension(inner) => {
                let bound = [inner.iter_var.clone(), inner.accu_var.clone()];
                if !self.apply(&mut inner.iter_range) || !self.apply(&mut inner.accu_init) {
                    return false;
                }
                let mut scope = [&mut inner.loop_cond, &mut inner.loop_step, &mut inner.result];
                if bound.iter().any(|name| name == self.variable)
                    || !scope.iter().any(|part| reads(part, self.variable))
                {
                    return true;
                }
                let hidden = bound.iter().any(|name| reads(self.value, name));
                !hidden && scope.iter_mut().all(|part| self.apply(part))
            }
            _ => tree::children_mut(expression).into_iter().all(|child| self.apply(child)),
        }
    }
}

/// Returns true if an expression reads a variable that is defined outside of it.
fn reads(expression: &IdedExpr, variable: &str) -> bool {
    match &expression.expr {
        Expr::Ident(name) => name == variable,
        Expr::Comprehension(inner) => {
            let hidden = inner.iter_var == variable || inner.accu_var == variable;
            let scope = [&inner.loop_cond, &inner.loop_step, &inner.result];
            let outside = [&inner.iter_range, &inner.accu_init];
            outside.into_iter().any(|part| reads(part, variable))
                || (!hidden && scope.into_iter().any(|part| reads(part, variable)))
        }
        _ => tree::children(expression).into_iter().any(|child| reads(child, variable)),
    }
}

/// Returns true if an expression fails whenever evaluating `variable` fails.
fn needs(expression: &IdedExpr, variable: &str) -> bool {
    let child_needs = || tree::children(expression).into_iter().any(|child| needs(child, variable));
    match &expression.expr {
        Expr::Ident(name) => name == variable,
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
                needs(left, variable) && needs(right, variable)
            }
            (operators::CONDITIONAL, [condition, first, second]) => {
                needs(condition, variable) || (needs(first, variable) && needs(second, variable))
            }
            (operators::NOT_STRICTLY_FALSE, _) => false,
            ("or" | "orValue", _) => call.target.as_deref().is_some_and(|target| needs(target, variable)),
            _ => child_needs(),
        },
        Expr::Comprehension(inner) if names::is_binding(inner) => {
            (needs(&inner.accu_init, variable) && needs(&inner.result, &inner.accu_var))
                || (inner.accu_var != variable && needs(&inner.result, variable))
        }
        Expr::Comprehension(inner) => needs(&inner.iter_range, variable) || needs(&inner.accu_init, variable),
        _ => child_needs(),
    }
}

/// Returns true if a compiled expression may fail for some device. Some expressions that can't fail are included.
fn can_fail(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(_) | Expr::Ident(_) => false,
        Expr::List(ListExpr { elements, optional_indices }) => {
            !optional_indices.is_empty() || elements.iter().any(can_fail)
        }
        Expr::Select(SelectExpr { operand, test: true, .. }) => !is_map(operand),
        Expr::Select(select) => !is_device(&select.operand) && !is_map(expression),
        Expr::Call(CallExpr { func_name, target, args }) => {
            match (func_name.as_str(), target.as_deref(), args.as_slice()) {
                (operators::INDEX, None, _) => !is_map(expression),
                (operators::OPT_SELECT | operators::OPT_INDEX, None, [container, _]) => !is_map(container),
                ("orValue", Some(target), [alternative]) => can_fail(target) || can_fail(alternative),
                ("hasValue", Some(target), []) => can_fail(target),
                _ => true,
            }
        }
        _ => true,
    }
}

/// Returns true for the maps of a device: `device.attributes`, `device.capacity`, and `device.attributes['domain']` and
/// the like.
fn is_map(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Select(select) if !select.test => {
            let is_part = is_device(&select.operand) && matches!(select.field.as_str(), "attributes" | "capacity");
            is_part || is_part_of_device(&select.operand)
        }
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == operators::INDEX => {
            match args.as_slice() {
                [container, IdedExpr { expr: Expr::Literal(LiteralValue::String(_)), .. }] => {
                    is_part_of_device(container)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns true for `device.attributes` or `device.capacity`.
fn is_part_of_device(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Select(select) if is_device(&select.operand)) && is_map(expression)
}
