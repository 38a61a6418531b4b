//! Finds the direct form of an expression that was parsed and checked, and not yet rewritten.

use std::cmp::Ordering;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use super::{Direct, Key, Literal, Relation, Source, TextTest};
use crate::selector::environment::DEVICE_VARIABLE;
use crate::selector::functions::regex::PatternValue;
use crate::selector::names;
use crate::selector::tree::is_device;
use crate::selector::types::Part;

/// Returns the direct form of an expression; `None` if any part of the expression has none.
pub(in crate::selector) fn recognize(expression: &IdedExpr) -> Option<Direct> {
    Recognizer { bound: Vec::new() }.direct(expression)
}

/// Attributes or capacities of one domain: `device.attributes['domain']` or `device.capacity['domain']`
#[derive(Clone, Copy)]
struct Domain<'e> {
    part: Part,
    name: &'e str,
}

struct Recognizer<'e> {
    /// Names bound by `cel.bind` with their values, the innermost last.
    bound: Vec<(&'e str, Domain<'e>)>,
}

impl<'e> Recognizer<'e> {
    fn direct(&mut self, expression: &'e IdedExpr) -> Option<Direct> {
        match &expression.expr {
            Expr::Literal(LiteralValue::Boolean(value)) => Some(Direct::Constant(*value.inner())),
            Expr::Select(select) if select.test => {
                let Domain { part, name } = self.domain(&select.operand)?;
                Some(Direct::Present { part, key: Key::new(name, &select.field) })
            }
            Expr::Select(_) => self.source(expression).map(Direct::Truth),
            Expr::Call(call) => self.call(expression, call),
            Expr::Comprehension(comprehension) => self.binding(comprehension),
            _ => None,
        }
    }

    fn call(&mut self, expression: &'e IdedExpr, call: &'e CallExpr) -> Option<Direct> {
        let name = call.func_name.as_str();
        match (name, call.target.as_deref(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, None, [operand]) => Some(Direct::Not(Box::new(self.direct(operand)?))),
            (operators::LOGICAL_AND, None, [left, right]) => {
                Some(Direct::And(Box::new(self.direct(left)?), Box::new(self.direct(right)?)))
            }
            (operators::LOGICAL_OR, None, [left, right]) => {
                Some(Direct::Or(Box::new(self.direct(left)?), Box::new(self.direct(right)?)))
            }
            (operators::IN, None, [item, container]) => self.containment(item, container),
            (operators::INDEX, None, _) | ("orValue", Some(_), _) => self.source(expression).map(Direct::Truth),
            (_, None, [left, right]) => self.comparison(name, left, right),
            (_, Some(target), [argument]) => self.member(name, target, argument),
            _ => None,
        }
    }

    /// Recognizes a comparison of a scalar with a literal, on either side: `left == right`, `left != right` and the
    /// like.
    fn comparison(&self, operator: &str, left: &'e IdedExpr, right: &'e IdedExpr) -> Option<Direct> {
        if let Some(literal) = literal(right) {
            return self.compared(left, relation(operator)?, literal);
        }
        if let Some(literal) = literal(left) {
            return self.compared(right, mirrored(operator)?, literal);
        }
        let is_equality = matches!(operator, operators::EQUALS | operators::NOT_EQUALS);
        is_equality.then(|| self.ordered(left, right, relation(operator)?, 0)).flatten()
    }

    fn compared(&self, expression: &'e IdedExpr, relation: Relation, literal: Literal) -> Option<Direct> {
        match (&expression.expr, &literal) {
            (Expr::Call(call), Literal::Int(to)) if call.func_name == "compareTo" => {
                let [bound] = call.args.as_slice() else { return None };
                self.ordered(call.target.as_deref()?, bound, relation, *to)
            }
            _ => Some(Direct::Compare { source: self.source(expression)?, relation, literal }),
        }
    }

    /// Recognizes a comparison such as `value.compareTo(bound) >= 0`: `relation` is the operator, `to` the number.
    fn ordered(&self, value: &'e IdedExpr, bound: &'e IdedExpr, relation: Relation, to: i64) -> Option<Direct> {
        let (part, key) = self.key(value)?;
        let Expr::Call(CallExpr { func_name, target: None, args }) = &bound.expr else { return None };
        let [text] = args.as_slice() else { return None };
        let text = text_of(text)?;
        match (part, func_name.as_str()) {
            (Part::Attributes, "semver") => Some(Direct::Version { key, bound: text.parse().ok()?, relation, to }),
            (Part::Capacity, "quantity") => Some(Direct::Capacity { key, bound: text.parse().ok()?, relation, to }),
            _ => None,
        }
    }

    fn member(&self, name: &str, target: &'e IdedExpr, argument: &'e IdedExpr) -> Option<Direct> {
        let test = match name {
            "isGreaterThan" => return self.ordered(target, argument, Relation(Ordering::is_gt), 0),
            "isLessThan" => return self.ordered(target, argument, Relation(Ordering::is_lt), 0),
            "includes" => {
                let literal = literal(argument)?;
                return Some(Direct::Includes { key: self.attribute(target)?, literal });
            }
            "startsWith" => TextTest::StartsWith(text_of(argument)?.to_owned()),
            "endsWith" => TextTest::EndsWith(text_of(argument)?.to_owned()),
            "contains" => TextTest::Contains(text_of(argument)?.to_owned()),
            "matches" => TextTest::Matches(PatternValue::compile(text_of(argument)?).ok()?),
            _ => return None,
        };
        Some(Direct::Text { source: self.source(target)?, test })
    }

