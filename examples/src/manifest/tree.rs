//! Documents as trees whose parts have line numbers.

use std::fmt;

use dra_attrs::saturate_times;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Spanned};

/// Deepest nesting of maps and lists. Objects of Kubernetes nest about 15 deep.
const MAX_DEPTH: usize = 64;

/// Number of bytes, and of parser events, that aliases may repeat in a document of any size.
const LEAST_REPEATED: usize = 10_000;

/// Step of a path into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

/// Returns a path in the API server's form: `spec.devices[0].attributes[example.com/model]`.
pub(crate) fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        let part = match step {
            Step::Index(index) => format!("[{index}]"),
            Step::Key(key) if key.contains(['.', '/']) => format!("[{key}]"),
            Step::Key(key) if text.is_empty() => key.clone(),
            Step::Key(key) => format!(".{key}"),
        };
        text.push_str(&part);
    }
    text
}

/// Returns the non-empty documents of a text, each with the line on which it starts, from 0.
///
/// A line that starts with `---` or `...` always separates documents, so that a document that can't be parsed does not
/// affect the others.
pub(super) fn documents(text: &str) -> Vec<(u64, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut documents, mut start, mut start_line, mut offset) = (Vec::new(), 0, 0, 0);
    for (number, line) in (0..).zip(text.split_inclusive('\n')) {
        if is_boundary(line) {
            documents.push((start_line, text.get(start..offset).unwrap_or_default()));
            (start, start_line) = (offset.saturating_add(3), number);
        }
        offset = offset.saturating_add(line.len());
    }
    documents.push((start_line, text.get(start..).unwrap_or_default()));
    documents.retain(|(_, document)| !is_empty(document));
    documents
}

fn is_boundary(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Returns true if the document has only comments and directives.
fn is_empty(document: &str) -> bool {
    document.lines().all(|line| line.starts_with('%') || matches!(line.trim_start().chars().next(), None | Some('#')))
}

/// Paths of fields that one object has and another has not.
#[derive(Debug, Default)]
pub(super) struct OnlyIn {
    pub(super) filled: Vec<Vec<Step>>,
    pub(super) empty: Vec<Vec<Step>>,
}

/// Returns the paths of the non-empty fields that `given` has and `other` has not. Elements of lists are compared in
/// pairs.
pub(crate) fn only_in(given: &Value, other: &Value) -> Vec<Vec<Step>> {
    fields_only_in(given, other).filled
}

/// Returns the paths of the fields that `given` has and `other` has not, as [`only_in`] does.
pub(super) fn fields_only_in(given: &Value, other: &Value) -> OnlyIn {
    let mut found = OnlyIn::default();
    collect_only_in(given, other, &mut Vec::new(), &mut found);
    found
}

fn collect_only_in(given: &Value, other: &Value, path: &mut Vec<Step>, found: &mut OnlyIn) {
    match (given, other) {
        (Value::Object(given), Value::Object(other)) => {
            for (key, value) in given {
                path.push(Step::Key(key.clone()));
                match other.get(key) {
                    Some(other) => collect_only_in(value, other, path, found),
                    None if is_blank(value) => found.empty.push(path.clone()),
                    None => found.filled.push(path.clone()),
                }
                path.pop();
            }
        }
        (Value::Array(given), Value::Array(other)) => {
            for (index, (given, other)) in given.iter().zip(other).enumerate() {
                path.push(Step::Index(index));
                collect_only_in(given, other, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// Document, or a part of one.
#[derive(Debug)]
pub(super) struct Tree {
    /// Line number from 1; 0 if unknown.
    line: u64,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Scalar(Value),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Parses one document that starts after `lines_before` lines.
    ///
    /// # Errors
    /// The line, if known, and a description of the error.
    pub(super) fn parse(document: &str, lines_before: u64) -> Result<Self, (Option<u64>, String)> {
        // Repetitions by aliases are bounded by the size of the document: they would make one of any size out of it.
        let repeated = document.len().max(LEAST_REPEATED);
        let budget = serde_saphyr::budget! {
            max_events: 100_000_000, max_nodes: 100_000_000, max_depth: MAX_DEPTH,
            max_total_scalar_bytes: document.len().saturating_add(repeated),
        };
        let aliases = serde_saphyr::alias_limits! { max_total_replayed_events: repeated };
        let options = serde_saphyr::options! {
            strict_booleans: true, with_snippet: false, budget: budget, alias_limits: aliases,
        };
        let tree = serde_saphyr::from_str_with_options(document, options).map_err(|error| {
            let line = error.location().map(|location| location.line().saturating_add(lines_before));
            (line, reason(&error))
        });
        tree.map(|mut tree: Self| {
            tree.move_down(lines_before);
            tree
        })
    }

    fn move_down(&mut self, lines: u64) {
        self.line = self.line.saturating_add(lines);
        match &mut self.part {
            Part::Scalar(_) => {}
            Part::List(elements) => elements.iter_mut().for_each(|element| element.move_down(lines)),
            Part::Map(fields) => fields.iter_mut().for_each(|(_, value)| value.move_down(lines)),
        }
    }

    /// Returns the line on which the part starts.
    pub(super) fn line(&self) -> Option<u64> {
        Some(self.line).filter(|line| *line > 0)
    }

    /// Returns the path that a text names, such as `spec.devices[0].attributes[model]`. Keys may have any characters: the
    /// longest one that fits is taken. Returns the rest of the text as well, which the document does not have.
    pub(super) fn path_of<'t>(&self, text: &'t str) -> (Vec<Step>, &'t str) {
        let (mut tree, mut rest, mut path) = (self, text, Vec::new());
        while let Some((step, next, length)) = tree.step(rest) {
            path.push(step);
            tree = next;
            rest = rest.get(length..).unwrap_or_default();
        }
        (path, rest)
    }

    /// Returns the first step of a text below a part, with the part there and the length of the step.
    fn step(&self, text: &str) -> Option<(Step, &Self, usize)> {
        let length_of = |key: &str| {
            let forms = [format!("[{key}]"), format!(".{key}"), key.to_owned()];
            let length = forms.into_iter().find(|form| text.starts_with(form.as_str()))?.len();
            text.get(length..).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])).then_some(length)
        };
        match &self.part {
            Part::Scalar(_) => None,
            Part::Map(fields) => {
                let found = fields.iter().filter_map(|(key, value)| Some((key, value, length_of(key)?)));
                let (key, value, length) = found.max_by_key(|(_, _, length)| *length)?;
                Some((Step::Key(key.clone()), value, length))
            }
            Part::List(elements) => {
                let (index, _) = text.strip_prefix('[')?.split_once(']')?;
                let element = elements.get(index.parse::<usize>().ok()?)?;
                Some((Step::Index(index.parse().ok()?), element, index.len().saturating_add(2)))
            }
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.part, Part::List(_))
    }

    /// Returns the keys of a map, in their order; none for other values.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let fields: &[(String, Self)] = if let Part::Map(fields) = &self.part { fields } else { &[] };
        fields.iter().map(|(key, _)| key.as_str())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.part, Part::Scalar(Value::Null))
    }

    /// Returns the value of a field.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Part::Map(fields) = &self.part else { return None };
        fields.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    /// Returns the text at the end of a path.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        path.iter().try_fold(self, |tree, key| tree.get(key))?.as_text()
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Part::Scalar(Value::String(text)) = &self.part { Some(text) } else { None }
    }

    /// Returns the elements of a list; none for other values.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Self> {
        let elements: &[Self] = if let Part::List(elements) = &self.part { elements } else { &[] };
        elements.iter()
    }

    /// Returns the line of the value at a path, or of the last existing part of the path.
    pub(super) fn line_at(&self, path: &[Step]) -> Option<u64> {
        let (mut tree, mut line) = (self, self.line);
        for step in path {
            let next = match (step, &tree.part) {
                (Step::Key(key), _) => tree.get(key),
                (Step::Index(index), Part::List(elements)) => elements.get(*index),
                _ => None,
            };
            let Some(next) = next else { break };
            (tree, line) = (next, next.line);
        }
        Some(line).filter(|line| *line > 0)
    }

    /// Returns kind and name of the object, as far as the document has them.
    pub(super) fn described(&self, kind: &str) -> String {
        let name = self.text(&["metadata", "name"]).unwrap_or_default();
        let namespace = self.text(&["metadata", "namespace"]).filter(|namespace| !namespace.is_empty());
        let name = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
        let parts: Vec<&str> = [kind, &name].into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }

    /// Returns the value without `apiVersion` and `kind`, since it may be read as another version, and with times in the
    /// range of their types.
    pub(super) fn object_json(&self) -> Value {
        let mut json = self.json();
        if let Value::Object(fields) = &mut json {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        saturate_times(&mut json);
        json
    }

    fn json(&self) -> Value {
        match &self.part {
            Part::Scalar(value) => value.clone(),
            Part::List(elements) => elements.iter().map(Self::json).collect(),
            Part::Map(fields) => fields.iter().map(|(key, value)| (key.clone(), value.json())).collect(),
        }
    }
}

