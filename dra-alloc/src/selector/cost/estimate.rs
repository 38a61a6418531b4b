//! Estimate of what an evaluation can cost, before any device is known.

use std::collections::BTreeMap;

use super::own::{Argument, Estimate, LIST, own};
use super::place::Place;
use super::range::Range;
use super::too_complex::{self, CostCause, TooComplex};
use crate::selector::COST_LIMIT;
use crate::selector::check::{Checked, Reference, Role, Variable};
use crate::selector::declarations::{Cost, Overload, OverloadId, declarations};
use crate::selector::syntax::tree::{Element, Entry, Field, Fold, Kind, Literal, NodeId};
use crate::selector::types::Type;

/// Price of a map literal and of a message literal.
const MAP: u64 = 30;
const MESSAGE: u64 = 40;

/// Facts known of a part of the expression.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    cost: Option<Range>,
    size: Option<Range>,
    place: Option<Place>,
    entries: Option<Entries>,
}

/// Sizes of what a list or map holds.
#[derive(Clone, Copy, Debug)]
struct Entries {
    container: Container,
    keys: Range,
    values: Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    List,
    Map,
}

impl Entries {
    fn union(self, other: Self) -> Self {
        let (keys, values) = (self.keys.union(other.keys), self.values.union(other.values));
        Self { container: self.container, keys, values }
    }
}

enum Task {
    Enter(NodeId),
    Leave(NodeId),
    /// Range and initial value of a loop are estimated.
    Body(NodeId),
}

struct Estimator<'c, 's> {
    checked: &'c Checked<'s>,
    known: Vec<Known>,
    locals: BTreeMap<Variable, Known>,
    tasks: Vec<Task>,
}

/// Returns the least and the most that an evaluation can cost, and the reason that it is too much.
pub(in crate::selector) fn estimate(checked: &Checked<'_>, text: &str) -> (Range, Option<TooComplex>) {
    let known = vec![Known::default(); checked.tree.len()];
    let mut estimator = Estimator { checked, known, locals: BTreeMap::new(), tasks: vec![Task::Enter(checked.root)] };
    while let Some(task) = estimator.tasks.pop() {
        match task {
            Task::Enter(node) => estimator.enter(node),
            Task::Leave(node) => estimator.leave(node),
            Task::Body(node) => estimator.body(node),
        }
    }
    let cost = estimator.cost(checked.root);
    (cost, (cost.max > COST_LIMIT).then(|| estimator.too_complex(text)))
}

