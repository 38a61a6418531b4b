//! Estimate of what an evaluation can cost, before any device is known.

use super::own::{Argument, Estimate, LIST, own};
use super::place::Place;
use super::range::Range;
use super::too_complex::{self, CostCause, TooComplex};
use crate::Options;
use crate::check::{Checked, Reference, Role, Variable};
use crate::declarations::Overload;
use crate::functions::cost::Cost;
use crate::syntax::tree::{Fold, Kind, Literal, NodeId};
use crate::types::Type;

/// Price of a map literal and of a message literal.
const MAP: u64 = 30;
const MESSAGE: u64 = 40;

/// Facts known of a part of the expression.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    cost: Range,
    size: Option<Range>,
    place: Option<Place>,
    entries: Option<Entries>,
}

impl Known {
    fn costing(cost: Range) -> Self {
        Self { cost, ..Self::default() }
    }

    /// Returns what covers one and the other meaning of a call.
    fn union(self, other: Self) -> Self {
        let size = self.size.zip(other.size).map(|(one, other)| one.union(other));
        let size = size.or(self.size).or(other.size);
        Self { cost: self.cost.union(other.cost), size, place: None, entries: self.entries.or(other.entries) }
    }
}

/// Sizes of what a list or map holds.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    keys: Range,
    values: Range,
}

struct Estimator<'c, 's> {
    checked: &'c Checked<'s>,
    known: Vec<Known>,
}

/// Returns the least and the most that an evaluation can cost, and the reason that it is too much.
pub(crate) fn estimate(checked: &Checked<'_>, text: &str) -> (Range, Option<TooComplex>) {
    let mut estimator = Estimator { checked, known: vec![Known::default(); checked.tree.len()] };
    for node in &checked.order {
        let known = estimator.estimate(*node);
        if let Some(slot) = estimator.known.get_mut(node.index()) {
            *slot = known;
        }
    }
    let cost = estimator.cost(checked.root);
    (cost, (cost.max > Options::COST_LIMIT).then(|| estimator.too_complex(text)))
}

impl Estimator<'_, '_> {
    /// Returns the innermost part that costs too much, and why.
    fn too_complex(&self, text: &str) -> TooComplex {
        let tree = &self.checked.tree;
        let dearest = |node| tree.children(node).into_iter().rev().max_by_key(|child| self.cost(*child).max);
        let mut node = self.checked.root;
        while let Some(child) = dearest(node).filter(|child| self.cost(*child).max > Options::COST_LIMIT) {
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
            _ if most.saturating_mul(each) > Options::COST_LIMIT => CostCause::Rounds { most, each },
            _ => CostCause::Sum,
        }
    }

    fn cause_of_call(&self, arguments: &[NodeId]) -> CostCause {
        let sizes = || arguments.iter().map(|node| self.size_or_unknown(*node).max);
        if let Some((unknown, _)) = arguments.iter().zip(sizes()).find(|(_, most)| *most == u64::MAX) {
            return self.cause_of_size(*unknown);
        }
        let all = || arguments.iter().map(|node| self.argument(*node));
        if all().any(|argument| matches!(argument.of, Type::List(_)) && argument.elements.max == u64::MAX) {
            return CostCause::UnknownElements;
        }
        if self.sum(arguments, 0).max > Options::COST_LIMIT {
            return CostCause::Sum;
        }
        CostCause::Size { most: sizes().max().unwrap_or_default() }
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
        self.known(node).cost
    }

    /// Estimates a part whose parts are estimated.
    fn estimate(&self, node: NodeId) -> Known {
        let checked = self.checked;
        match (checked.tree.kind(node), checked.reference(node)) {
            (Kind::Message { .. }, _) => Known::costing(self.sum(&checked.tree.children(node), MESSAGE)),
            (_, Reference::Name(_)) => {
                let place = checked.is_device(node).then_some(Place::Device);
                Known { place, ..Known::costing(Range::exactly(1)) }
            }
            (Kind::Ident { .. }, Reference::Local(variable)) => self.local(node, *variable),
            (Kind::Literal(_) | Kind::Ident { .. }, _) => Known::default(),
            (Kind::Select { operand, field, test }, _) => self.select(*operand, field, *test),
            (Kind::Call { function, target, arguments }, _) => self.call(node, function, *target, arguments),
            (kind @ (Kind::List(elements) | Kind::Map(elements)), _) => {
                let is_list = matches!(kind, Kind::List(_));
                let keys: Vec<NodeId> = elements.iter().filter_map(|element| element.key).collect();
                let values: Vec<NodeId> = elements.iter().map(|element| element.value).collect();
                let keys_size = if is_list { Range::exactly(1) } else { self.union(&keys) };
                let entries = Entries { is_list, keys: keys_size, values: self.union(&values) };
                let price = self.sum(&checked.tree.children(node), if is_list { LIST } else { MAP });
                Known { entries: Some(entries), ..Known::costing(price) }
            }
            (Kind::Fold(fold), _) => self.fold(fold),
        }
    }

    fn local(&self, node: NodeId, variable: Variable) -> Known {
        let local = self.variable(variable);
        // The size of a place counts before what is known of the variable.
        let size = local.place.map(Place::size).or_else(|| scalar_size(self.checked.type_of(node))).or(local.size);
        Known { cost: Range::exactly(1), size, ..local }
    }

