//! Checks of literals in an expression that has its types: elements of one type, readable durations, timestamps,
//! patterns and formats.

use super::checked::Checked;
use crate::error::Issue;
use crate::fault::TOO_LARGE;
use crate::functions::format::{Piece, pieces, refusal};
use crate::functions::regex::{Patterns, WITH_PATTERN, is_pattern};
use crate::scalar::time;
use crate::syntax::tree::{Element, Kind, Literal, NodeId};
use crate::types::{Type, TypeId};

/// Returns what is wrong with the literals of an expression, and adds its patterns to `patterns`.
pub(super) fn validate(checked: &Checked<'_>, patterns: &mut Patterns) -> Vec<Issue> {
    let mut validator = Validator { checked, issues: Vec::new(), searched: Vec::new() };
    // What is to be visited, and whether a call of `format` is around it.
    let mut waiting = vec![(checked.root, false)];
    while let Some((node, formats)) = waiting.pop() {
        let is_format = matches!(checked.tree.kind(node), Kind::Call { function: "format", .. });
        validator.visit(node, formats);
        waiting.extend(checked.tree.children(node).into_iter().map(|child| (child, formats || is_format)));
    }
    validator.limit(patterns);
    validator.issues
}

struct Validator<'c, 's> {
    checked: &'c Checked<'s>,
    issues: Vec<Issue>,
    /// Literals that are patterns.
    searched: Vec<NodeId>,
}

impl Validator<'_, '_> {
    fn issue(&mut self, node: NodeId, message: impl Into<String>) {
        self.issues.push(Issue::new(self.checked.tree.node(node).at, message.into()));
    }

    fn visit(&mut self, node: NodeId, within_format: bool) {
        match self.checked.tree.kind(node) {
            Kind::List(elements) if !within_format => self.list(elements),
            Kind::Map(entries) if !within_format => self.map(entries),
            Kind::Call { function, target, arguments } => self.call(node, function, *target, arguments),
            _ => {}
        }
    }

    /// Returns the type of an element; of one that is marked, the type of what the optional holds.
    fn element(&self, element: &Element) -> TypeId {
        let of = self.checked.type_id(element.value);
        match self.checked.types.get(of) {
            Type::Optional(inner) if element.optional => inner,
            _ => of,
        }
    }

    fn list(&mut self, elements: &[Element]) {
        let Some(first) = elements.first().map(|first| self.element(first)) else { return };
        if let Some(differing) = elements.iter().find(|element| self.element(element) != first) {
            self.compare(differing.value, first, self.element(differing));
        }
    }

    fn map(&mut self, entries: &[Element]) {
        let key = |entry: &Element| entry.key.unwrap_or_default();
        let Some(first) = entries.first() else { return };
        let (first_key, first_value) = (self.checked.type_id(key(first)), self.element(first));
        for entry in entries {
            self.compare(key(entry), first_key, self.checked.type_id(key(entry)));
            self.compare(entry.value, first_value, self.element(entry));
        }
    }

    fn compare(&mut self, node: NodeId, expected: TypeId, found: TypeId) {
        if expected != found {
            let (expected, found) = (self.checked.types.shown(expected), self.checked.types.shown(found));
            self.issue(node, format!("expected type '{expected}' but found '{found}'"));
        }
    }

    /// Finds the first pattern that is too large together with those before it. Patterns that are none are the matter of
    /// the call.
    fn limit(&mut self, patterns: &mut Patterns) {
        self.searched.sort_unstable();
        let checked = self.checked;
        let is_too_large = |node: &NodeId| {
            let added = checked.tree.text(*node).map(|text| patterns.add(text));
            matches!(added, Some(Err(reason)) if reason == TOO_LARGE)
        };
        if let Some(node) = self.searched.clone().into_iter().find(is_too_large) {
            self.issue(node, TOO_LARGE);
        }
    }

