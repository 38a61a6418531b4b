//! Lists, maps and messages.

use super::{Checker, Reference};
use crate::selector::declarations::names::{self, Name};
use crate::selector::syntax::token::Position;
use crate::selector::syntax::tree::{Element, Entry, Field, NodeId};
use crate::selector::types::{Type, TypeId};

impl Checker<'_, '_> {
    pub(super) fn list(&mut self, node: NodeId, elements: &[Element]) {
        let mut joined = None;
        for element in elements {
            let of = self.element(element.node, element.optional);
            joined = Some(self.join(joined, of));
        }
        let element = joined.unwrap_or_else(|| self.types.fresh());
        let of = self.types.list(element);
        self.set(node, of);
    }

    pub(super) fn map(&mut self, node: NodeId, entries: &[Entry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.type_of(entry.key);
            keys = Some(self.join(keys, key));
            let value = self.element(entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.types.fresh());
        let value = values.unwrap_or_else(|| self.types.fresh());
        let of = self.types.map(key, value);
        self.set(node, of);
    }

    /// Returns the type of an element; one that is marked has to be optional.
    fn element(&mut self, node: NodeId, is_marked: bool) -> TypeId {
        let of = self.type_of(node);
        if !is_marked {
            return of;
        }
        match self.types.get(of) {
            Type::Optional(inner) => inner,
            shape => {
                if shape != Type::Dyn {
                    let expected = self.types.optional(of);
                    self.mismatch(node, expected, of);
                }
                of
            }
        }
    }

    fn join(&mut self, joined: Option<TypeId>, next: TypeId) -> TypeId {
        match joined {
            None => next,
            Some(joined) if self.types.agree(joined, next) => self.types.more_general(joined, next),
            Some(_) => self.types.id(Type::Dyn),
        }
    }

    pub(super) fn message(&mut self, node: NodeId, shown: &str, fields: &[Field<'_>]) {
        let name = shown.trim_start_matches('.');
        let Some((found, of)) = names::lookup(name, &mut self.types) else {
            self.undeclared(node, shown);
            return;
        };
        let is_type = !matches!(found, Name::Device | Name::NullValue);
        let inner = match self.types.get(of) {
            Type::TypeOf(inner) if is_type && names::is_message(name) => Some(inner),
            _ => None,
        };
        if let Some(inner) = inner {
            self.set(node, inner);
        } else {
            let problem = if is_type { "message type" } else { "type" };
            self.issue(node, format!("'{name}' is not a {problem}"));
            self.set_shape(node, Type::Error);
        }
        self.refer(node, Reference::Name(found));
        for field in fields {
            let value = self.element(field.value, field.optional);
            self.field(name, field.name, value, field.at);
        }
    }

    fn field(&mut self, message: &str, field: &str, value: TypeId, at: Position) {
        let Ok(of) = names::field(message, field, self.fields, &mut self.types) else {
            return self.issue_at(at, format!("undefined field '{field}'"));
        };
        if !self.types.agree(of, value) {
            let (expected, found) = (self.shown(of), self.shown(value));
            let message = format!("expected type of field '{field}' is '{expected}' but provided type is '{found}'");
            self.issue_at(at, message);
        }
    }
}