    /// Returns what is known of a loop's variable.
    fn variable(&self, Variable { fold, role }: Variable) -> Known {
        let Kind::Fold(fold) = self.checked.tree.kind(fold) else { return Known::default() };
        if role == Role::Accumulator {
            return Known { size: self.size(fold.init), ..self.known(fold.init) };
        }
        let Known { place, entries, .. } = self.known(fold.range);
        let of_type = || matches!(self.checked.type_of(fold.range), Type::List(_));
        let is_list = entries.map_or_else(of_type, |entries| entries.is_list);
        if role == Role::First && (!is_list || fold.second.is_some()) {
            let place = place.filter(|_| !is_list).and_then(Place::key);
            return Known { place, size: entries.map(|entries| entries.keys), ..Known::default() };
        }
        Known { place: place.and_then(Place::value), size: entries.map(|entries| entries.values), ..Known::default() }
    }

    fn select(&self, operand: NodeId, field: &str, test: bool) -> Known {
        let Known { cost, place, .. } = self.known(operand);
        if test {
            return Known::costing(cost);
        }
        let own = u64::from(matches!(self.checked.type_of(operand), Type::Map(..) | Type::Message(_)));
        let place = place.and_then(|place| place.field(field));
        Known { place, ..Known::costing(cost.plus(Range::exactly(own))) }
    }

    /// Returns the sizes that a part can have, if they are known.
    fn size(&self, node: NodeId) -> Option<Range> {
        let known = self.known(node);
        let of_literal = || match self.checked.tree.kind(node) {
            Kind::Literal(Literal::String(text)) => Some(Range::of_length(text.chars().count())),
            Kind::Literal(Literal::Bytes(bytes)) => Some(Range::of_length(bytes.len())),
            Kind::Literal(_) => Some(Range::exactly(1)),
            Kind::List(elements) | Kind::Map(elements) => Some(Range::of_length(elements.len())),
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

    fn sum(&self, nodes: &[NodeId], own: u64) -> Range {
        nodes.iter().fold(Range::exactly(own), |sum, node| sum.plus(self.cost(*node)))
    }

    fn union(&self, nodes: &[NodeId]) -> Range {
        nodes.iter().map(|node| self.size_or_unknown(*node)).reduce(Range::union).unwrap_or(Range::ZERO)
    }

    fn call(&self, node: NodeId, function: &str, target: Option<NodeId>, arguments: &[NodeId]) -> Known {
        let overloads = self.checked.overloads(node);
        if let ("dyn", [argument]) = (function, arguments) {
            let Known { cost, entries, .. } = self.known(*argument);
            return Known { cost: cost.plus(Range::exactly(1)), size: self.size(*argument), place: None, entries };
        }
        if function == "_?._" {
            return Known { size: self.scalar_size(node), ..Known::costing(self.sum(arguments, 1)) };
        }
        let mut known = self.overloaded(overloads, target, arguments);
        if let ("_[_]", [container, _]) = (function, arguments) {
            known.place = self.known(*container).place.and_then(Place::value);
        }
        known.size = known.size.or_else(|| known.place.map(Place::size)).or_else(|| self.scalar_size(node));
        known.cost = known.cost.plus(target.map_or(Range::ZERO, |target| self.cost(target)));
        known
    }

    /// Returns what covers all overloads that a call can mean.
    fn overloaded(&self, overloads: &[&Overload], target: Option<NodeId>, arguments: &[NodeId]) -> Known {
        let all: Vec<Argument> = target.iter().chain(arguments).map(|node| self.argument(*node)).collect();
        let known = overloads.iter().map(|overload| {
            let (cost, size) = self.priced(overload, &all, arguments);
            Known { cost, size, place: None, entries: self.entries_of(overload.cost, arguments) }
        });
        known.reduce(Known::union).unwrap_or_default()
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
                (Range::exactly(1), self.known(*container).entries.map(|entries| entries.values))
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

    /// Returns the sizes of what the result of `+` or `?:` holds.
    fn entries_of(&self, cost: Cost, arguments: &[NodeId]) -> Option<Entries> {
        let (one, other) = match (cost, arguments) {
            (Cost::Control, [_, then, otherwise]) => (*then, *otherwise),
            (Cost::AddList | Cost::AddText, [left, right]) => (*left, *right),
            _ => return None,
        };
        let (one, other) = (self.known(one).entries?, self.known(other).entries?);
        Some(Entries { keys: one.keys.union(other.keys), values: one.values.union(other.values), ..one })
    }

    /// Returns the cost of one round of a loop.
    fn round(&self, fold: &Fold<'_>) -> Range {
        self.cost(fold.condition).plus(self.cost(fold.step))
    }

    fn fold(&self, fold: &Fold<'_>) -> Known {
        let cost = self.sum(&[fold.range, fold.init, fold.result], 0);
        if fold.binds {
            return Known { size: self.size(fold.result), place: None, cost, ..self.known(fold.result) };
        }
        let range = self.size_or_unknown(fold.range);
        let known = Known::costing(cost.plus(range.times(self.round(fold))));
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
