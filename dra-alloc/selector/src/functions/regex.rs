//! Regular expressions: `matches`, `find` and `findAll`, with the syntax of Go.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use ::regex::{Regex, RegexBuilder};

use super::counted::{list, part};
use super::function::{Misuse, functions};
use super::pattern::{Translated, translate};
use crate::fault::{Fault, TOO_LARGE};
use crate::meter::Meter;
use crate::value::{Answer, Text, Value};

/// Largest size of all patterns that are written in an expression, in bytes: at most some 20 ms to compile.
const LARGEST_PATTERNS: usize = 2 << 20;
/// Largest size of a pattern that is computed, in bytes.
const LARGEST_COMPUTED: usize = 1 << 18;
/// Memory of what a search keeps, in bytes.
const LARGEST_SEARCH: usize = 1 << 17;
/// Work of compiling a byte of a pattern: 10 ns.
const COMPILATION: usize = 2;
/// Size of a pattern for which a search takes three steps more for each byte of a text, in bytes.
const SIZE_OF_STEPS: usize = 1 << 14;
/// Largest length of a pattern that is computed, in bytes.
const LONGEST_COMPUTED: usize = 1 << 10;

/// Work of a search besides that for its text.
const SEARCH: usize = 24;

/// Returns true if a text is a pattern, of any size.
pub(crate) fn is_pattern(text: &str) -> bool {
    Pattern::parse(text).map_or_else(|reason| reason == TOO_LARGE, |_| true)
}

/// Functions with a pattern as their second argument.
pub(crate) const WITH_PATTERN: [&str; 3] = ["matches", "find", "findAll"];

functions! { meter;
    "matches"(Misuse::Operator(|value| matches!(value, Value::String(_)))) {
        "(string, string) -> bool" One;
        "string.(string) -> bool" Matches:
            [Value::String(text), Value::String(pattern)] => computed(meter, "matches", pattern, text, None);
    }
    "find" {
        "string.(string) -> string" Find:
            [Value::String(text), Value::String(pattern)] => computed(meter, "find", pattern, text, None);
    }
    "findAll" {
        "string.(string) -> list(string)" Find:
            [Value::String(text), Value::String(pattern)] => computed(meter, "findAll", pattern, text, None);
        "string.(string, int) -> list(string)" Find: [Value::String(text), Value::String(pattern), Value::Int(limit)] =>
            computed(meter, "findAll", pattern, text, Some(*limit));
    }
}

/// Patterns that are written in an expression. Equal ones are one, which is compiled when it is first searched for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    by_text: BTreeMap<Arc<str>, Result<Arc<Pattern>, String>>,
    /// Size of all of them, in bytes.
    size: usize,
}

impl Patterns {
    /// Returns the pattern of a text, and adds it if it is new; the error says what is wrong with it, or that it is too
    /// large together with those before it.
    pub(crate) fn add(&mut self, text: &str) -> Result<Arc<Pattern>, String> {
        if let Some(known) = self.by_text.get(text) {
            return known.clone();
        }
        let new = Pattern::parse(text).and_then(|pattern| {
            let size = self.size.saturating_add(pattern.size);
            if size > LARGEST_PATTERNS {
                return Err(TOO_LARGE.to_owned());
            }
            self.size = size;
            Ok(Arc::new(pattern))
        });
        self.by_text.insert(text.into(), new.clone());
        new
    }

    /// Returns the pattern of a text that was added.
    pub(crate) fn get(&self, text: &str) -> Option<&Arc<Pattern>> {
        self.by_text.get(text)?.as_ref().ok()
    }
}

/// Pattern that is compiled on first use.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Pattern in the syntax of the `regex` crate.
    translated: String,
    /// Compiled form; `None` if the crate refuses it, which is not known to happen.
    compiled: OnceLock<Option<Regex>>,
    /// Steps of a search for each byte of a text, at most.
    steps: usize,
    /// Length of the pattern as it was written, in bytes.
    length: usize,
    /// Estimated size of the compiled form, in bytes.
    pub(crate) size: usize,
}