impl<'s> Estimator<'_, 's> {
    /// Returns the innermost part that costs too much, and why.
    fn too_complex(&self, text: &str) -> TooComplex {
        let tree = &self.checked.tree;
        let dearest = |node| tree.children(node).into_iter().rev().max_by_key(|child| self.cost(*child).max);
        let mut node = self.checked.root;
        while let Some(child) = dearest(node).filter(|child| self.cost(*child).max > COST_LIMIT) {
            node = child;
        }
        let at = tree.node(node).at;
        let (part, cause) = match tree.kind(node) {
            Kind::Fold(fold) => (too_complex::name_before(text, at), self.cause_of_loop(fold)),
            Kind::Call { function, .. } => {
                (too_complex::written(function).to_owned(), self.cause_of_call(&tree.children(node)))
            }
            _ => (String::new(), CostCause::Sum),
        };
        TooComplex::new(part, at, self.cost(node), cause)
    }

    fn cause_of_loop(&self, fold: &Fold<'_>) -> CostCause {
        let (most, each) = (self.size_or_unknown(fold.range).max, self.round(fold).max);
        match most {
            u64::MAX => self.cause_of_size(fold.range),
            _ if most.saturating_mul(each) > COST_LIMIT => CostCause::Rounds { most, each },
            _ => CostCause::Sum,
        }
    }

    fn cause_of_call(&self, arguments: &[NodeId]) -> CostCause {
        let has_unknown_elements = |node: &&NodeId| {
            let argument = self.argument(**node);
            matches!(argument.of, Type::List(_)) && argument.elements.max == u64::MAX
        };
        let is_unknown = |node: &&NodeId| self.size_or_unknown(**node).max == u64::MAX;
        if let Some(unknown) = arguments.iter().find(is_unknown) {
            return self.cause_of_size(*unknown);
        }
        if arguments.iter().any(|node| has_unknown_elements(&node)) {
            return CostCause::UnknownElements;
        }
        let parts = arguments.iter().fold(0_u64, |sum, node| sum.saturating_add(self.cost(*node).max));
        if parts > COST_LIMIT {
            return CostCause::Sum;
        }
        CostCause::Size { most: arguments.iter().map(|node| self.size_or_unknown(*node).max).max().unwrap_or_default() }
    }

    /// Says why the size of a part is not known.
    fn cause_of_size(&self, node: NodeId) -> CostCause {
        let is_variable =
            matches!(self.checked.reference(node), Reference::Local(Variable { role: Role::First | Role::Second, .. }));
        let is_element = || matches!(self.checked.tree.kind(node), Kind::Call { function: "_[_]" | "_[?_]", .. });
        if is_variable || is_element() { CostCause::UnknownElements } else { CostCause::UnknownSize }
    }

    fn known(&self, node: NodeId) -> Known {
        self.known.get(node.index()).copied().unwrap_or_default()
    }

    fn cost(&self, node: NodeId) -> Range {
        self.known(node).cost.unwrap_or(Range::ZERO)
    }

    fn enter(&mut self, node: NodeId) {
        if let Kind::Fold(fold) = self.checked.tree.kind(node) {
            self.tasks.extend([Task::Body(node), Task::Enter(fold.init), Task::Enter(fold.range)]);
            return;
        }
        self.tasks.push(Task::Leave(node));
        if !matches!(self.checked.reference(node), Reference::Name(_)) || self.is_message(node) {
            let children = self.checked.tree.children(node);
            self.tasks.extend(children.into_iter().rev().map(Task::Enter));
        }
    }

    fn is_message(&self, node: NodeId) -> bool {
        matches!(self.checked.tree.kind(node), Kind::Message { .. })
    }

    fn leave(&mut self, node: NodeId) {
        let checked = self.checked;
        let known = match checked.tree.kind(node) {
            Kind::Message { fields, .. } => self.message(fields),
            _ if matches!(checked.reference(node), Reference::Name(_)) => self.name(node),
            Kind::Literal(_) => Known { cost: Some(Range::ZERO), ..Known::default() },
            Kind::Ident { .. } => self.local(node),
            Kind::Select { operand, field, test } => self.select(*operand, field, *test),
            Kind::Call { function, target, arguments } => self.call(node, function, *target, arguments),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Fold(fold) => self.fold(fold),
        };
        self.remember(node, known);
    }

    fn remember(&mut self, node: NodeId, known: Known) {
        if let Some(slot) = self.known.get_mut(node.index()) {
            *slot = known;
        }
    }

    fn name(&self, node: NodeId) -> Known {
        let place = self.checked.is_device(node).then_some(Place::Device);
        Known { cost: Some(Range::exactly(1)), place, ..Known::default() }
    }

    fn local(&self, node: NodeId) -> Known {
        let Reference::Local(variable) = self.checked.reference(node) else { return Known::default() };
        let local = self.locals.get(variable).copied().unwrap_or_default();
        // The size of a place counts before what is known of the variable.
        let size = local.place.map(Place::size).or_else(|| scalar_size(self.checked.type_of(node))).or(local.size);
        Known { cost: Some(Range::exactly(1)), size, ..local }
    }

    fn select(&self, operand: NodeId, field: &str, test: bool) -> Known {
        let (cost, place) = (self.cost(operand), self.known(operand).place);
        if test {
            return Known { cost: Some(cost), ..Known::default() };
        }
        let own = match self.checked.type_of(operand) {
            Type::Map(..) | Type::Message(_) => Range::exactly(1),
            _ => Range::ZERO,
        };
        Known { cost: Some(cost.plus(own)), place: place.and_then(|place| place.field(field)), ..Known::default() }
    }

    /// Returns the sizes that a part can have, if they are known.
    fn size(&self, node: NodeId) -> Option<Range> {
        let known = self.known(node);
        let of_literal = || match self.checked.tree.kind(node) {
            Kind::Literal(Literal::String(text)) => Some(Range::of_length(text.chars().count())),
            Kind::Literal(Literal::Bytes(bytes)) => Some(Range::of_length(bytes.len())),
            Kind::Literal(_) => Some(Range::exactly(1)),
            Kind::List(elements) => Some(Range::of_length(elements.len())),
            Kind::Map(entries) => Some(Range::of_length(entries.len())),
            _ => None,
        };
        let of_type = || self.scalar_size(node);
        known.size.or_else(of_literal).or_else(|| known.place.map(Place::size)).or_else(of_type)
    }

    /// Returns the size of a value whose type has one size, also within an optional.
    fn scalar_size(&self, node: NodeId) -> Option<Range> {
        match self.checked.type_of(node) {
            Type::Optional(inner) => scalar_size(self.checked.types.get(inner)),
            of => scalar_size(of),
        }
    }

    fn size_or_unknown(&self, node: NodeId) -> Range {
        self.size(node).unwrap_or(Range::UNKNOWN)
    }

    fn list(&self, elements: &[Element]) -> Known {
        let nodes: Vec<NodeId> = elements.iter().map(|element| element.node).collect();
        let (cost, keys, values) = (self.sum(&nodes, LIST), Range::exactly(1), self.union(&nodes));
        let entries = Entries { container: Container::List, keys, values };
        Known { cost: Some(cost), entries: Some(entries), ..Known::default() }
    }

    fn map(&self, entries: &[Entry]) -> Known {
        let keys: Vec<NodeId> = entries.iter().map(|entry| entry.key).collect();
        let values: Vec<NodeId> = entries.iter().map(|entry| entry.value).collect();
        let cost = self.sum(&keys, MAP).plus(self.sum(&values, 0));
        let entries = Entries { container: Container::Map, keys: self.union(&keys), values: self.union(&values) };
        Known { cost: Some(cost), entries: Some(entries), ..Known::default() }
    }

    fn message(&self, fields: &[Field<'s>]) -> Known {
        let values: Vec<NodeId> = fields.iter().map(|field| field.value).collect();
        Known { cost: Some(self.sum(&values, MESSAGE)), ..Known::default() }
    }

    fn sum(&self, nodes: &[NodeId], own: u64) -> Range {
        nodes.iter().fold(Range::exactly(own), |sum, node| sum.plus(self.cost(*node)))
    }

    fn union(&self, nodes: &[NodeId]) -> Range {
        nodes.iter().map(|node| self.size_or_unknown(*node)).reduce(Range::union).unwrap_or(Range::ZERO)
    }

    fn call(&self, node: NodeId, function: &str, target: Option<NodeId>, arguments: &[NodeId]) -> Known {
        let overloads = self.checked.overloads(node);
        if let ("dyn", [argument]) = (function, arguments) {
            let cost = self.cost(*argument).plus(Range::exactly(1));
            return Known {
                cost: Some(cost),
                size: self.size(*argument),
                place: None,
                entries: self.known(*argument).entries,
            };
        }
        if function == "_?._" {
            return Known { cost: Some(self.sum(arguments, 1)), size: self.scalar_size(node), ..Known::default() };
        }
        if overloads.is_empty() {
            return Known { cost: Some(Range::ZERO), ..Known::default() };
        }
        let mut known = self.overloaded(overloads, target, arguments);
        known.place = self.indexed(function, overloads, arguments);
        known.size = known.size.or_else(|| known.place.map(Place::size)).or_else(|| self.scalar_size(node));
        let target = target.map_or(Range::ZERO, |target| self.cost(target));
        known.cost = known.cost.map(|cost| cost.plus(target));
        known
    }

    /// Returns what covers all overloads that a call can mean.
    fn overloaded(&self, overloads: &[OverloadId], target: Option<NodeId>, arguments: &[NodeId]) -> Known {
        let all: Vec<Argument> = target.iter().chain(arguments).map(|node| self.argument(*node)).collect();
        let mut known = Known::default();
        for overload in overloads.iter().filter_map(|id| declarations().overload(*id)) {
            let (cost, size) = self.priced(overload, &all, arguments);
            known.cost = Some(known.cost.map_or(cost, |former| former.union(cost)));
            known.size = match (known.size, size) {
                (Some(former), Some(size)) => Some(former.union(size)),
                (former, size) => former.or(size),
            };
            known.entries = known.entries.or_else(|| self.entries_of(overload.cost, arguments));
        }
        known
    }

    /// Returns the price of a call with that of its arguments.
    fn priced(&self, overload: &Overload, all: &[Argument], arguments: &[NodeId]) -> Estimate {
        let (price, size) = match (overload.cost, arguments) {
            (Cost::Control, [condition, then, otherwise]) => {
                let branches = self.cost(*then).union(self.cost(*otherwise));
                let size = self.size_or_unknown(*then).union(self.size_or_unknown(*otherwise));
                return (self.cost(*condition).plus(branches), Some(size));
            }
            (Cost::Control, [left, right]) => {
                let both = self.cost(*left).plus(self.cost(*right));
                return (Range::new(self.cost(*left).min, both.max), None);
            }
            (Cost::Index, [container, _]) => {
                (Range::exactly(1), self.entries(*container).map(|entries| entries.values))
            }
            (cost, _) => own(cost, all, overload.takes_texts()),
        };
        (price.plus(self.sum(arguments, 0)), size)
    }

    fn argument(&self, node: NodeId) -> Argument {
        let of = self.checked.type_of(node);
        let element = match of {
            Type::List(inner) | Type::Optional(inner) => Some(self.checked.types.get(inner)),
            _ => None,
        };
        let elements = self.known(node).place.and_then(Place::value).map_or(Range::UNKNOWN, Place::size);
        let number = match self.checked.tree.kind(node) {
            Kind::Literal(Literal::Int(number)) => Some(*number),
            _ => None,
        };
        Argument { size: self.size_or_unknown(node), of, element, elements, number }
    }

    fn entries(&self, node: NodeId) -> Option<Entries> {
        self.known(node).entries
    }

    /// Returns the sizes of what the result of `+` or `?:` holds.
    fn entries_of(&self, cost: Cost, arguments: &[NodeId]) -> Option<Entries> {
        let (one, other) = match (cost, arguments) {
            (Cost::Control, [_, then, otherwise]) => (*then, *otherwise),
            (Cost::AddList | Cost::AddText, [left, right]) => (*left, *right),
            _ => return None,
        };
        Some(self.entries(one)?.union(self.entries(other)?))
    }

    fn indexed(&self, function: &str, overloads: &[OverloadId], arguments: &[NodeId]) -> Option<Place> {
        let (container, [_, ..]) = (arguments.first()?, overloads) else { return None };
        (function == "_[_]").then(|| self.known(*container).place.and_then(Place::value)).flatten()
    }

    /// Goes on with a loop whose range and initial value are estimated: says what its variables are.
    fn body(&mut self, node: NodeId) {
        let Kind::Fold(fold) = self.checked.tree.kind(node) else { return };
        let init = Known { size: self.size(fold.init), ..self.known(fold.init) };
        self.locals.insert(Variable { fold: node, role: Role::Accumulator }, init);
        self.tasks.push(Task::Leave(node));
        self.tasks.push(Task::Enter(fold.result));
        if fold.binds {
            return;
        }
        let (first, second) = self.elements(fold);
        self.locals.insert(Variable { fold: node, role: Role::First }, first);
        self.locals.insert(Variable { fold: node, role: Role::Second }, second);
        self.tasks.extend([Task::Enter(fold.step), Task::Enter(fold.condition)]);
    }

    fn elements(&self, fold: &Fold<'_>) -> (Known, Known) {
        let known = self.known(fold.range);
        let container = known.entries.map(|entries| entries.container);
        let container = container.unwrap_or_else(|| match self.checked.type_of(fold.range) {
            Type::List(_) => Container::List,
            _ => Container::Map,
        });
        let keys = Known {
            place: known.place.filter(|_| container == Container::Map).and_then(Place::key),
            size: known.entries.map(|entries| entries.keys),
            ..Known::default()
        };
        let values = Known {
            place: known.place.and_then(Place::value),
            size: known.entries.map(|entries| entries.values),
            ..Known::default()
        };
        let is_list = container == Container::List && fold.second.is_none();
        if is_list { (values, values) } else { (keys, values) }
    }

    /// Returns the cost of one round of a loop.
    fn round(&self, fold: &Fold<'_>) -> Range {
        self.cost(fold.condition).plus(self.cost(fold.step))
    }

    fn fold(&self, fold: &Fold<'_>) -> Known {
        let cost = self.cost(fold.range).plus(self.cost(fold.init)).plus(self.cost(fold.result));
        if fold.binds {
            let size = self.size(fold.result);
            return Known { cost: Some(cost), size, place: None, entries: self.known(fold.result).entries };
        }
        let range = self.size_or_unknown(fold.range);
        let round = self.round(fold);
        let known = Known { cost: Some(cost.plus(range.times(round))), ..Known::default() };
        match self.checked.tree.kind(fold.init) {
            Kind::Literal(_) => Known { size: self.size(fold.init), ..known },
            Kind::List(_) | Kind::Map(_) => {
                Known { size: Some(range), entries: self.known(fold.step).entries, ..known }
            }
            _ => known,
        }
    }
}

fn scalar_size(of: Type) -> Option<Range> {
    let has_one = matches!(of, Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp);
    has_one.then(|| Range::exactly(1))
}
