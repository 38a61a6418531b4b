//! Macros: calls that become other expressions while the text is read.

use super::parser::Parser;
use super::token::Position;
use super::tree::{Element, Fold, Kind, Literal, NodeId};

/// Name of the accumulator of a loop; no text can write it.
pub(in crate::selector) const RESULT: &str = "@result";
const UNUSED: &str = "#unused";
const SORTED: &str = "@__sortBy_input__";

type Arguments<'n> = &'n [NodeId];

/// Expands a call if it is a macro. Wrong arguments are told, and the call stays as it is.
pub(super) fn expand(
    parser: &mut Parser<'_>,
    name: &str,
    target: Option<NodeId>,
    arguments: Arguments<'_>,
    at: Position,
) -> Option<NodeId> {
    let mut expansion = Expansion { parser, at };
    let Some(target) = target else {
        return match (name, arguments) {
            ("has", [argument]) => expansion.has(*argument),
            _ => None,
        };
    };
    match (name, arguments) {
        ("all" | "exists" | "exists_one", [variable, predicate]) => {
            let variable = expansion.variable(*variable)?;
            Some(expansion.quantifier(name, target, variable, None, *predicate))
        }
        ("all" | "exists" | "exists_one" | "existsOne", [key, value, predicate]) => {
            let (key, value) = expansion.variables(*key, *value)?;
            Some(expansion.quantifier(name, target, key, Some(value), *predicate))
        }
        ("map", [variable, transform]) => expansion.map(target, *variable, None, *transform),
        ("map", [variable, filter, transform]) => expansion.map(target, *variable, Some(*filter), *transform),
        ("filter", [variable, filter]) => expansion.map(target, *variable, Some(*filter), *variable),
        ("transformList" | "transformMap" | "transformMapEntry", [key, value, rest @ .., transform])
            if rest.len() < 2 =>
        {
            let (key, value) = expansion.variables(*key, *value)?;
            Some(expansion.transform(name, target, (key, value), rest.first().copied(), *transform))
        }
        ("bind", [variable, init, body]) => expansion.bind(target, *variable, *init, *body),
        ("optMap" | "optFlatMap", [variable, body]) => expansion.optional(name, target, *variable, *body),
        ("sortBy", [variable, key]) => expansion.sort_by(target, *variable, *key),
        _ => None,
    }
}

/// Writer of an expansion: each node has the place of the call.
struct Expansion<'p, 's> {
    parser: &'p mut Parser<'s>,
    at: Position,
}

