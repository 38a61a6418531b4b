//! Recognizes expressions that have a direct form.

use std::cmp::Ordering;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use dra_attrs::{Quantity, QuantityFormat, Version};

use super::read::{DEAREST_MATCH, Key, Literal, Source, compare_version, has_domain, holds};
use crate::check::{Checked, Reference, Role};
use crate::device::content::Content;
use crate::device::names::Part;
use crate::device::plain;
use crate::input::SelectorInput;
use crate::syntax::tree::{self, Fold, Kind, NodeId};

/// Largest depth of an expression that is recognized: what is deeper is no common form.
const MOST_NESTED: usize = 32;

/// Answer for a device; `None` if only the program can evaluate the expression for it.
pub(super) type Test = Box<dyn Fn(SelectorInput<'_>) -> Option<bool> + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// Comparison operator, as a function of an order: [`Ordering::is_lt`] is `<`.
type Relation = fn(Ordering) -> bool;

/// Operators with their relations, and those with the operands exchanged.
const RELATIONS: [(&str, Relation, Relation); 6] = [
    ("_==_", Ordering::is_eq, Ordering::is_eq),
    ("_!=_", Ordering::is_ne, Ordering::is_ne),
    ("_<_", Ordering::is_lt, Ordering::is_gt),
    ("_<=_", Ordering::is_le, Ordering::is_ge),
    ("_>_", Ordering::is_gt, Ordering::is_lt),
    ("_>=_", Ordering::is_ge, Ordering::is_le),
];

/// Returns the direct form of an expression; `None` if it has none.
pub(super) fn recognize(checked: &Checked<'_>) -> Option<Test> {
    Recognizer { checked, bound: Vec::new(), depth: 0 }.direct(checked.root)
}

#[expect(clippy::unnecessary_wraps, reason = "the end of a recognition, which has none elsewhere")]
fn test(
    holds: impl Fn(SelectorInput<'_>) -> Option<bool> + Send + Sync + UnwindSafe + RefUnwindSafe + 'static,
) -> Option<Test> {
    Some(Box::new(holds))
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

    fn direct(&mut self, node: NodeId) -> Option<Test> {
        self.depth += 1;
        let direct = if self.depth > MOST_NESTED { None } else { self.recognize(node) };
        self.depth -= 1;
        direct
    }

    fn recognize(&mut self, node: NodeId) -> Option<Test> {
        match self.kind(node) {
            Kind::Literal(tree::Literal::Bool(value)) => {
                let value = *value;
                test(move |_| Some(value))
            }
            Kind::Select { operand, field, test: true } => present(self.domain(*operand)?, field),
            Kind::Select { .. } => self.truth(node),
            Kind::Call { function, target, arguments } => self.call(node, function, *target, arguments),
            Kind::Fold(fold) if fold.binds => self.binding(node, fold),
            _ => None,
        }
    }

    fn call(&mut self, node: NodeId, name: &str, target: Option<NodeId>, arguments: &[NodeId]) -> Option<Test> {
        match (name, target, arguments) {
            ("!_", None, [operand]) => {
                let operand = self.direct(*operand)?;
                test(move |input| operand(input).map(|value| !value))
            }
            ("_&&_" | "_||_", None, [left, right]) => {
                let (left, right, deciding) = (self.direct(*left)?, self.direct(*right)?, name == "_||_");
                test(move |input| if left(input)? == deciding { Some(deciding) } else { right(input) })
            }
            ("@in", None, [item, container]) => self.containment(*item, *container),
            ("_[_]", None, _) | ("orValue", Some(_), _) => self.truth(node),
            (_, None, [left, right]) => self.comparison(name, *left, *right),
            (_, Some(target), [argument]) => self.member(name, target, *argument),
            _ => None,
        }
    }

    /// Recognizes a boolean attribute or field.
    fn truth(&self, node: NodeId) -> Option<Test> {
        let source = self.source(node)?;
        test(move |input| if let Content::Bool(value) = source.read(input)? { Some(value) } else { None })
    }

    /// Recognizes a comparison of a scalar with a literal, on either side: `left == right`, `left != right` and the
    /// like.
    fn comparison(&self, operator: &str, left: NodeId, right: NodeId) -> Option<Test> {
        let (_, relation, mirrored) = RELATIONS.iter().find(|(known, ..)| *known == operator)?;
        if let Some(literal) = self.literal(right) {
            return self.compared(left, *relation, literal);
        }
        if let Some(literal) = self.literal(left) {
            return self.compared(right, *mirrored, literal);
        }
        let is_equality = matches!(operator, "_==_" | "_!=_");
        is_equality.then(|| self.ordered(left, right, *relation, 0)).flatten()
    }

    fn compared(&self, node: NodeId, relation: Relation, literal: Literal) -> Option<Test> {
        let compared = (self.kind(node), &literal);
        if let (Kind::Call { function: "compareTo", target: Some(target), arguments }, Literal::Int(to)) = compared {
            let [bound] = arguments.as_slice() else { return None };
            return self.ordered(*target, *bound, relation, *to);
        }
        let source = self.source(node)?;
        test(move |input| literal.order_of(source.read(input)?).map(relation))
    }

    /// Recognizes a comparison such as `value.compareTo(bound) >= 0`: `relation` is the operator, `to` the number.
    fn ordered(&self, value: NodeId, bound: NodeId, relation: Relation, to: i64) -> Option<Test> {
        let (part, key) = self.key(value)?;
        let Kind::Call { function, target: None, arguments } = self.kind(bound) else { return None };
        let [text] = arguments.as_slice() else { return None };
        let text = self.checked.tree.text(*text)?;
        match (part, *function) {
            (Part::Attributes, "semver") => {
                let bound: Version = text.parse().ok()?;
                test(move |input| {
                    let Content::Version(text) = key.content(input)? else { return None };
                    Some(relation((compare_version(text, &bound)? as i64).cmp(&to)))
                })
            }
            (Part::Capacity, "quantity") => {
                let bound: Quantity = text.parse().ok()?;
                test(move |input| {
                    let capacity = &key.find(input.driver, input.device.capacity.as_ref()?)?.value;
                    let quantity = match plain::units(&capacity.0) {
                        Some(units) => Quantity::from_units(units, QuantityFormat::DecimalSi),
                        None => Quantity::from_kube(capacity).ok()?,
                    };
                    Some(relation((quantity.cmp(&bound) as i64).cmp(&to)))
                })
            }
            _ => None,
        }
    }

    fn member(&self, name: &str, target: NodeId, argument: NodeId) -> Option<Test> {
        let has: fn(&str, &str) -> bool = match name {
            "isGreaterThan" => return self.ordered(target, argument, Ordering::is_gt, 0),
            "isLessThan" => return self.ordered(target, argument, Ordering::is_lt, 0),
            "includes" => {
                let (key, literal) = (self.attribute(target)?, self.literal(argument)?);
                return test(move |input| {
                    let content = key.content(input)?;
                    holds(&content, &literal).or_else(|| literal.order_of(content).map(Ordering::is_eq))
                });
            }
            "matches" => {
                let pattern = self.checked.patterns.get(self.checked.tree.text(argument)?)?;
                let (source, pattern) = (self.source(target)?, Arc::clone(pattern));
                return test(move |input| {
                    let text = source.text(input).filter(|text| pattern.cost(text) <= DEAREST_MATCH)?;
                    pattern.is_match(text)
                });
            }
            "startsWith" => |text, start| text.starts_with(start),
            "endsWith" => |text, end| text.ends_with(end),
            "contains" => |text, part| text.contains(part),
            _ => return None,
        };
        let (source, part) = (self.source(target)?, self.checked.tree.text(argument)?.to_owned());
        test(move |input| source.text(input).map(|text| has(text, &part)))
    }

    /// Recognizes `item in container`, with a list of literals, an attribute or a map as the container.
    fn containment(&self, item: NodeId, container: NodeId) -> Option<Test> {
        if let Kind::List(elements) = self.kind(container) {
            let literal = |element: &tree::Element| self.literal(element.value).filter(|_| !element.optional);
            let literals = elements.iter().map(literal).collect::<Option<Vec<Literal>>>()?;
            let source = self.source(item)?;
            return test(move |input| {
                let value = source.read(input)?;
                // What can't be compared before one that is equal is for the program.
                let mut answers = literals.iter().map(|literal| literal.order_of(value).map(Ordering::is_eq));
                answers.find(|is_equal| *is_equal != Some(false)).unwrap_or(Some(false))
            });
        }
        let literal = self.literal(item)?;
        if let Some(key) = self.attribute(container) {
            return test(move |input| holds(&key.content(input)?, &literal));
        }
        let Literal::Text(text) = literal else { return None };
        if let Some(domain) = self.domain(container) {
            return present(domain, &text);
        }
        let part = self.part(container)?;
        test(move |input| has_domain(part, &text, input))
    }

    /// Recognizes `cel.bind(name, device.attributes['domain'], body)`.
    fn binding(&mut self, node: NodeId, fold: &Fold<'_>) -> Option<Test> {
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
            Kind::Select { .. } => match self.checked.device_field(node)? {
                "driver" => Some(Source::Driver),
                "allowMultipleAllocations" => Some(Source::AllowMultipleAllocations),
                _ => None,
            },
            Kind::Call { function: "orValue", target: Some(optional), arguments } => {
                let [otherwise] = arguments.as_slice() else { return None };
                let (container, id, false) = self.checked.read(*optional)? else { return None };
                let Domain { part: Part::Attributes, name } = self.domain(container)? else { return None };
                Some(Source::AttributeOr(Key::new(name, id), self.literal(*otherwise)?))
            }
            _ => None,
        }
    }

    fn attribute(&self, node: NodeId) -> Option<Key> {
        let (part, key) = self.key(node)?;
        (part == Part::Attributes).then_some(key)
    }

    /// Recognizes an attribute or capacity by its full name: `device.attributes['domain'].id`.
    fn key(&self, node: NodeId) -> Option<(Part, Key)> {
        let (container, id, true) = self.checked.read(node)? else { return None };
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
        let (container, name, true) = self.checked.read(node)? else { return None };
        Some(Domain { part: self.part(container)?, name })
    }

    /// Recognizes `device.attributes` or `device.capacity`.
    fn part(&self, node: NodeId) -> Option<Part> {
        match self.checked.device_field(node)? {
            "attributes" => Some(Part::Attributes),
            "capacity" => Some(Part::Capacity),
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
}

fn present(Domain { part, name }: Domain<'_>, id: &str) -> Option<Test> {
    let key = Key::new(name, id);
    test(move |input| key.is_present(part, input))
}
