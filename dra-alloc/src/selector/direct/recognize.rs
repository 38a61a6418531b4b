//! Recognizes expressions that have a direct form.

use std::cmp::Ordering;

use super::{Direct, Key, Literal, Relation, Source, TextTest};
use crate::selector::check::{Checked, Reference, Role};
use crate::selector::declarations::names::Name;
use crate::selector::functions::regex::Pattern;
use crate::selector::syntax::tree::{self, Fold, Kind, NodeId};
use crate::selector::value::device::Part;

/// Largest depth of an expression that is recognized: what is deeper is no common form.
const MOST_NESTED: usize = 32;

/// Returns the direct form of an expression; `None` if it has none.
pub(in crate::selector) fn recognize(checked: &Checked<'_>) -> Option<Direct> {
    Recognizer { checked, bound: Vec::new(), depth: 0 }.direct(checked.root)
}

/// `device.attributes['domain']` or `device.capacity['domain']`
#[derive(Clone, Copy)]
struct Domain<'c> {
    part: Part,
    name: &'c str,
}

struct Recognizer<'c, 's> {
    checked: &'c Checked<'s>,
    /// Names bound by `cel.bind`, as the loops that they are, with their values.
    bound: Vec<(NodeId, Domain<'c>)>,
    depth: usize,
}

impl<'c, 's> Recognizer<'c, 's> {
    fn kind(&self, node: NodeId) -> &'c Kind<'s> {
        self.checked.tree.kind(node)
    }

    fn direct(&mut self, node: NodeId) -> Option<Direct> {
        self.depth += 1;
        let direct = if self.depth > MOST_NESTED { None } else { self.recognize(node) };
        self.depth -= 1;
        direct
    }

    fn recognize(&mut self, node: NodeId) -> Option<Direct> {
        match self.kind(node) {
            Kind::Literal(tree::Literal::Bool(value)) => Some(Direct::Constant(*value)),
            Kind::Select { operand, field, test: true } => {
                let Domain { part, name } = self.domain(*operand)?;
                Some(Direct::Present { part, key: Key::new(name, field) })
            }
            Kind::Select { .. } => self.source(node).map(Direct::Truth),
            Kind::Call { function, target, arguments } => self.call(node, function, *target, arguments),
            Kind::Fold(fold) if fold.binds => self.binding(node, fold),
            _ => None,
        }
    }

    fn call(&mut self, node: NodeId, name: &str, target: Option<NodeId>, arguments: &[NodeId]) -> Option<Direct> {
        match (name, target, arguments) {
            ("!_", None, [operand]) => Some(Direct::Not(Box::new(self.direct(*operand)?))),
            ("_&&_", None, [left, right]) => {
                Some(Direct::And(Box::new(self.direct(*left)?), Box::new(self.direct(*right)?)))
            }
            ("_||_", None, [left, right]) => {
                Some(Direct::Or(Box::new(self.direct(*left)?), Box::new(self.direct(*right)?)))
            }
            ("@in", None, [item, container]) => self.containment(*item, *container),
            ("_[_]", None, _) | ("orValue", Some(_), _) => self.source(node).map(Direct::Truth),
            (_, None, [left, right]) => self.comparison(name, *left, *right),
            (_, Some(target), [argument]) => self.member(name, target, *argument),
            _ => None,
        }
    }

    /// Recognizes a comparison of a scalar with a literal, on either side: `left == right`, `left != right` and the
    /// like.
    fn comparison(&self, operator: &str, left: NodeId, right: NodeId) -> Option<Direct> {
        if let Some(literal) = self.literal(right) {
            return self.compared(left, relation(operator)?, literal);
        }
        if let Some(literal) = self.literal(left) {
            return self.compared(right, mirrored(operator)?, literal);
        }
        let is_equality = matches!(operator, "_==_" | "_!=_");
        is_equality.then(|| self.ordered(left, right, relation(operator)?, 0)).flatten()
    }