    /// Recognizes `item in container`, with a list of literals, an attribute or a map as the container.
    fn containment(&self, item: &'e IdedExpr, container: &'e IdedExpr) -> Option<Direct> {
        if let Expr::List(list) = &container.expr {
            let is_plain = list.optional_indices.is_empty();
            let literals = is_plain.then(|| list.elements.iter().map(literal).collect::<Option<_>>()).flatten()?;
            return Some(Direct::OneOf { source: self.source(item)?, literals });
        }
        let literal = literal(item)?;
        if let Some(key) = self.attribute(container) {
            return Some(Direct::Member { key, literal });
        }
        let Literal::Text(text) = literal else { return None };
        if let Some(Domain { part, name }) = self.domain(container) {
            return Some(Direct::Present { part, key: Key::new(name, &text) });
        }
        Some(Direct::DomainPresent { part: part(container)?, domain: text })
    }

    /// Recognizes `cel.bind(name, device.attributes['domain'], body)`.
    fn binding(&mut self, comprehension: &'e ComprehensionExpr) -> Option<Direct> {
        let ComprehensionExpr { accu_var, accu_init, result, .. } = comprehension;
        if !names::is_binding(comprehension) || accu_var == DEVICE_VARIABLE {
            return None;
        }
        let domain = self.domain(accu_init)?;
        self.bound.push((accu_var, domain));
        let body = self.direct(result);
        self.bound.pop();
        body
    }

    fn source(&self, expression: &'e IdedExpr) -> Option<Source> {
        if let Some(key) = self.attribute(expression) {
            return Some(Source::Attribute(key));
        }
        match &expression.expr {
            Expr::Select(select) if is_device(&select.operand) && !select.test => match select.field.as_str() {
                "driver" => Some(Source::Driver),
                "allowMultipleAllocations" => Some(Source::AllowMultipleAllocations),
                _ => None,
            },
            Expr::Call(call) if call.func_name == "orValue" => {
                let [otherwise] = call.args.as_slice() else { return None };
                let Expr::Call(optional) = &call.target.as_deref()?.expr else { return None };
                let (operators::OPT_SELECT | operators::OPT_INDEX, [container, id]) =
                    (optional.func_name.as_str(), optional.args.as_slice())
                else {
                    return None;
                };
                let Domain { part: Part::Attributes, name } = self.domain(container)? else { return None };
                Some(Source::AttributeOr(Key::new(name, text_of(id)?), literal(otherwise)?))
            }
            _ => None,
        }
    }

    fn attribute(&self, expression: &'e IdedExpr) -> Option<Key> {
        match self.key(expression)? {
            (Part::Attributes, key) => Some(key),
            (Part::Capacity, _) => None,
        }
    }

    /// Recognizes an attribute or capacity by its full name: `device.attributes['domain'].id`.
    fn key(&self, expression: &'e IdedExpr) -> Option<(Part, Key)> {
        let (container, id) = element(expression)?;
        let Domain { part, name } = self.domain(container)?;
        Some((part, Key::new(name, id)))
    }

    /// Recognizes `device.attributes['domain']`, or a name that `cel.bind` gave to it.
    fn domain(&self, expression: &'e IdedExpr) -> Option<Domain<'e>> {
        if let Expr::Ident(variable) = &expression.expr {
            return self.bound.iter().rfind(|(name, _)| name == variable).map(|(_, domain)| *domain);
        }
        let (container, name) = element(expression)?;
        Some(Domain { part: part(container)?, name })
    }
}

/// Recognizes `device.attributes` or `device.capacity`.
fn part(expression: &IdedExpr) -> Option<Part> {
    let Expr::Select(select) = &expression.expr else { return None };
    match select.field.as_str() {
        _ if select.test || !is_device(&select.operand) => None,
        "attributes" => Some(Part::Attributes),
        "capacity" => Some(Part::Capacity),
        _ => None,
    }
}

/// Recognizes the access to an element: `container.name` or `container['name']`.
fn element(expression: &IdedExpr) -> Option<(&IdedExpr, &str)> {
    match &expression.expr {
        Expr::Select(select) if !select.test => Some((&select.operand, &select.field)),
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == operators::INDEX => {
            let [container, name] = args.as_slice() else { return None };
            Some((container, text_of(name)?))
        }
        _ => None,
    }
}

fn literal(expression: &IdedExpr) -> Option<Literal> {
    let Expr::Literal(literal) = &expression.expr else { return None };
    match literal {
        LiteralValue::Boolean(value) => Some(Literal::Bool(*value.inner())),
        LiteralValue::Int(value) => Some(Literal::Int(*value.inner())),
        LiteralValue::String(value) => Some(Literal::Text(value.inner().to_owned())),
        _ => None,
    }
}

fn text_of(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn relation(operator: &str) -> Option<Relation> {
    Some(Relation(match operator {
        operators::EQUALS => Ordering::is_eq,
        operators::NOT_EQUALS => Ordering::is_ne,
        operators::LESS => Ordering::is_lt,
        operators::LESS_EQUALS => Ordering::is_le,
        operators::GREATER => Ordering::is_gt,
        operators::GREATER_EQUALS => Ordering::is_ge,
        _ => return None,
    }))
}

/// Returns the operator with its operands exchanged, as a relation: `<` becomes `>`.
fn mirrored(operator: &str) -> Option<Relation> {
    relation(match operator {
        operators::LESS => operators::GREATER,
        operators::LESS_EQUALS => operators::GREATER_EQUALS,
        operators::GREATER => operators::LESS,
        operators::GREATER_EQUALS => operators::LESS_EQUALS,
        other => other,
    })
}
