//! Checker: gives each part of an expression its type, and each call its overloads.
//!
//! Tests: `tests/it/language.rs`, `tests/it/releases.rs`.

mod call;
mod checked;
mod fold;
mod literals;
mod validators;

use super::declarations::names::DeviceFields;
use super::declarations::{Declarations, declarations};
use super::error::Issue;
use super::functions::regex::Patterns;
use super::position::Position;
use super::syntax::tree::{Kind, Literal, NodeId, Tree};
use super::types::{DEVICE, Free, Type, TypeId, Types};
pub(super) use checked::{Checked, Reference, Role, Variable};

/// Work that is left; the last task is done first.
#[derive(Clone, Copy, Debug)]
enum Task {
    Visit(NodeId),
    /// The arguments of a call are checked, the target is not.
    Call(NodeId),
    /// All parts are checked.
    Leave(NodeId),
    /// Range and initial value of a loop are checked.
    Declare(NodeId),
    /// The step of a loop is checked.
    Step(NodeId),
}

struct Local<'s> {
    name: &'s str,
    variable: Variable,
    of: TypeId,
}

struct Checker<'t, 's> {
    tree: &'t Tree<'s>,
    types: Types,
    fields: DeviceFields,
    declarations: &'static Declarations,
    of_nodes: Vec<TypeId>,
    references: Vec<Reference>,
    order: Vec<NodeId>,
    locals: Vec<Local<'s>>,
    tasks: Vec<Task>,
    issues: Vec<Issue>,
    /// Calls of functions whose names are what stood before the call and the call's own.
    renamed: Vec<(NodeId, &'static str)>,
}

/// Checks a tree; the error is what is wrong with it, in the order of the text.
pub(super) fn check(mut tree: Tree<'_>, root: NodeId, fields: DeviceFields) -> Result<Checked<'_>, Vec<Issue>> {
    let mut types = Types::default();
    let of_nodes = vec![types.id(Type::Dyn); tree.len()];
    let mut checker = Checker {
        tree: &tree,
        types,
        fields,
        declarations: declarations(),
        of_nodes,
        references: vec![Reference::Nothing; tree.len()],
        order: Vec::with_capacity(tree.len()),
        locals: Vec::new(),
        tasks: vec![Task::Visit(root)],
        issues: Vec::new(),
        renamed: Vec::new(),
    };
    while let Some(task) = checker.tasks.pop() {
        match task {
            Task::Visit(node) => checker.visit(node),
            Task::Call(node) => checker.call(node),
            Task::Leave(node) => checker.leave(node),
            Task::Declare(node) => checker.declare(node),
            Task::Step(node) => checker.step(node),
        }
    }
    let Checker { mut types, mut of_nodes, references, order, mut issues, renamed, .. } = checker;
    for id in &mut of_nodes {
        *id = types.substituted(*id, Free::Dyn);
    }
    for (node, name) in renamed {
        tree.set_function(node, name);
    }
    if types.is_too_large {
        issues.push(Issue::new(Position::NOWHERE, "expression is too large: types nest too deeply".to_owned()));
    }
    let mut patterns = Patterns::default();
    let mut expression =
        Checked { tree, root, types, fields, of_nodes, references, order, patterns: Patterns::default() };
    if issues.is_empty() {
        issues = validators::validate(&expression, &mut patterns);
        expression.patterns = patterns;
    }
    issues.sort_by_key(|issue| issue.at);
    if issues.is_empty() { Ok(expression) } else { Err(issues) }
}

impl<'s> Checker<'_, 's> {
    fn issue(&mut self, node: NodeId, message: String) {
        self.issues.push(Issue::new(self.tree.node(node).at, message));
    }

    fn set(&mut self, node: NodeId, of: TypeId) {
        self.order.push(node);
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

    fn type_of(&self, node: NodeId) -> TypeId {
        self.of_nodes.get(node.index()).copied().unwrap_or_default()
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
        let tree = self.tree;
        match tree.kind(node) {
            Kind::Literal(literal) => return self.set_shape(node, literal.shape()),
            Kind::Ident { name, global } => return self.ident(node, name, *global),
            Kind::Select { .. } if self.qualified(node) => return,
            Kind::Call { function, arguments, .. } if *function != "_?._" => {
                self.tasks.push(Task::Call(node));
                return self.later(arguments);
            }
            Kind::Fold(fold) => {
                self.tasks.extend([Task::Leave(node), Task::Visit(fold.result), Task::Step(node)]);
                self.later(&[fold.condition, fold.step]);
                self.tasks.push(Task::Declare(node));
                return self.later(&[fold.range, fold.init]);
            }
            _ => self.tasks.push(Task::Leave(node)),
        }
        self.later(&tree.children(node));
    }

    /// Gives a node its type whose parts have theirs.
    fn leave(&mut self, node: NodeId) {
        match self.tree.kind(node) {
            Kind::Select { operand, field, test } => {
                let of = self.field_type(node, *operand, field, false);
                let of = if *test { self.types.id(Type::Bool) } else { of };
                self.set(node, of);
            }
            Kind::Call { function: "_?._", arguments, .. } => {
                let [operand, field] = *arguments.as_slice() else { return };
                let of = self.field_type(node, operand, self.tree.text(field).unwrap_or_default(), true);
                self.set(node, of);
            }
            Kind::Call { function, target, arguments } => self.resolve(node, function, *target, arguments),
            Kind::List(elements) => self.list(node, elements),
            Kind::Map(entries) => self.map(node, entries),
            Kind::Message { name, fields } => self.message(node, name, fields),
            Kind::Fold(fold) => {
                self.locals.pop();
                let of = self.known_type_of(fold.result);
                self.set(node, of);
            }
            Kind::Literal(_) | Kind::Ident { .. } => {}
        }
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
        match self.declarations.lookup(name.trim_start_matches('.'), &mut self.types) {
            Some((name, of)) => {
                self.set(node, of);
                self.refer(node, Reference::Name(name));
            }
            None => self.undeclared(node, name),
        }
    }

    /// Returns the dotted name that a chain of fields spells, and whether no local variable hides it.
    fn chain(&self, mut node: NodeId) -> Option<(String, bool)> {
        let mut fields = Vec::new();
        loop {
            match self.tree.kind(node) {
                Kind::Select { operand, field, test: false } => {
                    fields.push(*field);
                    node = *operand;
                }
                Kind::Ident { name, global } => {
                    fields.push(name.trim_start_matches('.'));
                    fields.reverse();
                    return Some((fields.join("."), *global || self.local(name).is_none()));
                }
                _ => return None,
            }
        }
    }

    /// Looks a chain of fields up as one name.
    fn qualified(&mut self, node: NodeId) -> bool {
        let Some((name, true)) = self.chain(node) else { return false };
        let Some((name, of)) = self.declarations.lookup(&name, &mut self.types) else { return false };
        self.set(node, of);
        self.refer(node, Reference::Name(name));
        true
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
        if let Some(of) = self.declarations.field(message, field, self.fields, &mut self.types) {
            return of;
        }
        let is_hidden = message.starts_with("kubernetes.") && message != DEVICE;
        let text = if is_hidden {
            format!("unexpected failed resolution of '{message}'")
        } else {
            format!("undefined field '{field}'")
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