    fn compared(&self, node: NodeId, relation: Relation, literal: Literal) -> Option<Direct> {
        match (self.kind(node), &literal) {
            (Kind::Call { function: "compareTo", target: Some(target), arguments }, Literal::Int(to)) => {
                let [bound] = arguments.as_slice() else { return None };
                self.ordered(*target, *bound, relation, *to)
            }
            _ => Some(Direct::Compare { source: self.source(node)?, relation, literal }),
        }
    }

    /// Recognizes a comparison such as `value.compareTo(bound) >= 0`: `relation` is the operator, `to` the number.
    fn ordered(&self, value: NodeId, bound: NodeId, relation: Relation, to: i64) -> Option<Direct> {
        let (part, key) = self.key(value)?;
        let Kind::Call { function, target: None, arguments } = self.kind(bound) else { return None };
        let [text] = arguments.as_slice() else { return None };
        let text = self.text(*text)?;
        match (part, *function) {
            (Part::Attributes, "semver") => Some(Direct::Version { key, bound: text.parse().ok()?, relation, to }),
            (Part::Capacity, "quantity") => Some(Direct::Capacity { key, bound: text.parse().ok()?, relation, to }),
            _ => None,
        }
    }

    fn member(&self, name: &str, target: NodeId, argument: NodeId) -> Option<Direct> {
        let text = || self.text(argument).map(str::to_owned);
        let by_text = match name {
            "isGreaterThan" => return self.ordered(target, argument, Relation(Ordering::is_gt), 0),
            "isLessThan" => return self.ordered(target, argument, Relation(Ordering::is_lt), 0),
            "includes" => {
                let literal = self.literal(argument)?;
                return Some(Direct::Includes { key: self.attribute(target)?, literal });
            }
            "startsWith" => TextTest::StartsWith(text()?),
            "endsWith" => TextTest::EndsWith(text()?),
            "contains" => TextTest::Contains(text()?),
            "matches" => TextTest::Matches(Pattern::compile(&text()?).ok()?),
            _ => return None,
        };
        Some(Direct::Text { source: self.source(target)?, test: by_text })
    }

    /// Recognizes `item in container`, with a list of literals, an attribute or a map as the container.
    fn containment(&self, item: NodeId, container: NodeId) -> Option<Direct> {
        if let Kind::List(elements) = self.kind(container) {
            let literal = |element: &tree::Element| self.literal(element.node).filter(|_| !element.optional);
            let literals = elements.iter().map(literal).collect::<Option<_>>()?;
            return Some(Direct::OneOf { source: self.source(item)?, literals });
        }
        let literal = self.literal(item)?;
        if let Some(key) = self.attribute(container) {
            return Some(Direct::Member { key, literal });
        }
        let Literal::Text(text) = literal else { return None };
        if let Some(Domain { part, name }) = self.domain(container) {
            return Some(Direct::Present { part, key: Key::new(name, &text) });
        }
        Some(Direct::DomainPresent { part: self.part(container)?, domain: text })
    }

    /// Recognizes `cel.bind(name, device.attributes['domain'], body)`.
    fn binding(&mut self, node: NodeId, fold: &Fold<'_>) -> Option<Direct> {
        let domain = self.domain(fold.init)?;
        self.bound.push((node, domain));
        let body = self.direct(fold.result);
        self.bound.pop();
        body
    }

    fn source(&self, node: NodeId) -> Option<Source> {
        if let Some(key) = self.attribute(node) {
            return Some(Source::Attribute(key));
        }
        match self.kind(node) {
            Kind::Select { operand, field, test: false } if self.is_device(*operand) => match *field {
                "driver" => Some(Source::Driver),
                "allowMultipleAllocations" => Some(Source::AllowMultipleAllocations),
                _ => None,
            },
            Kind::Call { function: "orValue", target: Some(optional), arguments } => {
                let [otherwise] = arguments.as_slice() else { return None };
                let Kind::Call { function: "_?._" | "_[?_]", arguments, .. } = self.kind(*optional) else {
                    return None;
                };
                let [container, id] = arguments.as_slice() else { return None };
                let Domain { part: Part::Attributes, name } = self.domain(*container)? else { return None };
                Some(Source::AttributeOr(Key::new(name, self.text(*id)?), self.literal(*otherwise)?))
            }
            _ => None,
        }
    }

