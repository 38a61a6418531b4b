//! Macros: calls that become other expressions while the text is read.

use dra_attrs::internal::release::ListFunctions;

use super::tree::{Element, Fold, Kind, Literal, NodeId, Tree};
use crate::error::Issue;
use crate::position::Position;

/// Name of the accumulator of a loop; no text can write it.
const RESULT: &str = "@result";
const UNUSED: &str = "#unused";
const SORTED: &str = "@__sortBy_input__";

const NO_IDENTIFIER: &str = "argument is not an identifier";

/// Part of a loop that a macro becomes.
enum Part {
    /// The accumulator.
    Result,
    /// The macro's first variable.
    Variable,
    /// The macro's predicate or transformation.
    Body,
    Bool(bool),
    Int(i64),
    List(&'static [Self]),
    Map,
    Call(&'static str, &'static [Self]),
}

/// Initial value, condition, step and result of a loop.
type Loop = [Part; 4];

const ALL: Loop = [
    Part::Bool(true),
    Part::Call("@not_strictly_false", &[Part::Result]),
    Part::Call("_&&_", &[Part::Result, Part::Body]),
    Part::Result,
];
const EXISTS: Loop = [
    Part::Bool(false),
    Part::Call("@not_strictly_false", &[Part::Call("!_", &[Part::Result])]),
    Part::Call("_||_", &[Part::Result, Part::Body]),
    Part::Result,
];
const COUNT: Loop = [
    Part::Int(0),
    Part::Bool(true),
    Part::Call("_+_", &[Part::Result, Part::Int(1)]),
    Part::Call("_==_", &[Part::Result, Part::Int(1)]),
];
const LIST: Loop =
    [Part::List(&[]), Part::Bool(true), Part::Call("_+_", &[Part::Result, Part::List(&[Part::Body])]), Part::Result];
const MAP: Loop = [
    Part::Map,
    Part::Bool(true),
    Part::Call("cel.@mapInsert", &[Part::Result, Part::Variable, Part::Body]),
    Part::Result,
];
const ENTRIES: Loop =
    [Part::Map, Part::Bool(true), Part::Call("cel.@mapInsert", &[Part::Result, Part::Body]), Part::Result];

/// Macros that become loops, with their arguments: `v` is a variable, `f` the condition of a step, `b` the body, in place
/// of which the variable stands where there is none.
const LOOPS: [(&str, &str, &Loop); 16] = [
    ("all", "vb", &ALL),
    ("all", "vvb", &ALL),
    ("exists", "vb", &EXISTS),
    ("exists", "vvb", &EXISTS),
    ("exists_one", "vf", &COUNT),
    ("exists_one", "vvf", &COUNT),
    ("existsOne", "vvf", &COUNT),
    ("map", "vb", &LIST),
    ("map", "vfb", &LIST),
    ("filter", "vf", &LIST),
    ("transformList", "vvb", &LIST),
    ("transformList", "vvfb", &LIST),
    ("transformMap", "vvb", &MAP),
    ("transformMap", "vvfb", &MAP),
    ("transformMapEntry", "vvb", &ENTRIES),
    ("transformMapEntry", "vvfb", &ENTRIES),
];

/// Arguments of a macro that becomes a loop.
#[derive(Clone, Copy)]
struct Arguments {
    variable: NodeId,
    filter: Option<NodeId>,
    body: NodeId,
}

/// Expands a call if it is a macro. Wrong arguments are told, and the call stays as it is.
pub(super) fn expand(
    tree: &mut Tree<'_>,
    issues: &mut Vec<Issue>,
    (name, target, arguments): (&str, Option<NodeId>, &[NodeId]),
    at: Position,
    functions: ListFunctions,
) -> Option<NodeId> {
    let mut expansion = Expansion { tree, issues, at };
    match (name, target, arguments) {
        ("has", None, [argument]) => expansion.has(*argument),
        ("bind", Some(target), [variable, init, body]) => expansion.bind(target, *variable, *init, *body),
        ("optMap" | "optFlatMap", Some(target), [variable, body]) => expansion.optional(name, target, *variable, *body),
        ("sortBy", Some(target), [variable, key]) => match functions {
            ListFunctions::All => expansion.sort_by(target, *variable, *key),
            ListFunctions::Basic => None,
        },
        (_, Some(target), _) => expansion.comprehension(name, target, arguments),
        _ => None,
    }
}

/// Writer of an expansion: each node has the place of the call.
struct Expansion<'t, 's> {
    tree: &'t mut Tree<'s>,
    issues: &'t mut Vec<Issue>,
    at: Position,
}

impl<'s> Expansion<'_, 's> {
    fn add(&mut self, kind: Kind<'s>) -> NodeId {
        self.tree.add(kind, self.at)
    }

    fn ident(&mut self, name: &'s str) -> NodeId {
        self.add(Kind::Ident { name, global: false })
    }

    fn call(&mut self, function: &'s str, arguments: Vec<NodeId>) -> NodeId {
        self.add(Kind::Call { function, target: None, arguments })
    }

    fn method(&mut self, target: NodeId, function: &'s str, arguments: Vec<NodeId>) -> NodeId {
        self.add(Kind::Call { function, target: Some(target), arguments })
    }

