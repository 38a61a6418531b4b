//! Checker: gives each part of an expression its type, and each call its overloads.

mod call;
mod fold;
mod literals;
pub(super) mod validators;

use super::declarations::names::{self, DeviceFields, Name, NoField};
use super::declarations::{Declarations, OverloadId, declarations};
use super::error::Issue;
use super::syntax::token::Position;
use super::syntax::tree::{Kind, Literal, NodeId, Tree};
use super::types::{Free, Type, TypeId, Types};

/// Referent of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Reference {
    #[default]
    Nothing,
    Name(Name),
    Local(Variable),
    /// Overloads that a call can mean; with one the call is resolved, with several it is decided when it is evaluated.
    Overloads(Vec<OverloadId>),
}

/// Variable of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Variable {
    pub(super) fold: NodeId,
    pub(super) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Accumulator,
    First,
    Second,
}

/// Checked expression.
#[derive(Debug)]
pub(super) struct Checked<'s> {
    pub(super) tree: Tree<'s>,
    pub(super) root: NodeId,
    pub(super) types: Types,
    pub(super) fields: DeviceFields,
    of_nodes: Vec<TypeId>,
    references: Vec<Reference>,
}

impl Checked<'_> {
    /// Returns the type of a node.
    pub(super) fn type_of(&self, node: NodeId) -> Type {
        self.of_nodes.get(node.index()).map_or(Type::Dyn, |id| self.types.get(*id))
    }

    pub(super) fn type_id(&self, node: NodeId) -> Option<TypeId> {
        self.of_nodes.get(node.index()).copied()
    }

    pub(super) fn reference(&self, node: NodeId) -> &Reference {
        self.references.get(node.index()).unwrap_or(&Reference::Nothing)
    }

    /// Returns the overloads of a call, none for what is no call.
    pub(super) fn overloads(&self, node: NodeId) -> &[OverloadId] {
        match self.reference(node) {
            Reference::Overloads(ids) => ids,
            _ => &[],
        }
    }

    /// Returns the type as messages about results show it.
    pub(super) fn result_name(&self, node: NodeId) -> String {
        self.type_id(node).map_or_else(String::new, |id| self.types.full_name(id))
    }
}

/// Work that is left; the last task is done first.
#[derive(Clone, Copy, Debug)]
enum Task {
    Visit(NodeId),
    /// The operand is checked.
    Select(NodeId),
    OptionalSelect(NodeId),
    /// The arguments are checked, the target is not.
    Call(NodeId),
    /// The target is checked, too.
    Method(NodeId),
    List(NodeId),
    Map(NodeId),
    Message(NodeId),
    /// Range and initial value are checked.
    FoldBody(NodeId),
    FoldCondition(NodeId),
    FoldStep(NodeId),
    FoldEnd(NodeId),
}

/// Effect of a local variable on names with dots that begin with its name. It hides none of functions.
#[derive(Clone, Copy, PartialEq)]
enum Locals {
    Hide,
    Ignored,
}

struct Local<'s> {
    name: &'s str,
    variable: Variable,
    of: TypeId,
}

struct Checker<'s> {
    tree: Tree<'s>,
    types: Types,
    fields: DeviceFields,
    declarations: &'static Declarations,
    of_nodes: Vec<TypeId>,
    references: Vec<Reference>,
    locals: Vec<Local<'s>>,
    tasks: Vec<Task>,
    issues: Vec<Issue>,
}