    fn call(&mut self, node: NodeId, function: &str, target: Option<NodeId>, arguments: &[NodeId]) {
        if WITH_PATTERN.contains(&function) {
            let pattern = target.iter().chain(arguments).nth(1).copied();
            self.searched.extend(pattern.filter(|pattern| self.checked.tree.text(*pattern).is_some()));
        }
        let Some(argument) = arguments.first().copied() else { return };
        if function == "format" {
            return self.format(node, target, argument);
        }
        let Kind::Literal(literal) = self.checked.tree.kind(argument) else { return };
        let is_readable = match (function, literal) {
            ("duration", Literal::String(text)) => time::parse_duration(text).is_some(),
            ("timestamp", Literal::String(text)) => {
                time::parse_timestamp(text).is_some_and(|time| time::bounded(time).is_ok())
            }
            ("timestamp", Literal::Int(seconds)) => time::at(*seconds).is_ok(),
            ("duration" | "timestamp", _) => false,
            ("matches", Literal::String(pattern)) => is_pattern(pattern),
            _ => return,
        };
        if !is_readable {
            self.issue(argument, format!("invalid {function} argument"));
        }
    }

    /// Checks the clauses of a format against the types of a list literal.
    fn format(&mut self, node: NodeId, target: Option<NodeId>, list: NodeId) {
        let checked = self.checked;
        let Some(format) = target.and_then(|target| checked.tree.text(target)) else { return };
        let Kind::List(elements) = self.checked.tree.kind(list) else { return };
        let nodes: Vec<NodeId> = elements.iter().map(|element| element.value).collect();
        let pieces = match pieces(format) {
            Ok(pieces) => pieces,
            Err(message) => return self.issue(node, message),
        };
        let clauses = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Clause(letter, _) => Some(letter),
            Piece::Text(_) => None,
        });
        let mut count = 0;
        for letter in clauses {
            let Some(argument) = nodes.get(count) else {
                return self.issue(node, format!("index {count} out of range"));
            };
            count += 1;
            let shown = self.missing_element(*argument).filter(|_| letter == 's').unwrap_or(*argument);
            if let Some(problem) = self.refused(letter, shown) {
                return self.issue(shown, format!("error during formatting: {problem}"));
            }
        }
        if count < nodes.len() {
            let found = nodes.len();
            let message = format!("too many arguments supplied to string.format (expected {count}, got {found})");
            self.issue(node, message);
        }
    }

    /// Returns the first element of a list literal that may be missing: as an optional it can't be shown.
    fn missing_element(&self, node: NodeId) -> Option<NodeId> {
        let Kind::List(elements) = self.checked.tree.kind(node) else { return None };
        let is_optional = |node| matches!(self.checked.type_of(node), Type::Optional(_));
        elements.iter().find(|element| element.optional && is_optional(element.value)).map(|element| element.value)
    }

    /// Says why a clause can't show an argument, by its type.
    fn refused(&self, letter: char, argument: NodeId) -> Option<String> {
        let of = self.checked.type_of(argument);
        let is_number = matches!(of, Type::Int | Type::Uint);
        let fits = match letter {
            's' => return self.unprintable(argument),
            'd' | 'o' => is_number,
            'b' => is_number || of == Type::Bool,
            'x' | 'X' => is_number || matches!(of, Type::String | Type::Bytes),
            _ => of == Type::Double,
        };
        (!fits && !matches!(of, Type::Dyn | Type::Error))
            .then(|| format!("{}, was given {}", refusal(letter), of.full_name()))
    }

    /// Says why the string clause can't show an argument.
    fn unprintable(&self, argument: NodeId) -> Option<String> {
        let mut of = self.checked.type_of(argument);
        loop {
            of = match of {
                Type::List(element) => self.checked.types.get(element),
                Type::Map(key, value) => {
                    let key = self.checked.types.get(key);
                    let is_key = matches!(key, Type::String | Type::Bool | Type::Int | Type::Uint) || key.is_open();
                    if !is_key {
                        let of = key.full_name();
                        return Some(format!("no formatting function for map key of type {of}"));
                    }
                    self.checked.types.get(value)
                }
                Type::Message(_) | Type::Opaque(_) | Type::Optional(_) | Type::Any => {
                    return Some(format!("{}, was given {}", refusal('s'), of.full_name()));
                }
                _ => return None,
            };
        }
    }
}