    fn refuse<T>(&mut self, node: NodeId, message: &str) -> Option<T> {
        let at = self.tree.node(node).at;
        self.issues.push(Issue::new(at, message.to_owned()));
        None
    }

    fn name(&self, node: NodeId) -> Option<&'s str> {
        match self.tree.kind(node) {
            Kind::Ident { name, global: false } => Some(name),
            _ => None,
        }
    }

    /// Reads the name of a loop's variable.
    fn variable(&mut self, node: NodeId, message: &str) -> Option<&'s str> {
        match self.name(node) {
            Some("__result__") => self.refuse(node, "iteration variable overwrites accumulator variable"),
            Some(name) => Some(name),
            None => self.refuse(node, message),
        }
    }

    fn has(&mut self, argument: NodeId) -> Option<NodeId> {
        match *self.tree.kind(argument) {
            Kind::Select { operand, field, test: false } => Some(self.add(Kind::Select { operand, field, test: true })),
            _ => self.refuse(argument, "invalid argument to has() macro"),
        }
    }

    fn comprehension(&mut self, name: &str, range: NodeId, arguments: &[NodeId]) -> Option<NodeId> {
        let is_meant = |known: &str, letters: &str| known == name && letters.len() == arguments.len();
        let (_, letters, template) = LOOPS.iter().find(|(known, letters, _)| is_meant(known, letters))?;
        let of =
            |letter| letters.chars().zip(arguments).filter(move |(other, _)| *other == letter).map(|(_, node)| *node);
        let message = if matches!(name, "map" | "filter") { NO_IDENTIFIER } else { "argument must be a simple name" };
        let names = of('v').map(|variable| self.variable(variable, message)).collect::<Option<Vec<&'s str>>>()?;
        if let [key, value] = *names.as_slice()
            && key == value
        {
            return self.refuse(*arguments.get(1)?, &format!("duplicate variable name: {value}"));
        }
        let variable = of('v').next()?;
        let arguments = Arguments { variable, filter: of('f').next(), body: of('b').next().unwrap_or(variable) };
        Some(self.fold(range, &names, template, arguments))
    }

    /// Writes a loop. A step whose condition does not hold changes nothing.
    fn fold(&mut self, range: NodeId, names: &[&'s str], template: &Loop, arguments: Arguments) -> NodeId {
        let [init, condition, mut step, result] = template.each_ref().map(|part| self.part(part, arguments));
        if let Some(filter) = arguments.filter {
            let same = self.ident(RESULT);
            step = self.call("_?_:_", vec![filter, step, same]);
        }
        let (variable, second) = (names.first().copied().unwrap_or(UNUSED), names.get(1).copied());
        let fold = Fold { range, variable, second, accumulator: RESULT, init, condition, step, result, binds: false };
        self.add(Kind::Fold(Box::new(fold)))
    }

    fn part(&mut self, part: &Part, arguments: Arguments) -> NodeId {
        let kind = match part {
            Part::Variable => return arguments.variable,
            Part::Body => return arguments.body,
            Part::Result => return self.ident(RESULT),
            Part::Bool(value) => Kind::Literal(Literal::Bool(*value)),
            Part::Int(number) => Kind::Literal(Literal::Int(*number)),
            Part::List(items) => {
                let values = items.iter().map(|item| self.part(item, arguments));
                Kind::List(values.map(|value| Element { key: None, value, optional: false }).collect())
            }
            Part::Map => Kind::Map(Vec::new()),
            Part::Call(function, parts) => {
                let parts = parts.iter().map(|part| self.part(part, arguments)).collect();
                return self.call(function, parts);
            }
        };
        self.add(kind)
    }

    /// Writes a fold without rounds, whose initial value has a name in the result.
    fn binding(&mut self, accumulator: &'s str, init: NodeId, result: NodeId) -> NodeId {
        let range = self.add(Kind::List(Vec::new()));
        let condition = self.add(Kind::Literal(Literal::Bool(false)));
        let step = self.ident(accumulator);
        let (variable, second, binds) = (UNUSED, None, true);
        let fold = Fold { range, variable, second, accumulator, init, condition, step, result, binds };
        self.add(Kind::Fold(Box::new(fold)))
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
        let copy = self.tree.copy(target);
        let value = self.method(copy, "value", Vec::new());
        let bound = self.binding(variable, value, body);
        let then = if name == "optMap" { self.call("optional.of", vec![bound]) } else { bound };
        let none = self.call("optional.none", Vec::new());
        Some(self.call("_?_:_", vec![condition, then, none]))
    }

    fn sort_by(&mut self, target: NodeId, variable: NodeId, key: NodeId) -> Option<NodeId> {
        if let Kind::Literal(_) | Kind::Map(_) | Kind::Message { .. } = self.tree.kind(target) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return self.refuse(target, message);
        }
        let name = self.variable(variable, NO_IDENTIFIER)?;
        let list = self.ident(SORTED);
        let keys = self.fold(list, &[name], &LIST, Arguments { variable, filter: None, body: key });
        let list = self.ident(SORTED);
        let sorted = self.method(list, "@sortByAssociatedKeys", vec![keys]);
        Some(self.binding(SORTED, target, sorted))
    }
}
