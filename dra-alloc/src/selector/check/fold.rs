//! Loops: the types of their variables.

use super::{Checker, Local, Role, Task, Variable};
use crate::selector::syntax::tree::{Fold, Kind, NodeId};
use crate::selector::types::{Type, TypeId};

/// Part of a loop that is checked next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// Range and initial value are checked.
    Body,
    Condition,
    Step,
    End,
}

impl<'s> Checker<'_, 's> {
    pub(super) fn fold(&mut self, node: NodeId, stage: Stage) {
        let Kind::Fold(fold) = self.tree.kind(node) else { return };
        let (next, part) = match stage {
            Stage::Body => {
                self.declare(node, fold);
                (Stage::Condition, fold.condition)
            }
            Stage::Condition => {
                let bool = self.types.id(Type::Bool);
                self.expect(fold.condition, bool);
                (Stage::Step, fold.step)
            }
            Stage::Step => {
                let accumulator = self.type_of(fold.init);
                self.expect(fold.step, accumulator);
                // The result does not see the other variables.
                self.locals.truncate(self.locals.len() - 1 - usize::from(fold.second.is_some()));
                (Stage::End, fold.result)
            }
            Stage::End => {
                self.locals.pop();
                let of = self.known_type_of(fold.result);
                return self.set(node, of);
            }
        };
        self.tasks.extend([Task::Fold(node, next), Task::Visit(part)]);
    }

    fn declare(&mut self, node: NodeId, fold: &Fold<'s>) {
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
                self.issue(
                    fold.range,
                    format!("expression of type '{shown}' cannot be range of a comprehension {expected}"),
                );
                let error = self.types.id(Type::Error);
                (error, error)
            }
        }
    }

    fn expect(&mut self, node: NodeId, expected: TypeId) {
        let found = self.type_of(node);
        if !self.types.agree(expected, found) {
            self.mismatch(node, expected, found);
        }
    }
}