    fn attribute(&self, node: NodeId) -> Option<Key> {
        match self.key(node)? {
            (Part::Attributes, key) => Some(key),
            (Part::Capacity, _) => None,
        }
    }

    /// Recognizes an attribute or capacity by its full name: `device.attributes['domain'].id`.
    fn key(&self, node: NodeId) -> Option<(Part, Key)> {
        let (container, id) = self.element(node)?;
        let Domain { part, name } = self.domain(container)?;
        Some((part, Key::new(name, id)))
    }

    /// Recognizes `device.attributes['domain']`, or a name that `cel.bind` gave to it.
    fn domain(&self, node: NodeId) -> Option<Domain<'c>> {
        if let Reference::Local(variable) = self.checked.reference(node) {
            let is_this =
                |(fold, _): &&(NodeId, Domain<'c>)| *fold == variable.fold && variable.role == Role::Accumulator;
            return self.bound.iter().find(is_this).map(|(_, domain)| *domain);
        }
        let (container, name) = self.element(node)?;
        Some(Domain { part: self.part(container)?, name })
    }

    /// Recognizes `device.attributes` or `device.capacity`.
    fn part(&self, node: NodeId) -> Option<Part> {
        match self.kind(node) {
            Kind::Select { operand, field: "attributes", test: false } if self.is_device(*operand) => {
                Some(Part::Attributes)
            }
            Kind::Select { operand, field: "capacity", test: false } if self.is_device(*operand) => {
                Some(Part::Capacity)
            }
            _ => None,
        }
    }

    fn is_device(&self, node: NodeId) -> bool {
        *self.checked.reference(node) == Reference::Name(Name::Device)
    }

    /// Recognizes the access to an element: `container.name` or `container['name']`.
    fn element(&self, node: NodeId) -> Option<(NodeId, &'c str)> {
        match self.kind(node) {
            Kind::Select { operand, field, test: false } => Some((*operand, field)),
            Kind::Call { function: "_[_]", target: None, arguments } => {
                let [container, name] = arguments.as_slice() else { return None };
                Some((*container, self.text(*name)?))
            }
            _ => None,
        }
    }

    fn literal(&self, node: NodeId) -> Option<Literal> {
        match self.kind(node) {
            Kind::Literal(tree::Literal::Bool(value)) => Some(Literal::Bool(*value)),
            Kind::Literal(tree::Literal::Int(number)) => Some(Literal::Int(*number)),
            Kind::Literal(tree::Literal::String(text)) => Some(Literal::Text(text.to_string())),
            _ => None,
        }
    }

    fn text(&self, node: NodeId) -> Option<&'c str> {
        match self.kind(node) {
            Kind::Literal(tree::Literal::String(text)) => Some(text),
            _ => None,
        }
    }
}

fn relation(operator: &str) -> Option<Relation> {
    Some(Relation(match operator {
        "_==_" => Ordering::is_eq,
        "_!=_" => Ordering::is_ne,
        "_<_" => Ordering::is_lt,
        "_<=_" => Ordering::is_le,
        "_>_" => Ordering::is_gt,
        "_>=_" => Ordering::is_ge,
        _ => return None,
    }))
}

/// Returns the operator with its operands exchanged, as a relation: `<` becomes `>`.
fn mirrored(operator: &str) -> Option<Relation> {
    relation(match operator {
        "_<_" => "_>_",
        "_<=_" => "_>=_",
        "_>_" => "_<_",
        "_>=_" => "_<=_",
        other => other,
    })
}
