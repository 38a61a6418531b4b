//! Rewriting of an expression so that its evaluation charges the budget.
//!
//! Every value is charged by its size when it is created or read from a variable of the author, and every loop
//! iteration by the number of its operations. Work on values is linear in their size; functions that do more charge
//! more. So the budget bounds an evaluation. The forms that the `cel` crate evaluates without copying, `map` and
//! `filter`, are kept.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::environment::{ABSOLUTE_DEVICE_VARIABLE, DEVICE_VARIABLE, FUEL_VARIABLE, PATTERN_VARIABLE};
use super::error::{CompileError, shortened};
use super::functions::conversions::REPLACED;
use super::functions::equality::{DIFFERENT, EQUAL};
use super::functions::metering::{ADD, IN_CONSTANTS, OPTIONAL_ELEMENT, RANGE, TICK, USE};
use super::functions::regex::{PatternValue, WITH_PATTERN};
use super::names;
use super::tree;
use super::two_variables::CONTAINER;

/// Largest size in bytes of a text literal that a loop reads without a charge.
const SMALL_LITERAL: usize = 64;

/// Cost of an iteration of a loop in units, besides the operations in it.
const COST_OF_ROUND: i64 = 5;

/// Rewrites a checked expression and returns its literal patterns, compiled.
pub(super) fn rewrite(expression: &mut IdedExpr) -> Result<Vec<PatternValue>, CompileError> {
    let mut rewriting = Rewriting { variables: Vec::new(), loops: 0, patterns: Vec::new() };
    rewriting.rewrite(expression)?;
    Ok(rewriting.patterns)
}

struct Rewriting {
    /// Variables of loops and of `cel.bind` in scope.
    variables: Vec<String>,
    loops: usize,
    patterns: Vec<PatternValue>,
}

impl Rewriting {
    fn rewrite(&mut self, expression: &mut IdedExpr) -> Result<(), CompileError> {
        let charge = match &mut expression.expr {
            Expr::Ident(name) => {
                if name.strip_prefix('.') == Some(DEVICE_VARIABLE) {
                    ABSOLUTE_DEVICE_VARIABLE.clone_into(name);
                }
                self.variables.contains(name) && !name.starts_with(CONTAINER)
            }
            Expr::Literal(literal) => self.loops > 0 && !is_small(literal),
            Expr::Select(select) => {
                self.rewrite(&mut select.operand)?;
                false
            }
            Expr::Call(call) => {
                self.rewrite_call(call)?;
                false
            }
            Expr::List(list) => {
                let constant = list.elements.iter().all(is_literal);
                list.elements.iter_mut().try_for_each(|element| self.rewrite(element))?;
                for (position, element) in list.elements.iter_mut().enumerate() {
                    if list.optional_indices.contains(&position) {
                        wrap_optional(element);
                    }
                }
                !list.elements.is_empty() && (self.loops > 0 || !constant)
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else { return Err(unsupported()) };
                    self.rewrite(&mut entry.key)?;
                    self.rewrite(&mut entry.value)?;
                    if entry.optional {
                        wrap_optional(&mut entry.value);
                    }
                }
                !map.entries.is_empty()
            }
            Expr::Comprehension(comprehension) => {
                self.rewrite_comprehension(comprehension)?;
                false
            }
            Expr::Struct(_) | Expr::Unspecified => return Err(unsupported()),
        };
        if charge {
            wrap(expression, USE);
        }
        Ok(())
    }

    fn rewrite_call(&mut self, call: &mut CallExpr) -> Result<(), CompileError> {
        if is_in_constants(call) {
            IN_CONSTANTS.clone_into(&mut call.func_name);
        }
        if let Some(target) = call.target.as_deref_mut() {
            self.rewrite(target)?;
        }
        let is_sum = is_sum(&call.func_name);
        for argument in &mut call.args {
            let nested = is_sum && matches!(&argument.expr, Expr::Call(inner) if self::is_sum(&inner.func_name));
            self.rewrite(argument)?;
            if let Expr::Call(inner) = &mut argument.expr
                && nested
            {
                ADD.clone_into(&mut inner.func_name);
                inner.args.insert(0, fuel());
            }
        }
        let (name, member) = (call.func_name.as_str(), call.target.is_some());
        if names::is_own(name, member) {
            if WITH_PATTERN.contains(&name) {
                self.compile_pattern(call, usize::from(!member))?;
            }
            call.args.push(fuel());
        } else if !member && let Some(replacement) = replacement(call) {
            replacement.clone_into(&mut call.func_name);
        }
        Ok(())
    }

    /// Replaces a literal pattern by a compiled one.
    fn compile_pattern(&mut self, call: &mut CallExpr, position: usize) -> Result<(), CompileError> {
        let Some(argument) = call.args.get_mut(position) else { return Ok(()) };
        let literal = match &argument.expr {
            Expr::Call(charged) if charged.func_name == USE => charged.args.get(1).map(|literal| &literal.expr),
            other => Some(other),
        };
        let Some(Expr::Literal(LiteralValue::String(pattern))) = literal else { return Ok(()) };
        let pattern = pattern.inner();
        let compiled = PatternValue::compile(pattern)
            .map_err(|reason| CompileError::InvalidPattern { pattern: shortened(pattern), reason })?;
        argument.expr = Expr::Ident(format!("{PATTERN_VARIABLE}{}", self.patterns.len()));
        self.patterns.push(compiled);
        Ok(())
    }

    fn rewrite_comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), CompileError> {
        let known = self.variables.len();
        self.rewrite(&mut comprehension.accu_init)?;
        if names::is_binding(comprehension) {
            if !is_literal(&comprehension.accu_init) && !is_charged(&comprehension.accu_init) {
                wrap(&mut comprehension.accu_init, USE);
            }
            self.variables.push(comprehension.accu_var.clone());
            self.rewrite(&mut comprehension.result)?;
        } else {
            self.rewrite(&mut comprehension.iter_range)?;
            wrap(&mut comprehension.iter_range, RANGE);
            self.variables.push(comprehension.iter_var.clone());
            self.loops += 1;
            let cost = tree::operations(&comprehension.loop_step).saturating_add(COST_OF_ROUND);
            // The accumulator is not in scope: only what the macro wrote reads it.
            if matches!(comprehension.loop_cond.expr, Expr::Literal(_)) {
                self.rewrite_appending(comprehension, cost)?;
            } else {
                self.rewrite(&mut comprehension.loop_step)?;
                tick_before(&mut comprehension.loop_cond, cost, literal_false());
            }
            self.loops -= 1;
        }
        self.variables.truncate(known);
        Ok(())
    }

    /// Rewrites the loop step of `map`, `filter` or `exists_one`: `accu + [element]` or `accu + 1`, with or without a
    /// condition around it.
    fn rewrite_appending(&mut self, comprehension: &mut ComprehensionExpr, cost: i64) -> Result<(), CompileError> {
        let step = &mut comprehension.loop_step;
        match &mut step.expr {
            Expr::Call(call) if call.func_name == operators::CONDITIONAL => {
                let [condition, appending, _] = call.args.as_mut_slice() else { return Err(unsupported()) };
                self.rewrite(condition)?;
                tick_before(condition, cost, literal_false());
                self.rewrite_appended(appending)
            }
            _ => {
                self.rewrite_appended(step)?;
                tick_before(step, cost, node(Expr::Ident(comprehension.accu_var.clone())));
                Ok(())
            }
        }
    }

    fn rewrite_appended(&mut self, sum: &mut IdedExpr) -> Result<(), CompileError> {
        let Expr::Call(CallExpr { args, .. }) = &mut sum.expr else { return Err(unsupported()) };
        match args.get_mut(1).map(|appended| &mut appended.expr) {
            Some(Expr::List(list)) => list.elements.iter_mut().try_for_each(|element| self.rewrite(element)),
            _ => Ok(()),
        }
    }
}