/// Checks a tree; the error is what is wrong with it, in the order of the text.
pub(super) fn check(tree: Tree<'_>, root: NodeId, fields: DeviceFields) -> Result<Checked<'_>, Vec<Issue>> {
    let mut types = Types::default();
    let unknown = types.id(Type::Dyn);
    let of_nodes = vec![unknown; tree.len()];
    let references = vec![Reference::Nothing; tree.len()];
    let (locals, tasks, issues) = (Vec::new(), vec![Task::Visit(root)], Vec::new());
    let declarations = declarations();
    let mut checker = Checker { tree, types, fields, declarations, of_nodes, references, locals, tasks, issues };
    checker.run();
    checker.finish(root)
}

impl<'s> Checker<'s> {
    fn run(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Visit(node) => self.visit(node),
                Task::Select(node) => self.select(node),
                Task::OptionalSelect(node) => self.optional_select(node),
                Task::Call(node) => self.call(node),
                Task::Method(node) => self.method(node),
                Task::List(node) => self.list(node),
                Task::Map(node) => self.map(node),
                Task::Message(node) => self.message(node),
                Task::FoldBody(node) => self.fold_body(node),
                Task::FoldCondition(node) => self.fold_condition(node),
                Task::FoldStep(node) => self.fold_step(node),
                Task::FoldEnd(node) => self.fold_end(node),
            }
        }
    }

    fn finish(mut self, root: NodeId) -> Result<Checked<'s>, Vec<Issue>> {
        for id in &mut self.of_nodes {
            *id = self.types.substituted(*id, Free::Dyn);
        }
        if self.types.is_too_large() {
            self.issues
                .push(Issue::new(Position::NOWHERE, "expression is too large: types nest too deeply".to_owned()));
        }
        let Self { tree, types, fields, of_nodes, references, mut issues, .. } = self;
        let checked = Checked { tree, root, types, fields, of_nodes, references };
        if issues.is_empty() {
            issues = validators::validate(&checked);
        }
        issues.sort_by_key(|issue| issue.at);
        if issues.is_empty() { Ok(checked) } else { Err(issues) }
    }

    fn issue(&mut self, node: NodeId, message: String) {
        let at = self.tree.node(node).at;
        self.issue_at(at, message);
    }

    fn issue_at(&mut self, at: Position, message: String) {
        self.issues.push(Issue::new(at, message));
    }

    fn set(&mut self, node: NodeId, of: TypeId) {
        if let Some(slot) = self.of_nodes.get_mut(node.index()) {
            *slot = of;
        }
    }

    fn set_shape(&mut self, node: NodeId, shape: Type) {
        let of = self.types.id(shape);
        self.set(node, of);
    }

    fn refer(&mut self, node: NodeId, reference: Reference) {
        if let Some(slot) = self.references.get_mut(node.index()) {
            *slot = reference;
        }
    }

    fn type_of(&mut self, node: NodeId) -> TypeId {
        self.of_nodes.get(node.index()).copied().unwrap_or_else(|| self.types.id(Type::Dyn))
    }

    /// Returns a node's type with what is known about its variables.
    fn known_type_of(&mut self, node: NodeId) -> TypeId {
        let of = self.type_of(node);
        self.types.substituted(of, Free::Stays)
    }

    fn shown(&mut self, of: TypeId) -> String {
        let of = self.types.substituted(of, Free::Stays);
        self.types.shown(of)
    }

    fn mismatch(&mut self, node: NodeId, expected: TypeId, found: TypeId) {
        let message = format!("expected type '{}' but found '{}'", self.shown(expected), self.shown(found));
        self.issue(node, message);
    }

    fn undeclared(&mut self, node: NodeId, name: &str) {
        self.issue(node, format!("undeclared reference to '{name}' (in container '')"));
        self.set_shape(node, Type::Error);
    }

    fn visit(&mut self, node: NodeId) {
        let task = match self.tree.kind(node) {
            Kind::Literal(literal) => {
                let shape = literal.shape();
                return self.set_shape(node, shape);
            }
            Kind::Ident { name, global } => {
                let (name, global) = (*name, *global);
                return self.ident(node, name, global);
            }
            Kind::Select { operand, .. } => {
                let operand = *operand;
                if !self.qualified(node) {
                    self.tasks.push(Task::Select(node));
                    self.tasks.push(Task::Visit(operand));
                }
                return;
            }
            Kind::Call { function: "_?._", .. } => Task::OptionalSelect(node),
            Kind::Call { arguments, .. } => {
                let arguments = arguments.clone();
                self.tasks.push(Task::Call(node));
                return self.later(&arguments);
            }
            Kind::List(_) => Task::List(node),
            Kind::Map(_) => Task::Map(node),
            Kind::Message { .. } => Task::Message(node),
            Kind::Fold(fold) => {
                let first = [fold.range, fold.init];
                self.tasks.push(Task::FoldBody(node));
                return self.later(&first);
            }
        };
        self.tasks.push(task);
        let children = self.tree.children(node);
        self.later(&children);
    }

    /// Visits nodes in their order before what is left to do.
    fn later(&mut self, nodes: &[NodeId]) {
        self.tasks.extend(nodes.iter().rev().map(|node| Task::Visit(*node)));
    }

    fn local(&self, name: &str) -> Option<&Local<'s>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn ident(&mut self, node: NodeId, name: &'s str, global: bool) {
        if let Some(Local { variable, of, .. }) = self.local(name).filter(|_| !global) {
            let (variable, of) = (*variable, *of);
            self.set(node, of);
            return self.refer(node, Reference::Local(variable));
        }
        match names::lookup(name.trim_start_matches('.'), &mut self.types) {
            Some((name, of)) => {
                self.set(node, of);
                self.refer(node, Reference::Name(name));
            }
            None => self.undeclared(node, name),
        }
    }

    /// Returns the dotted name that a chain of fields spells; `None` for anything else and for fields of a local
    /// variable.
    fn spelled(&self, node: NodeId) -> Option<String> {
        self.chain(node, Locals::Hide)
    }

    /// Returns the dotted name that a chain of fields spells.
    fn chain(&self, node: NodeId, locals: Locals) -> Option<String> {
        let (mut node, mut fields) = (node, Vec::new());
        loop {
            match self.tree.kind(node) {
                Kind::Select { operand, field, test: false } => {
                    fields.push(*field);
                    node = *operand;
                }
                Kind::Ident { name, global } if *global || locals == Locals::Ignored || self.local(name).is_none() => {
                    fields.push(name.trim_start_matches('.'));
                    fields.reverse();
                    return Some(fields.join("."));
                }
                _ => return None,
            }
        }
    }

    /// Looks a chain of fields up as one name.
    fn qualified(&mut self, node: NodeId) -> bool {
        let Some((name, of)) = self.spelled(node).and_then(|name| names::lookup(&name, &mut self.types)) else {
            return false;
        };
        self.set(node, of);
        self.refer(node, Reference::Name(name));
        true
    }

    fn select(&mut self, node: NodeId) {
        let Kind::Select { operand, field, test } = *self.tree.kind(node) else { return };
        let of = self.field_type(node, operand, field, false);
        let of = if test { self.types.id(Type::Bool) } else { of };
        self.set(node, of);
    }

    /// Checks `operand.?field`.
    fn optional_select(&mut self, node: NodeId) {
        let Kind::Call { arguments, .. } = self.tree.kind(node) else { return };
        let [operand, field] = *arguments.as_slice() else { return };
        let name = match self.tree.kind(field) {
            Kind::Literal(Literal::String(text)) => text.to_string(),
            _ => String::new(),
        };
        let of = self.field_type(node, operand, &name, true);
        self.set(node, of);
    }

    fn field_type(&mut self, node: NodeId, operand: NodeId, field: &str, optional: bool) -> TypeId {
        let of = self.known_type_of(operand);
        let (inner, is_optional) = match self.types.get(of) {
            Type::Optional(inner) => (inner, true),
            _ => (of, false),
        };
        let dynamic = self.types.id(Type::Dyn);
        let result = match self.types.get(inner) {
            Type::Map(_, value) => value,
            Type::Message(message) => self.message_field(node, message, field),
            Type::Variable(_) => {
                self.types.agree(dynamic, inner);
                dynamic
            }
            shape if shape.is_open() => dynamic,
            _ => {
                let message = format!("type '{}' does not support field selection", self.shown(inner));
                self.issue(node, message);
                dynamic
            }
        };
        if optional || is_optional { self.types.optional(result) } else { result }
    }

    fn message_field(&mut self, node: NodeId, message: &str, field: &str) -> TypeId {
        let missing = match names::field(message, field, self.fields, &mut self.types) {
            Ok(of) => return of,
            Err(missing) => missing,
        };
        let text = match missing {
            NoField::Undefined => format!("undefined field '{field}'"),
            NoField::Unknown => format!("unexpected failed resolution of '{message}'"),
        };
        self.issue(node, text);
        self.types.id(Type::Error)
    }
}

impl Literal<'_> {
    /// Returns the type of a literal.
    pub(super) const fn shape(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
        }
    }
}
