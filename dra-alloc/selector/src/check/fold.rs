//! Loops: the types of their variables.

use super::checked::{Role, Variable};
use super::{Checker, Local};
use crate::syntax::tree::{Fold, Kind, NodeId};
use crate::types::{Type, TypeId};

impl<'s> Checker<'_, 's> {
    /// Goes on with a loop whose range and initial value are checked: declares its variables.
    pub(super) fn declare(&mut self, node: NodeId) {
        let Kind::Fold(fold) = self.tree.kind(node) else { return };
        let accumulator = self.type_of(fold.init);
        let (first, second) = self.elements(fold);
        let local = |name, role, of| Local { name, variable: Variable { fold: node, role }, of };
        self.locals.push(local(fold.accumulator, Role::Accumulator, accumulator));
        self.locals.push(local(fold.variable, Role::First, first));
        self.locals.extend(fold.second.map(|name| local(name, Role::Second, second)));
    }

    /// Returns the types of the loop's variables.
    fn elements(&mut self, fold: &Fold<'s>) -> (TypeId, TypeId) {
        let range = self.known_type_of(fold.range);
        let dynamic = self.types.id(Type::Dyn);
        match self.types.get(range) {
            Type::List(element) if fold.second.is_some() => (self.types.id(Type::Int), element),
            Type::List(element) => (element, element),
            Type::Map(key, value) => (key, value),
            Type::Variable(_) | Type::Dyn | Type::Error => {
                self.types.agree(dynamic, range);
                (dynamic, dynamic)
            }
            _ => {
                let shown = self.shown(range);
                let expected = "(must be list, map, or dynamic)";
                let problem = format!("expression of type '{shown}' cannot be range of a comprehension {expected}");
                self.issue(fold.range, problem);
                let error = self.types.id(Type::Error);
                (error, error)
            }
        }
    }

    /// Goes on with a loop whose step is checked, for the result, which sees the accumulator alone.
    pub(super) fn step(&mut self, node: NodeId) {
        let Kind::Fold(fold) = self.tree.kind(node) else { return };
        let (accumulator, step) = (self.type_of(fold.init), self.type_of(fold.step));
        if !self.types.agree(accumulator, step) {
            self.mismatch(fold.step, accumulator, step);
        }
        self.locals.truncate(self.locals.len() - 1 - usize::from(fold.second.is_some()));
    }
}
