//! Checked expressions: a tree with the types and the referents of its nodes.

use crate::declarations::Overload;
use crate::declarations::names::{DeviceFields, Name};
use crate::functions::regex::Patterns;
use crate::syntax::tree::{Kind, NodeId, Tree};
use crate::types::{Type, TypeId, Types};

/// Referent of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reference {
    #[default]
    Nothing,
    Name(Name),
    Local(Variable),
    /// Overloads that a call can mean; with one the call is resolved, with several it is decided when it is evaluated.
    Overloads(Vec<&'static Overload>),
}

/// Variable of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variable {
    pub(crate) fold: NodeId,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Accumulator,
    First,
    Second,
}

/// Checked expression.
#[derive(Debug)]
pub(crate) struct Checked<'s> {
    pub(crate) tree: Tree<'s>,
    pub(crate) root: NodeId,
    pub(crate) types: Types,
    pub(crate) fields: DeviceFields,
    pub(super) of_nodes: Vec<TypeId>,
    pub(super) references: Vec<Reference>,
    /// Patterns that are literals.
    pub(crate) patterns: Patterns,
    /// Nodes in the order in which they got their types: parts before what they are parts of, range and initial value of
    /// a loop before what reads its variables.
    pub(crate) order: Vec<NodeId>,
}

impl Checked<'_> {
    /// Returns the type of a node.
    pub(crate) fn type_of(&self, node: NodeId) -> Type {
        self.types.get(self.type_id(node))
    }

    pub(crate) fn type_id(&self, node: NodeId) -> TypeId {
        self.of_nodes.get(node.index()).copied().unwrap_or_default()
    }

    pub(crate) fn reference(&self, node: NodeId) -> &Reference {
        self.references.get(node.index()).unwrap_or(&Reference::Nothing)
    }

    /// Returns true for the variable `device`.
    pub(crate) fn is_device(&self, node: NodeId) -> bool {
        *self.reference(node) == Reference::Name(Name::Device)
    }

    /// Returns the name of the device's field that a node reads.
    pub(crate) fn device_field(&self, node: NodeId) -> Option<&str> {
        match self.tree.kind(node) {
            Kind::Select { operand, field, test: false } if self.is_device(*operand) => Some(field),
            _ => None,
        }
    }

    /// Returns the map that a node reads from, the key, and whether its value has to be there.
    pub(crate) fn read(&self, node: NodeId) -> Option<(NodeId, &str, bool)> {
        match self.tree.kind(node) {
            Kind::Select { operand, field, test } => Some((*operand, field, !test)),
            Kind::Call { function: function @ ("_[_]" | "_[?_]" | "_?._"), arguments, .. } => {
                let [map, key] = *arguments.as_slice() else { return None };
                Some((map, self.tree.text(key)?, *function == "_[_]"))
            }
            _ => None,
        }
    }

    /// Returns the overloads of a call, none for what is no call.
    pub(crate) fn overloads(&self, node: NodeId) -> &[&'static Overload] {
        match self.reference(node) {
            Reference::Overloads(overloads) => overloads,
            _ => &[],
        }
    }

    /// Returns the type as messages about results show it.
    pub(crate) fn result_name(&self, node: NodeId) -> String {
        self.types.full_name(self.type_id(node))
    }
}
