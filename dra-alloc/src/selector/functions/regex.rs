//! Regular expressions: `matches`, `find` and `findAll`, with the syntax of Go.

use std::sync::Arc;

use ::regex::{Regex, RegexBuilder};

use super::pattern::translate;
use super::{Misuse, functions, list, part};
use crate::selector::fault::{Fault, TOO_LARGE};
use crate::selector::meter::Meter;
use crate::selector::value::{Answer, Text, Value};

/// Memory of a compiled pattern that is written in an expression, in bytes: the first that is enough counts.
const PATTERN_SIZES: [usize; 3] = [1 << 14, 1 << 17, 1 << 20];
/// Largest memory of all patterns that are written in an expression, in bytes.
pub(in crate::selector) const LARGEST_PATTERNS: usize = 4 << 20;
/// Largest memory of a pattern that is computed, and of what a search keeps.
const LARGEST_COMPUTED: usize = 1 << 17;
/// Work of compiling a class of characters that a computed pattern names.
const CLASS: usize = 20_000;
/// Work of compiling a computed pattern anew that needs more than the smallest memory.
const MORE: usize = 200_000;
/// Largest length of a pattern that is computed, in bytes.
const LONGEST_COMPUTED: usize = 1 << 10;

/// Work of a search besides that for its text.
const SEARCH: usize = 24;

/// Functions with a pattern as their second argument.
pub(in crate::selector) const WITH_PATTERN: [&str; 3] = ["matches", "find", "findAll"];

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

/// Pattern that was compiled with the expression.
#[derive(Clone, Debug)]
pub(in crate::selector) struct Pattern {
    regex: Arc<Regex>,
    /// Steps of a search for each byte of a text, at most.
    steps: usize,
    /// Length of the pattern as it was written, in bytes.
    length: usize,
    /// Memory that it counts for: the limit that it was compiled with, in bytes.
    pub(in crate::selector) size: usize,
}

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(in crate::selector) fn compile(pattern: &str) -> Result<Self, String> {
        for size in PATTERN_SIZES {
            match Self::limited(pattern, size) {
                Err(reason) if reason == TOO_LARGE => {}
                found => return found,
            }
        }
        Err(TOO_LARGE.to_owned())
    }

    fn limited(pattern: &str, limit: usize) -> Result<Self, String> {
        let translated = translate(pattern).map_err(|reason| format!("error parsing regexp: {reason}"))?;
        // What Go accepts and the crate refuses is too large.
        let built = RegexBuilder::new(&translated).size_limit(limit).dfa_size_limit(LARGEST_COMPUTED).build();
        let regex = built.map_err(|_| TOO_LARGE.to_owned())?;
        // A search may have to follow all states of the pattern for each byte.
        let steps = 1 + pattern.len() / 8 + 3 * (limit / PATTERN_SIZES[0] - 1);
        Ok(Self { regex: Arc::new(regex), steps, length: pattern.len(), size: limit })
    }

    pub(in crate::selector) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the cost of a search in a text: the product of the lengths, as in Kubernetes.
    pub(in crate::selector) fn cost(&self, text: &str) -> u64 {
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
    // Classes of characters are large, all the more without case.
    let classes = pattern.to_ascii_lowercase().matches("\\p").count();
    meter.work(20_000 + 200 * pattern.len() + CLASS * classes)?;
    let mut compiled = Pattern::limited(pattern, PATTERN_SIZES[0]);
    if compiled.as_ref().is_err_and(|reason| reason == TOO_LARGE) {
        meter.work(MORE)?;
        compiled = Pattern::limited(pattern, LARGEST_COMPUTED);
    }
    let context = if name == "matches" { "" } else { "Illegal regex: " };
    let pattern = compiled.map_err(|reason| Fault::text(format!("{context}{reason}")))?;
    search(meter, &pattern, text, name, limit)
}

/// Calls a function with a pattern that is compiled.
pub(in crate::selector) fn call<'v>(
    meter: &mut Meter<'_>,
    name: &str,
    pattern: &Pattern,
    arguments: &[Value<'v>],
) -> Answer<'v> {
    match arguments {
        [Value::String(text), _] => search(meter, pattern, text, name, None),
        [Value::String(text), _, Value::Int(limit)] => search(meter, pattern, text, name, Some(*limit)),
        _ => Err(Fault::no_overload()),
    }
}

fn search<'v>(meter: &mut Meter<'_>, pattern: &Pattern, text: &Text<'v>, name: &str, limit: Option<i64>) -> Answer<'v> {
    pattern.pay(meter, text.len())?;
    match name {
        "matches" => Ok(Value::Bool(pattern.is_match(text))),
        "find" => {
            let found = pattern.regex.find(text).map_or((0, 0), |found| (found.start(), found.end()));
            part(meter, text, found.0, found.1)
        }
        _ => {
            let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            all(meter, pattern, text, most)
        }
    }
}

/// Finds all matches that do not overlap. Each search pays for the text that is left.
fn all<'v>(meter: &mut Meter<'_>, pattern: &Pattern, text: &Text<'v>, most: usize) -> Answer<'v> {
    let mut ranges = Vec::new();
    for found in pattern.regex.find_iter(text).take(most) {
        ranges.push((found.start(), found.end()));
        pattern.pay(meter, text.len() - found.end())?;
    }
    let parts: Result<Vec<_>, _> = ranges.into_iter().map(|(start, end)| part(meter, text, start, end)).collect();
    list(meter, parts?)
}

#[cfg(test)]
mod tests {
    use super::{PATTERN_SIZES, Pattern};

    #[test]
    fn patterns_have_a_limited_size() {
        let size = |pattern: &str| Pattern::compile(pattern).map(|pattern| pattern.size);
        assert_eq!(size("^h[0-9]+$"), Ok(PATTERN_SIZES[0]));
        assert_eq!(size(r"\S{100}"), Ok(PATTERN_SIZES[1]));
        assert!(size(r"(?:a{30}){33}\pL{1000}").is_err());
    }
}
