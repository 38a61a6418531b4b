//! Lists, maps and messages.

use super::Checker;
use super::checked::Reference;
use crate::declarations::names::Name;
use crate::syntax::tree::{Element, NodeId};
use crate::types::{Type, TypeId};

impl Checker<'_, '_> {
    pub(super) fn list(&mut self, node: NodeId, elements: &[Element]) {
        let (_, values) = self.joined(elements);
        let element = values.unwrap_or_else(|| self.types.fresh());
        let of = self.types.id(Type::List(element));
        self.set(node, of);
    }

    pub(super) fn map(&mut self, node: NodeId, entries: &[Element]) {
        let (keys, values) = self.joined(entries);
        let key = keys.unwrap_or_else(|| self.types.fresh());
        let value = values.unwrap_or_else(|| self.types.fresh());
        let of = self.types.id(Type::Map(key, value));
        self.set(node, of);
    }

    /// Returns the types that cover those of all keys and of all values.
    fn joined(&mut self, elements: &[Element]) -> (Option<TypeId>, Option<TypeId>) {
        let (mut keys, mut values) = (None, None);
        for element in elements {
            if let Some(key) = element.key {
                let key = self.type_of(key);
                keys = Some(self.join(keys, key));
            }
            let value = self.element(element);
            values = Some(self.join(values, value));
        }
        (keys, values)
    }

    /// Returns the type of an element; one that is marked has to be optional.
    fn element(&mut self, element: &Element) -> TypeId {
        let of = self.type_of(element.value);
        if !element.optional {
            return of;
        }
        match self.types.get(of) {
            Type::Optional(inner) => inner,
            shape => {
                if shape != Type::Dyn {
                    let expected = self.types.optional(of);
                    self.mismatch(element.value, expected, of);
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

    pub(super) fn message(&mut self, node: NodeId, shown: &str, fields: &[Element]) {
        let name = shown.trim_start_matches('.');
        let Some((found, of)) = self.declarations.lookup(name, &mut self.types) else {
            self.undeclared(node, shown);
            return;
        };
        let is_type = !matches!(found, Name::Device | Name::NullValue);
        let inner = match self.types.get(of) {
            Type::TypeOf(inner) if is_type && self.declarations.is_message(name) => Some(inner),
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
            let value = self.element(field);
            self.field(name, field.key.unwrap_or_default(), value);
        }
    }

    fn field(&mut self, message: &str, name: NodeId, value: TypeId) {
        let field = self.tree.text(name).unwrap_or_default();
        let Some(of) = self.declarations.field(message, field, self.fields, &mut self.types) else {
            return self.issue(name, format!("undefined field '{field}'"));
        };
        if !self.types.agree(of, value) {
            let (expected, found) = (self.shown(of), self.shown(value));
            let message = format!("expected type of field '{field}' is '{expected}' but provided type is '{found}'");
            self.issue(name, message);
        }
    }
}