/// Builds the error for an expression that the parser never makes.
fn unsupported() -> CompileError {
    CompileError::Syntax { message: "Syntax error: unsupported expression".to_owned() }
}

/// Returns the function to call instead, if the `cel` crate evaluates the called function differently from cel-go.
fn replacement(call: &CallExpr) -> Option<&'static str> {
    match (call.func_name.as_str(), call.args.as_slice()) {
        // A literal on the left is equal or not; it never fails to compare.
        (operators::EQUALS | operators::NOT_EQUALS, [left, _]) if is_literal(left) => None,
        (operators::EQUALS, _) => Some(EQUAL),
        (operators::NOT_EQUALS, _) => Some(DIFFERENT),
        (name, _) => REPLACED.iter().find(|(replaced, _)| *replaced == name).map(|(_, replacement)| *replacement),
    }
}

fn is_sum(function: &str) -> bool {
    function == operators::ADD
}

fn is_literal(expression: &IdedExpr) -> bool {
    matches!(expression.expr, Expr::Literal(_))
}

/// Returns true if a call is `item in list` with a list of constants that cel-go turns into a set.
fn is_in_constants(call: &CallExpr) -> bool {
    let Some(Expr::List(list)) = call.args.get(1).map(|list| &list.expr) else { return false };
    let is_hashable = |element: &IdedExpr| match &element.expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Bytes(_)),
        _ => false,
    };
    call.func_name == operators::IN && !list.elements.is_empty() && list.elements.iter().all(is_hashable)
}

fn is_small(literal: &LiteralValue) -> bool {
    match literal {
        LiteralValue::String(text) => text.inner().len() <= SMALL_LITERAL,
        LiteralValue::Bytes(bytes) => bytes.inner().len() <= SMALL_LITERAL,
        _ => true,
    }
}

fn is_charged(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Call(call) if call.func_name == USE)
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn fuel() -> IdedExpr {
    node(Expr::Ident(FUEL_VARIABLE.to_owned()))
}

fn literal_false() -> IdedExpr {
    node(Expr::Literal(LiteralValue::Boolean(false.into())))
}

fn call(function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

fn wrap_optional(expression: &mut IdedExpr) {
    let inner = std::mem::take(expression);
    *expression = call(OPTIONAL_ELEMENT, vec![inner]);
}

/// Replaces an expression by `function(@fuel, expression)`.
fn wrap(expression: &mut IdedExpr, function: &str) {
    let inner = std::mem::take(expression);
    *expression = call(function, vec![fuel(), inner]);
}

/// Replaces an expression by `@tick(@fuel, cost) ? expression : otherwise`. The tick is never false; its error ends the
/// loop.
fn tick_before(expression: &mut IdedExpr, cost: i64, otherwise: IdedExpr) {
    let inner = std::mem::take(expression);
    let cost = node(Expr::Literal(LiteralValue::Int(cost.into())));
    *expression = call(operators::CONDITIONAL, vec![call(TICK, vec![fuel(), cost]), inner, otherwise]);
}