/// Returns the reason on one line, without the line number, which the caller corrects for preceding documents.
fn reason(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => reason(error),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget {
            breach: BudgetBreach::ScalarBytes { .. } | BudgetBreach::RecordedAnchorBytes { .. }, ..
        }
        | Error::Budget { breach: BudgetBreach::Aliases { .. } | BudgetBreach::RecordedAnchorEvents { .. }, .. }
        | Error::AliasReplayLimitExceeded { .. } => "anchors and aliases repeat more than the document has".to_owned(),
        error => words(error),
    }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH}")
}

/// Returns the words of the parser, without advice to programmers.
fn words(error: &Error) -> String {
    let text = error.to_string();
    // The scanner has a limit of its own, which is not told apart by its type.
    if text.starts_with("recursion limit exceeded") {
        return too_deep();
    }
    let place = error.location().map(|location| format!(" at line {}, column {}", location.line(), location.column()));
    let text = place.map_or_else(|| text.clone(), |place| text.replacen(&place, "", 1));
    let text = text.split(", set DuplicateKeyPolicy").next().unwrap_or(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = Spanned::<Part>::deserialize(deserializer)?;
        Ok(Self { line: part.referenced.line(), part: part.value })
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Part, E> {
        Ok(Part::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Part, E> {
        Ok(Part::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Part, E> {
        Ok(Part::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Part, E> {
        // A longer integer than the parser knows has lost its last digits on the way.
        if value.abs() >= 1e19 {
            return Err(E::custom("a number above 2^63: write it as a text, with quotes"));
        }
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"));
        number.map(|number| Part::Scalar(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Part, E> {
        Ok(Part::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Part, E> {
        Ok(Part::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Part, E> {
        Ok(Part::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Part, E> {
        Ok(Part::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Part, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            elements.push(element);
        }
        Ok(Part::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let mut value: Tree = map.next_value()?;
            // The line of a field is that of its key; a mapping below it may start later.
            value.line = key.referenced.line();
            fields.push((key.value, value));
        }
        Ok(Part::Map(fields))
    }
}
