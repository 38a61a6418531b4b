//! Calls: which overloads they can mean.

use super::checked::Reference;
use super::{Checker, Task};
use crate::declarations::Overload;
use crate::syntax::tree::{Kind, NodeId};
use crate::types::{Free, Type, TypeId};

impl Checker<'_, '_> {
    /// Goes on with a call whose arguments are checked: a name with dots before the call may be that of the function.
    pub(super) fn call(&mut self, node: NodeId) {
        let Kind::Call { function, target, arguments } = self.tree.kind(node) else { return };
        let Some(target) = *target else {
            let known = self.declared(function.trim_start_matches('.'));
            self.renamed.extend(known.map(|known| (node, known)));
            return self.resolve(node, known.unwrap_or(function), None, arguments);
        };
        // A local variable hides no function.
        if let Some((prefix, _)) = self.chain(target) {
            let name = format!("{prefix}.{function}");
            if let Some(known) = self.declared(&name) {
                self.renamed.push((node, known));
                return self.resolve(node, known, None, arguments);
            }
        }
        self.tasks.push(Task::Leave(node));
        self.tasks.push(Task::Visit(target));
    }

    /// Returns the name of a function as it is declared.
    fn declared(&self, name: &str) -> Option<&'static str> {
        self.declarations.declared(name, self.fields).map(|declared| declared.function.name)
    }

    pub(super) fn resolve(&mut self, node: NodeId, function: &str, target: Option<NodeId>, arguments: &[NodeId]) {
        let Some(declared) = self.declarations.declared(function, self.fields) else {
            return self.undeclared(node, function);
        };
        let has_target = target.is_some();
        let nodes: Vec<NodeId> = target.iter().chain(arguments).copied().collect();
        let types: Vec<TypeId> = nodes.iter().map(|node| self.type_of(*node)).collect();
        if matches!(function, "_&&_" | "_||_") {
            return self.logic(node, &declared.overloads, &nodes, &types);
        }
        let (mut matching, mut result) = (Vec::new(), None);
        for overload in &declared.overloads {
            let Some(returned) = self.matches(overload, has_target, &types) else { continue };
            matching.push(overload);
            result = Some(match result {
                Some(former) if former != returned && !self.types.get(former).is_open() => self.types.id(Type::Dyn),
                Some(former) => former,
                None => returned,
            });
        }
        match result {
            Some(result) => {
                self.set(node, result);
                self.refer(node, Reference::Overloads(matching));
            }
            None => self.no_overload(node, function, has_target, &types),
        }
    }

    /// Returns the type of a call's result if an overload takes arguments of these types.
    fn matches(&mut self, overload: &Overload, has_target: bool, types: &[TypeId]) -> Option<TypeId> {
        if overload.has_target != has_target || overload.parameters.len() != types.len() {
            return None;
        }
        let (declared, mut variables) = (&self.declarations.types, Vec::new());
        let mut instance = |of: TypeId| self.types.instance(of, declared, &mut variables);
        let parameters: Vec<TypeId> = overload.parameters.iter().map(|of| instance(*of)).collect();
        let result = instance(overload.result);
        let agrees = self.types.agree_all(types, &parameters);
        agrees.then(|| self.types.substituted(result, Free::Stays))
    }

    fn logic(&mut self, node: NodeId, overloads: &'static [Overload], nodes: &[NodeId], types: &[TypeId]) {
        let bool = self.types.id(Type::Bool);
        let mut result = Type::Bool;
        for (operand, of) in nodes.iter().zip(types) {
            if !self.types.agree(*of, bool) {
                self.mismatch(*operand, bool, *of);
                result = Type::Error;
            }
        }
        self.set_shape(node, result);
        self.refer(node, Reference::Overloads(overloads.iter().collect()));
    }

    fn no_overload(&mut self, node: NodeId, function: &str, has_target: bool, types: &[TypeId]) {
        let types: Vec<TypeId> = types.iter().map(|of| self.types.substituted(*of, Free::Dyn)).collect();
        let shown: Vec<String> = types.iter().map(|of| self.types.shown(*of)).collect();
        let (target, arguments) = match shown.split_first() {
            Some((target, arguments)) if has_target => (format!("{target}."), arguments),
            _ => (String::new(), shown.as_slice()),
        };
        let signature = format!("{target}({})", arguments.join(", "));
        self.issue(node, format!("found no matching overload for '{function}' applied to '{signature}'"));
        self.set_shape(node, Type::Error);
    }
}
