//! Checks of an expression before its evaluation: unknown names, and types where they can be inferred.
//!
//! Kubernetes has a type checker. Here types are inferred as far as it is simple; what is not inferred is left to the
//! evaluation.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};

use super::environment::DEVICE_VARIABLE;
use super::error::CompileError;
use super::names;
use super::overload::{self, undeclared};
use super::types::{Plain, Ty};

/// Result of checking the names and types of an expression.
pub(super) struct Findings {
    /// Inferred type of the result.
    pub(super) result: Ty,
    /// True if the expression reads only `device.driver` of the device.
    pub(super) only_driver: bool,
}

pub(super) fn check(expression: &IdedExpr) -> Result<Findings, CompileError> {
    let mut checker = Checker { variables: Vec::new(), types: Vec::new(), only_driver: true };
    let result = checker.infer(expression)?;
    Ok(Findings { result, only_driver: checker.only_driver })
}

struct Checker {
    /// Variables of loops and of `cel.bind` in scope, the innermost last.
    variables: Vec<String>,
    /// Types of the variables in `variables`, in the same order.
    types: Vec<Ty>,
    only_driver: bool,
}

impl Checker {
    fn infer(&mut self, expression: &IdedExpr) -> Result<Ty, CompileError> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(Ty::One(literal_type(literal))),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(literal) => Err(undeclared(&literal.type_name)),
            Expr::Unspecified => Err(undeclared("")),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Ty, CompileError> {
        if let Some(position) = self.variables.iter().rposition(|variable| variable == name) {
            return Ok(self.types.get(position).copied().unwrap_or(Ty::UNKNOWN));
        }
        match name.strip_prefix('.').unwrap_or(name) {
            DEVICE_VARIABLE => {
                self.only_driver = false;
                Ok(Ty::Device)
            }
            name if names::is_type(name) => Ok(Ty::One(Plain::Type)),
            _ => Err(undeclared(name)),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Ty, CompileError> {
        if let Expr::Ident(namespace) = &select.operand.expr
            && names::is_qualified_type(namespace, &select.field)
            && !self.variables.contains(namespace)
        {
            return Ok(Ty::One(Plain::Type));
        }
        let only_driver = self.only_driver;
        let operand = self.infer(&select.operand)?;
        if operand == Ty::Device && select.field == "driver" && matches!(select.operand.expr, Expr::Ident(_)) {
            self.only_driver = only_driver;
        }
        let field = overload::field_type(operand, &select.field)?;
        Ok(if select.test { Ty::BOOL } else { field })
    }

    fn list(&mut self, list: &ListExpr) -> Result<Ty, CompileError> {
        let mut common = Plain::Unknown;
        for (position, element) in list.elements.iter().enumerate() {
            let element = self.infer(element)?;
            let optional = list.optional_indices.contains(&position);
            common = same(common, if optional { content(element)? } else { element })?;
        }
        Ok(Ty::ListOf(common))
    }

    fn map(&mut self, map: &MapExpr) -> Result<Ty, CompileError> {
        let (mut keys, mut values) = (Plain::Unknown, Plain::Unknown);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(undeclared("")) };
            keys = same(keys, self.infer(&entry.key)?)?;
            let value = self.infer(&entry.value)?;
            values = same(values, if entry.optional { content(value)? } else { value })?;
        }
        Ok(Ty::One(Plain::Map))
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Result<Ty, CompileError> {
        let known = self.variables.len();
        let range = self.infer(&comprehension.iter_range)?;
        let start = self.infer(&comprehension.accu_init)?;
        let element = match range {
            Ty::ListOf(element) => Ty::One(element),
            Ty::Domains(_) | Ty::Domain(_) => Ty::STRING,
            Ty::One(Plain::Unknown | Plain::Dyn | Plain::Map | Plain::List) => Ty::UNKNOWN,
            Ty::One(_) | Ty::OptionalOf(_) | Ty::Device => {
                return Err(CompileError::NotIterable { actual: range.to_string() });
            }
        };
        self.bind(&comprehension.iter_var, element);
        self.bind(&comprehension.accu_var, start);
        let step = self.infer(&comprehension.loop_step)?;
        self.infer(&comprehension.loop_cond)?;
        let result = self.infer(&comprehension.result)?;
        self.variables.truncate(known);
        self.types.truncate(known);
        let appends = result == Ty::ListOf(Plain::Unknown) && matches!(step, Ty::ListOf(_));
        Ok(if appends && !names::is_binding(comprehension) { step } else { result })
    }

    fn bind(&mut self, name: &str, ty: Ty) {
        self.variables.push(name.to_owned());
        self.types.push(ty);
    }

    fn call(&mut self, call: &CallExpr) -> Result<Ty, CompileError> {
        let target = call.target.as_deref();
        let mut types = Vec::with_capacity(call.args.len() + 1);
        for operand in target.into_iter().chain(&call.args) {
            types.push(self.infer(operand)?);
        }
        overload::call_type(call, &types)
    }
}

const fn literal_type(literal: &LiteralValue) -> Plain {
    match literal {
        LiteralValue::Boolean(_) => Plain::Bool,
        LiteralValue::Bytes(_) => Plain::Bytes,
        LiteralValue::Double(_) => Plain::Double,
        LiteralValue::Int(_) => Plain::Int,
        LiteralValue::Null => Plain::Null,
        LiteralValue::String(_) => Plain::String,
        LiteralValue::UInt(_) => Plain::Uint,
    }
}

/// Returns the type that an optional element `?value` adds to a literal.
fn content(value: Ty) -> Result<Ty, CompileError> {
    let content = if value.is_open() { Some(Ty::UNKNOWN) } else { value.content() };
    content.ok_or_else(|| CompileError::MixedList {
        expected: Ty::OptionalOf(value.plain()).to_string(),
        found: value.to_string(),
    })
}

/// Returns the common type of a list or map literal, from that of its earlier elements and that of the next element.
fn same(common: Plain, element: Ty) -> Result<Plain, CompileError> {
    let element = element.plain();
    let dynamic = common == Plain::Dyn || element == Plain::Dyn;
    match (common, element) {
        (Plain::Unknown, element) => Ok(element),
        (common, element) if element == common || element == Plain::Unknown => Ok(common),
        (common, element) if !dynamic && Ty::One(common).agrees_with(Ty::One(element)) => Ok(common),
        (common, element) => Err(CompileError::MixedList { expected: common.to_string(), found: element.to_string() }),
    }
}
