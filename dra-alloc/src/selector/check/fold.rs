//! Loops: the types of their variables.

use super::{Checker, Local, Role, Task, Variable};
use crate::selector::syntax::tree::{Fold, Kind, NodeId};
use crate::selector::types::{Type, TypeId};

impl<'s> Checker<'s> {
    fn fold(&self, node: NodeId) -> Option<Fold<'s>> {
        match self.tree.kind(node) {
            Kind::Fold(fold) => Some(**fold),
            _ => None,
        }
    }

    /// Goes on with a loop whose range and initial value are checked.
    pub(super) fn fold_body(&mut self, node: NodeId) {
        let Some(fold) = self.fold(node) else { return };
        let accumulator = self.type_of(fold.init);
        let (first, second) = self.elements(&fold);
        let local = |name, role, of| Local { name, variable: Variable { fold: node, role }, of };
        self.locals.push(local(fold.accumulator, Role::Accumulator, accumulator));
        self.locals.push(local(fold.variable, Role::First, first));
        self.locals.extend(fold.second.map(|name| local(name, Role::Second, second)));
        self.tasks.push(Task::FoldCondition(node));
        self.tasks.push(Task::Visit(fold.condition));
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
                self.issue(
                    fold.range,
                    format!("expression of type '{shown}' cannot be range of a comprehension {expected}"),
                );
                let error = self.types.id(Type::Error);
                (error, error)
            }
        }
    }

    pub(super) fn fold_condition(&mut self, node: NodeId) {
        let Some(fold) = self.fold(node) else { return };
        let bool = self.types.id(Type::Bool);
        self.expect(fold.condition, bool);
        self.tasks.push(Task::FoldStep(node));
        self.tasks.push(Task::Visit(fold.step));
    }

    /// Goes on with a loop whose step is checked: its result does not see the variables.
    pub(super) fn fold_step(&mut self, node: NodeId) {
        let Some(fold) = self.fold(node) else { return };
        let accumulator = self.type_of(fold.init);
        self.expect(fold.step, accumulator);
        self.locals.truncate(self.locals.len() - 1 - usize::from(fold.second.is_some()));
        self.tasks.push(Task::FoldEnd(node));
        self.tasks.push(Task::Visit(fold.result));
    }

    pub(super) fn fold_end(&mut self, node: NodeId) {
        self.locals.pop();
        let Some(fold) = self.fold(node) else { return };
        let of = self.known_type_of(fold.result);
        self.set(node, of);
    }

    fn expect(&mut self, node: NodeId, expected: TypeId) {
        let found = self.type_of(node);
        if !self.types.agree(expected, found) {
            self.mismatch(node, expected, found);
        }
    }
}
