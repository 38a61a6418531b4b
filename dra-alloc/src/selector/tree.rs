//! Size and shape of an expression.

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr};

use super::environment::DEVICE_VARIABLE;

/// Returns true if an expression is the variable `device`.
pub(super) fn is_device(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == DEVICE_VARIABLE)
}

/// Returns the number of levels of an expression. The checked length of chains in the text bounds this recursion.
pub(super) fn depth(expression: &IdedExpr) -> usize {
    1 + children(expression).into_iter().map(depth).max().unwrap_or(0)
}

/// Returns the number of nodes of an expression.
pub(super) fn nodes(expression: &IdedExpr) -> usize {
    children(expression).into_iter().map(nodes).fold(1, usize::saturating_add)
}

/// Returns the number of operations in an expression, without those inside its loops.
pub(super) fn operations(expression: &IdedExpr) -> i64 {
    let children: Vec<&IdedExpr> = match &expression.expr {
        Expr::Comprehension(inner) => vec![&inner.iter_range, &inner.accu_init, &inner.result],
        _ => children(expression),
    };
    children.into_iter().map(operations).fold(1, i64::saturating_add)
}

pub(super) fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(parts).collect(),
        Expr::Struct(literal) => literal.entries.iter().flat_map(parts).collect(),
        Expr::Comprehension(inner) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = inner.as_ref();
            vec![iter_range, accu_init, loop_cond, loop_step, result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn parts(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

pub(super) fn children_mut(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut expression.expr {
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map.entries.iter_mut().flat_map(parts_mut).collect(),
        Expr::Struct(literal) => literal.entries.iter_mut().flat_map(parts_mut).collect(),
        Expr::Comprehension(inner) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = inner.as_mut();
            vec![iter_range, accu_init, loop_cond, loop_step, result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn parts_mut(entry: &mut IdedEntryExpr) -> Vec<&mut IdedExpr> {
    match &mut entry.expr {
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
        EntryExpr::StructField(field) => vec![&mut field.value],
    }
}