impl<'s> Expansion<'_, 's> {
    fn add(&mut self, kind: Kind<'s>) -> NodeId {
        self.parser.tree.add(kind, self.at)
    }

    fn literal(&mut self, value: Literal<'s>) -> NodeId {
        self.add(Kind::Literal(value))
    }

    fn bool(&mut self, value: bool) -> NodeId {
        self.literal(Literal::Bool(value))
    }

    fn ident(&mut self, name: &'s str) -> NodeId {
        self.add(Kind::Ident { name, global: false })
    }

    fn call(&mut self, function: &'s str, arguments: &[NodeId]) -> NodeId {
        self.add(Kind::Call { function, target: None, arguments: arguments.to_vec() })
    }

    fn method(&mut self, target: NodeId, function: &'s str, arguments: Vec<NodeId>) -> NodeId {
        self.add(Kind::Call { function, target: Some(target), arguments })
    }

    fn list(&mut self, elements: &[NodeId]) -> NodeId {
        self.add(Kind::List(elements.iter().map(|node| Element { key: None, value: *node, optional: false }).collect()))
    }

    fn fold(&mut self, fold: Fold<'s>) -> NodeId {
        self.add(Kind::Fold(Box::new(fold)))
    }

    fn refuse<T>(&mut self, node: NodeId, message: &str) -> Option<T> {
        let at = self.parser.tree.node(node).at;
        self.parser.issue(at, message);
        None
    }

    fn name(&self, node: NodeId) -> Option<&'s str> {
        match self.parser.tree.kind(node) {
            Kind::Ident { name, global: false } => Some(name),
            _ => None,
        }
    }

    /// Reads the name of a loop's variable.
    fn simple(&mut self, node: NodeId, message: &str) -> Option<&'s str> {
        match self.name(node) {
            Some("__result__") => self.refuse(node, "iteration variable overwrites accumulator variable"),
            Some(name) => Some(name),
            None => self.refuse(node, message),
        }
    }

    fn variable(&mut self, node: NodeId) -> Option<&'s str> {
        self.simple(node, "argument must be a simple name")
    }

    fn variables(&mut self, key: NodeId, value: NodeId) -> Option<(&'s str, &'s str)> {
        let names = (self.variable(key)?, self.variable(value)?);
        if names.0 == names.1 {
            return self.refuse(value, &format!("duplicate variable name: {}", names.1));
        }
        Some(names)
    }

    fn has(&mut self, argument: NodeId) -> Option<NodeId> {
        match self.parser.tree.kind(argument) {
            Kind::Select { operand, field, test: false } => {
                let (operand, field) = (*operand, *field);
                Some(self.add(Kind::Select { operand, field, test: true }))
            }
            _ => self.refuse(argument, "invalid argument to has() macro"),
        }
    }

    /// Writes `all`, `exists` and `exists_one`.
    fn quantifier(
        &mut self,
        name: &str,
        range: NodeId,
        variable: &'s str,
        second: Option<&'s str>,
        predicate: NodeId,
    ) -> NodeId {
        let (init, condition, step, result) = match name {
            "all" => {
                let init = self.bool(true);
                let go_on = self.ident(RESULT);
                let condition = self.call("@not_strictly_false", &[go_on]);
                let before = self.ident(RESULT);
                (init, condition, self.call("_&&_", &[before, predicate]), self.ident(RESULT))
            }
            "exists" => {
                let init = self.bool(false);
                let found = self.ident(RESULT);
                let not_found = self.call("!_", &[found]);
                let condition = self.call("@not_strictly_false", &[not_found]);
                let before = self.ident(RESULT);
                (init, condition, self.call("_||_", &[before, predicate]), self.ident(RESULT))
            }
            _ => {
                let init = self.literal(Literal::Int(0));
                let condition = self.bool(true);
                let (before, one) = (self.ident(RESULT), self.literal(Literal::Int(1)));
                let next = self.call("_+_", &[before, one]);
                let same = self.ident(RESULT);
                let step = self.call("_?_:_", &[predicate, next, same]);
                let (count, one) = (self.ident(RESULT), self.literal(Literal::Int(1)));
                (init, condition, step, self.call("_==_", &[count, one]))
            }
        };
        self.fold(Fold { range, variable, second, accumulator: RESULT, init, condition, step, result, binds: false })
    }

    /// Writes a loop over all elements that builds a list or map.
    fn built(
        &mut self,
        range: NodeId,
        (variable, second): (&'s str, Option<&'s str>),
        init: NodeId,
        filter: Option<NodeId>,
        next: NodeId,
    ) -> NodeId {
        let condition = self.bool(true);
        let step = match filter {
            Some(filter) => {
                let same = self.ident(RESULT);
                self.call("_?_:_", &[filter, next, same])
            }
            None => next,
        };
        let result = self.ident(RESULT);
        self.fold(Fold { range, variable, second, accumulator: RESULT, init, condition, step, result, binds: false })
    }

    fn map(&mut self, range: NodeId, variable: NodeId, filter: Option<NodeId>, transform: NodeId) -> Option<NodeId> {
        let name = self.simple(variable, "argument is not an identifier")?;
        Some(self.list_of(range, (name, None), filter, transform))
    }

    fn list_of(
        &mut self,
        range: NodeId,
        variables: (&'s str, Option<&'s str>),
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> NodeId {
        let init = self.list(&[]);
        let (before, one) = (self.ident(RESULT), self.list(&[transform]));
        let next = self.call("_+_", &[before, one]);
        self.built(range, variables, init, filter, next)
    }

    fn transform(
        &mut self,
        name: &str,
        range: NodeId,
        (key, value): (&'s str, &'s str),
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> NodeId {
        if name == "transformList" {
            return self.list_of(range, (key, Some(value)), filter, transform);
        }
        let init = self.add(Kind::Map(Vec::new()));
        let before = self.ident(RESULT);
        let next = if name == "transformMap" {
            let key = self.ident(key);
            self.call("cel.@mapInsert", &[before, key, transform])
        } else {
            self.call("cel.@mapInsert", &[before, transform])
        };
        self.built(range, (key, Some(value)), init, filter, next)
    }

    /// Writes a fold without rounds, whose initial value has a name in the result.
    fn binding(&mut self, accumulator: &'s str, init: NodeId, result: NodeId) -> NodeId {
        let range = self.list(&[]);
        let condition = self.bool(false);
        let step = self.ident(accumulator);
        let fold =
            Fold { range, variable: UNUSED, second: None, accumulator, init, condition, step, result, binds: true };
        self.fold(fold)
    }

    fn bind(&mut self, target: NodeId, variable: NodeId, init: NodeId, body: NodeId) -> Option<NodeId> {
        if self.name(target) != Some("cel") {
            return None;
        }
        match self.name(variable) {
            Some(name) => Some(self.binding(name, init, body)),
            None => self.refuse(variable, "cel.bind() variable names must be simple identifiers"),
        }
    }

    fn optional(&mut self, name: &str, target: NodeId, variable: NodeId, body: NodeId) -> Option<NodeId> {
        let Some(variable) = self.name(variable) else {
            return self.refuse(variable, &format!("{name}() variable name must be a simple identifier"));
        };
        let condition = self.method(target, "hasValue", Vec::new());
        let copy = self.parser.tree.copy(target);
        let value = self.method(copy, "value", Vec::new());
        let bound = self.binding(variable, value, body);
        let then = if name == "optMap" { self.call("optional.of", &[bound]) } else { bound };
        let none = self.call("optional.none", &[]);
        Some(self.call("_?_:_", &[condition, then, none]))
    }

    fn sort_by(&mut self, target: NodeId, variable: NodeId, key: NodeId) -> Option<NodeId> {
        let kind = self.parser.tree.kind(target);
        if !matches!(kind, Kind::List(_) | Kind::Select { .. } | Kind::Ident { .. } | Kind::Fold(_) | Kind::Call { .. })
        {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return self.refuse(target, message);
        }
        let name = self.simple(variable, "argument is not an identifier")?;
        let list = self.ident(SORTED);
        let keys = self.list_of(list, (name, None), None, key);
        let list = self.ident(SORTED);
        let sorted = self.method(list, "@sortByAssociatedKeys", vec![keys]);
        Some(self.binding(SORTED, target, sorted))
    }
}
