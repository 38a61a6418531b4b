//! What can be refused before an evaluation: unknown names, and types where they are known.
//!
//! Kubernetes has a type checker. Here types are inferred as far as it is simple; what is not inferred is left to the
//! evaluation.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr, operators,
};

use super::environment::DEVICE_VARIABLE;
use super::error::CompileError;
use super::functions::Parameter;
use super::names;
use super::types::{Part, Plain, Ty};

/// What a look at an expression tells.
pub(super) struct Findings {
    /// The type of the result.
    pub(super) result: Ty,
    /// Whether `device.driver` is all that is read of the device.
    pub(super) only_driver: bool,
}

pub(super) fn check(expression: &IdedExpr) -> Result<Findings, CompileError> {
    let mut checker = Checker { variables: Vec::new(), types: Vec::new(), only_driver: true };
    let result = checker.infer(expression)?;
    Ok(Findings { result, only_driver: checker.only_driver })
}

struct Checker {
    /// The variables of loops and of `cel.bind` in scope, the innermost last.
    variables: Vec<String>,
    /// Their types.
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
        let only_driver = self.only_driver;
        let operand = self.infer(&select.operand)?;
        if operand == Ty::Device && select.field == "driver" && matches!(select.operand.expr, Expr::Ident(_)) {
            self.only_driver = only_driver;
        }
        let field = field_type(operand, &select.field)?;
        Ok(if select.test { Ty::BOOL } else { field })
    }

    fn list(&mut self, list: &ListExpr) -> Result<Ty, CompileError> {
        let mut common = Plain::Unknown;
        for (position, element) in list.elements.iter().enumerate() {
            let element = self.infer(element)?;
            if !list.optional_indices.contains(&position) {
                common = same(common, element)?;
            }
        }
        Ok(Ty::ListOf(common))
    }

    fn map(&mut self, map: &MapExpr) -> Result<Ty, CompileError> {
        let (mut keys, mut values) = (Plain::Unknown, Plain::Unknown);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(undeclared("")) };
            keys = same(keys, self.infer(&entry.key)?)?;
            let value = self.infer(&entry.value)?;
            if !entry.optional {
                values = same(values, value)?;
            }
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
            Ty::One(_) | Ty::Device => return Err(CompileError::NotIterable { actual: range.to_string() }),
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
        let qualified = names::qualified(call, &self.variables);
        let target = call.target.as_deref().filter(|_| qualified.is_none());
        let name = qualified.as_deref().unwrap_or(&call.func_name);
        let member = target.is_some();
        let mut types = Vec::with_capacity(call.args.len() + 1);
        for operand in target.into_iter().chain(&call.args) {
            types.push(self.infer(operand)?);
        }
        if names::is_own(name, member) {
            return own_result(name, member, &types);
        }
        let standard = if member { names::standard_member(name) } else { names::standard_global(name) };
        match standard {
            Some(result) => standard_result(name, &types, result),
            None if member => Err(undeclared(name)),
            None => operator_result(call, &types),
        }
    }
}

fn undeclared(name: &str) -> CompileError {
    CompileError::UndeclaredReference { name: name.to_owned() }
}