impl Pattern {
    /// Parses a pattern of any size; the error says what is wrong with it.
    fn parse(pattern: &str) -> Result<Self, String> {
        let translated = translate(pattern).map_err(|reason| format!("error parsing regexp: {reason}"))?;
        let Translated { pattern: translated, size } = translated;
        // A search may have to follow all states of the pattern for each byte.
        let steps = 1 + pattern.len() / 8 + 3 * (size / SIZE_OF_STEPS);
        Ok(Self { translated, compiled: OnceLock::new(), steps, length: pattern.len(), size })
    }

    fn regex(&self) -> Option<&Regex> {
        let compile = || {
            #[cfg(test)]
            COMPILATIONS.set(COMPILATIONS.get() + 1);
            let mut builder = RegexBuilder::new(&self.translated);
            builder.size_limit(LARGEST_PATTERNS).dfa_size_limit(LARGEST_SEARCH).build().ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Returns the work of compiling the pattern.
    pub(crate) const fn compilation(&self) -> usize {
        COMPILATION * self.size
    }

    /// Returns the answer of a search that only tells whether there is a match; `None` if there is no compiled form.
    pub(crate) fn is_match(&self, text: &str) -> Option<bool> {
        Some(self.regex()?.is_match(text))
    }

    /// Returns the cost of a search in a text: the product of the lengths, as in Kubernetes.
    pub(crate) fn cost(&self, text: &str) -> u64 {
        let size = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        (size(text.len()) / 10 + 1).saturating_mul(size(self.length) / 4 + 1)
    }

    fn pay(&self, meter: &mut Meter<'_>, bytes: usize) -> Result<(), Box<Fault>> {
        meter.work((bytes / 2 + 1).saturating_mul(self.steps).saturating_add(SEARCH))
    }
}

/// Calls a function with a pattern that an evaluation made.
fn computed<'v>(meter: &mut Meter<'_>, name: &str, pattern: &str, text: &Text<'v>, limit: Option<i64>) -> Answer<'v> {
    if pattern.len() > LONGEST_COMPUTED {
        return Err(Fault::too_much());
    }
    let context = if name == "matches" { "" } else { "Illegal regex: " };
    let refused = |reason: &str| Fault::text(format!("{context}{reason}"));
    meter.work(20_000 + 200 * pattern.len())?;
    let pattern = Pattern::parse(pattern).map_err(|reason| refused(&reason))?;
    if pattern.size > LARGEST_COMPUTED {
        return Err(refused(TOO_LARGE));
    }
    meter.work(pattern.compilation())?;
    search(meter, &pattern, text, name, limit)
}

/// Calls a function with a pattern that is written in the expression.
pub(crate) fn call<'v>(meter: &mut Meter<'_>, name: &str, pattern: &Pattern, arguments: &[Value<'v>]) -> Answer<'v> {
    match arguments {
        [Value::String(text), _] => search(meter, pattern, text, name, None),
        [Value::String(text), _, Value::Int(limit)] => search(meter, pattern, text, name, Some(*limit)),
        _ => Err(Fault::no_overload()),
    }
}

fn search<'v>(meter: &mut Meter<'_>, pattern: &Pattern, text: &Text<'v>, name: &str, limit: Option<i64>) -> Answer<'v> {
    pattern.pay(meter, text.len())?;
    let regex = pattern.regex().ok_or_else(|| Fault::text(TOO_LARGE))?;
    match name {
        "matches" => Ok(Value::Bool(regex.is_match(text))),
        "find" => {
            let found = regex.find(text).map_or((0, 0), |found| (found.start(), found.end()));
            part(meter, text, found.0, found.1)
        }
        _ => {
            let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            all(meter, pattern, regex, text, most)
        }
    }
}

/// Finds all matches that do not overlap. Each search pays for the text that is left.
fn all<'v>(meter: &mut Meter<'_>, pattern: &Pattern, regex: &Regex, text: &Text<'v>, most: usize) -> Answer<'v> {
    let mut ranges = Vec::new();
    for found in regex.find_iter(text).take(most) {
        ranges.push((found.start(), found.end()));
        pattern.pay(meter, text.len() - found.end())?;
    }
    let parts: Result<Vec<_>, _> = ranges.into_iter().map(|(start, end)| part(meter, text, start, end)).collect();
    list(meter, parts?)
}

#[cfg(test)]
thread_local! {
    static COMPILATIONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the number of patterns that the thread has compiled.
#[cfg(test)]
pub(crate) fn compilations() -> usize {
    COMPILATIONS.get()
}
