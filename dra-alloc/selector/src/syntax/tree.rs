//! Tree of an expression: nodes in one list, named by their numbers.

use crate::position::Position;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of nodes of a tree. A text of the largest length has fewer, unless macros repeat a part of it.
const MOST_NODES: usize = 250_000;

/// Number of a node in its tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// Returns the position in lists that have one entry for each node.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Node of a tree: a part of the expression, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node<'s> {
    pub(crate) kind: Kind<'s>,
    pub(crate) at: Position,
}

/// Part of an expression. Macros are expanded, operators are calls.
#[derive(Clone, Debug)]
pub(crate) enum Kind<'s> {
    Literal(Literal<'s>),
    Ident {
        name: &'s str,
        /// Written with a leading dot: no local variable.
        global: bool,
    },
    Select {
        operand: NodeId,
        field: &'s str,
        /// `has(operand.field)`
        test: bool,
    },
    Call {
        function: &'s str,
        target: Option<NodeId>,
        arguments: Vec<NodeId>,
    },
    List(Vec<Element>),
    Map(Vec<Element>),
    Message {
        name: String,
        /// Elements whose keys are literals: the names of the fields.
        fields: Vec<Element>,
    },
    Fold(Box<Fold<'s>>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal<'s> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'s, str>),
    Bytes(Vec<u8>),
}

/// Element of a literal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    /// Key of a map's entry, name of a message's field.
    pub(crate) key: Option<NodeId>,
    pub(crate) value: NodeId,
    /// Marked with `?`.
    pub(crate) optional: bool,
}

/// Loop over a list or map with an accumulator; what macros become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold<'s> {
    pub(crate) range: NodeId,
    pub(crate) variable: &'s str,
    pub(crate) second: Option<&'s str>,
    pub(crate) accumulator: &'s str,
    pub(crate) init: NodeId,
    pub(crate) condition: NodeId,
    pub(crate) step: NodeId,
    pub(crate) result: NodeId,
    /// A name for the initial value, in a fold that runs no round: `cel.bind`.
    pub(crate) binds: bool,
}

/// Tree of an expression.
#[derive(Debug, Default)]
pub(crate) struct Tree<'s> {
    nodes: Vec<Node<'s>>,
    /// A node was dropped.
    pub(super) full: bool,
}

/// Node read in place of a missing one: ids are made by the tree that they are asked of, so that none is missing.
const NOTHING: &Node<'static> = &Node { kind: Kind::Literal(Literal::Null), at: Position::NOWHERE };

impl<'s> Tree<'s> {
    /// Adds a node. When the tree is full the node is dropped.
    pub(super) fn add(&mut self, kind: Kind<'s>, at: Position) -> NodeId {
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.full |= self.nodes.len() >= MOST_NODES;
        if !self.full {
            self.nodes.push(Node { kind, at });
        }
        NodeId(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the numbers of all nodes: parts come before what they are parts of.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).filter_map(|index| u32::try_from(index).ok()).map(NodeId)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node<'s> {
        self.nodes.get(id.index()).unwrap_or(NOTHING)
    }

    pub(crate) fn kind(&self, id: NodeId) -> &Kind<'s> {
        &self.node(id).kind
    }

    /// Returns the text of a literal that is a string.
    pub(crate) fn text(&self, id: NodeId) -> Option<&str> {
        match self.kind(id) {
            Kind::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Makes a call that of a function whose name is what stood before the call and the call's own.
    pub(crate) fn set_function(&mut self, id: NodeId, name: &'static str) {
        if let Some(Node { kind: Kind::Call { function, target, .. }, .. }) = self.nodes.get_mut(id.index()) {
            (*function, *target) = (name, None);
        }
    }

    /// Returns the children of a node in the order of the text.
    pub(crate) fn children(&self, id: NodeId) -> Vec<NodeId> {
        match self.kind(id) {
            Kind::Literal(_) | Kind::Ident { .. } => Vec::new(),
            Kind::Select { operand, .. } => vec![*operand],
            Kind::Call { target, arguments, .. } => target.iter().chain(arguments).copied().collect(),
            Kind::List(all) | Kind::Map(all) | Kind::Message { fields: all, .. } => {
                all.iter().flat_map(|element| element.key.into_iter().chain([element.value])).collect()
            }
            Kind::Fold(fold) => vec![fold.range, fold.init, fold.condition, fold.step, fold.result],
        }
    }

    /// Adds a copy of a part of the tree.
    pub(super) fn copy(&mut self, id: NodeId) -> NodeId {
        let (mut parts, mut waiting) = (BTreeSet::new(), vec![id]);
        while let Some(part) = waiting.pop() {
            waiting.extend(self.children(part));
            parts.insert(part);
        }
        // Parts come before what they are parts of.
        let mut copies = BTreeMap::new();
        for part in parts {
            let mut node = self.node(part).clone();
            node.replace_children(|old| copies.get(&old).copied().unwrap_or(old));
            copies.insert(part, self.add(node.kind, node.at));
        }
        copies.get(&id).copied().unwrap_or(id)
    }
}

impl Node<'_> {
    fn replace_children(&mut self, mut new: impl FnMut(NodeId) -> NodeId) {
        let mut set = |child: &mut NodeId| *child = new(*child);
        match &mut self.kind {
            Kind::Literal(_) | Kind::Ident { .. } => {}
            Kind::Select { operand, .. } => set(operand),
            Kind::Call { target, arguments, .. } => target.iter_mut().chain(arguments).for_each(set),
            Kind::List(all) | Kind::Map(all) | Kind::Message { fields: all, .. } => {
                all.iter_mut().flat_map(|element| element.key.iter_mut().chain([&mut element.value])).for_each(set);
            }
            Kind::Fold(fold) => {
                let Fold { range, init, condition, step, result, .. } = fold.as_mut();
                [range, init, condition, step, result].into_iter().for_each(set);
            }
        }
    }
}