fn no_overload(function: &str, types: &[Ty]) -> CompileError {
    let arguments = types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    CompileError::NoMatchingOverload { function: function.to_owned(), arguments }
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

/// The type that a literal's elements have in common.
fn same(common: Plain, element: Ty) -> Result<Plain, CompileError> {
    match (common, element.plain()) {
        (Plain::Unknown, element) => Ok(element),
        (common, element) if element == common || element == Plain::Unknown => Ok(common),
        (common, _) => Err(CompileError::MixedList { expected: common.to_string(), found: element.to_string() }),
    }
}

fn field_type(operand: Ty, field: &str) -> Result<Ty, CompileError> {
    match operand {
        Ty::Device => match field {
            "driver" => Ok(Ty::STRING),
            "allowMultipleAllocations" => Ok(Ty::BOOL),
            "attributes" => Ok(Ty::Domains(Part::Attributes)),
            "capacity" => Ok(Ty::Domains(Part::Capacity)),
            _ => Err(CompileError::UndefinedField { field: field.to_owned() }),
        },
        other => element_type(other).ok_or_else(|| no_overload("_._", &[operand, Ty::STRING])),
    }
}

/// What a map or a list holds.
const fn element_type(container: Ty) -> Option<Ty> {
    Some(match container {
        Ty::Domains(part) => Ty::Domain(part),
        Ty::Domain(Part::Attributes) | Ty::One(Plain::Dyn) => Ty::One(Plain::Dyn),
        Ty::Domain(Part::Capacity) => Ty::One(Plain::Quantity),
        Ty::One(Plain::Unknown | Plain::Map | Plain::List) => Ty::UNKNOWN,
        Ty::ListOf(_) | Ty::One(_) | Ty::Device => return None,
    })
}

fn accepts(parameter: Parameter, argument: Ty) -> bool {
    let plain = match parameter {
        Parameter::Any => return true,
        Parameter::Bool => Plain::Bool,
        Parameter::Int => Plain::Int,
        Parameter::String => Plain::String,
        Parameter::List => Plain::List,
        Parameter::Quantity => Plain::Quantity,
        Parameter::Version => Plain::Semver,
        // Only the rewriting passes one.
        Parameter::Pattern => return false,
    };
    argument.is_open() || argument.plain() == plain
}

fn own_result(name: &str, member: bool, types: &[Ty]) -> Result<Ty, CompileError> {
    let fits = |parameters: &[Parameter]| {
        parameters.len() == types.len() && parameters.iter().zip(types).all(|(parameter, ty)| accepts(*parameter, *ty))
    };
    let mut results = names::overloads(name, member).filter(|function| fits(function.parameters)).map(|f| f.result);
    let first = results.next().ok_or_else(|| no_overload(name, types))?;
    Ok(if results.all(|result| result == first) { first } else { Ty::UNKNOWN })
}

fn standard_result(name: &str, types: &[Ty], result: Ty) -> Result<Ty, CompileError> {
    let arguments = match name {
        "optional.none" => 0,
        "contains" | "startsWith" | "endsWith" | "or" | "orValue" => 2,
        _ => 1,
    };
    let is_text = |ty: &Ty| ty.is_open() || ty.plain() == Plain::String;
    let sized = |ty: &Ty| ty.is_open() || matches!(ty.plain(), Plain::String | Plain::Bytes | Plain::List | Plain::Map);
    let fits = match name {
        "contains" | "startsWith" | "endsWith" => types.iter().all(is_text),
        "size" => types.iter().all(sized) && !types.contains(&Ty::Device),
        _ => true,
    };
    if types.len() == arguments && fits { Ok(result) } else { Err(no_overload(name, types)) }
}

fn is_number(plain: Plain) -> bool {
    matches!(plain, Plain::Int | Plain::Uint | Plain::Double)
}

fn operator_result(call: &CallExpr, types: &[Ty]) -> Result<Ty, CompileError> {
    let refused = || no_overload(&call.func_name, types);
    let all = |fits: fn(Plain) -> bool| types.iter().all(|ty| ty.is_open() || fits(ty.plain()));
    match (call.func_name.as_str(), types) {
        (operators::CONDITIONAL, [condition, first, second]) => {
            if !condition.is_open() && *condition != Ty::BOOL {
                return Err(refused());
            }
            Ok(match (first, second) {
                (first, second) if first == second => *first,
                (Ty::ListOf(element), Ty::ListOf(Plain::Unknown)) => Ty::ListOf(*element),
                (first, second) if first.is_open() || second.is_open() => Ty::UNKNOWN,
                (first, second) if first.plain() == second.plain() => Ty::UNKNOWN,
                _ => return Err(refused()),
            })
        }
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, _])
        | (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [_]) => {
            if all(|plain| plain == Plain::Bool) {
                Ok(Ty::BOOL)
            } else {
                Err(refused())
            }
        }
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
            let numbers = is_number(left.plain()) && is_number(right.plain());
            let comparable = left.is_open() || right.is_open() || left.plain() == right.plain() || numbers;
            if comparable { Ok(Ty::BOOL) } else { Err(refused()) }
        }
        (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [left, right]) => {
            let ordered = all(|plain| is_number(plain) || matches!(plain, Plain::Bool | Plain::String | Plain::Bytes));
            let numbers = is_number(left.plain()) && is_number(right.plain());
            let alike = left.is_open() || right.is_open() || left.plain() == right.plain() || numbers;
            if ordered && alike { Ok(Ty::BOOL) } else { Err(refused()) }
        }
        (operators::IN, [_, container]) => {
            let container = container.is_open() || matches!(container.plain(), Plain::List | Plain::Map);
            if container && types.last() != Some(&Ty::Device) { Ok(Ty::BOOL) } else { Err(refused()) }
        }
        (operators::ADD, [left, right]) => sum_type(*left, *right).ok_or_else(refused),
        (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [left, right]) => {
            let alike = left.is_open() || right.is_open() || left.plain() == right.plain();
            if !all(is_number) || !alike {
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
        (operators::INDEX | operators::OPT_INDEX, [container, index]) => {
            let element = match container {
                Ty::ListOf(element) => Some(Ty::One(*element)),
                other => element_type(*other),
            };
            let by_name = matches!(container, Ty::Domains(_) | Ty::Domain(_));
            let fits = !by_name || index.is_open() || *index == Ty::STRING;
            let element = element.filter(|_| fits).ok_or_else(refused)?;
            Ok(if call.func_name == operators::INDEX { element } else { Ty::UNKNOWN })
        }
        (operators::OPT_SELECT, [operand, _]) => {
            if let Some(Expr::Literal(LiteralValue::String(field))) = call.args.get(1).map(|field| &field.expr) {
                field_type(*operand, field.inner())?;
            }
            Ok(Ty::UNKNOWN)
        }
        _ => Err(undeclared(&call.func_name)),
    }
}

fn sum_type(left: Ty, right: Ty) -> Option<Ty> {
    match (left, right) {
        (Ty::ListOf(Plain::Unknown), list @ Ty::ListOf(_)) | (list @ Ty::ListOf(_), Ty::ListOf(Plain::Unknown)) => {
            Some(list)
        }
        (Ty::ListOf(left), Ty::ListOf(right)) => Some(Ty::ListOf(if left == right { left } else { Plain::Unknown })),
        (left, right) if left.is_open() || right.is_open() => Some(Ty::UNKNOWN),
        (left, right) if left.plain() != right.plain() => None,
        (left, _) => {
            let addable = is_number(left.plain()) || matches!(left.plain(), Plain::String | Plain::Bytes | Plain::List);
            addable.then_some(left)
        }
    }
}
