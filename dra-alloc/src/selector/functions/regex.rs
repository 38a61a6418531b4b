//! Regular expressions: `matches`, `find` and `findAll`, with the syntax of Go.

use std::sync::Arc;

use ::regex::{Regex, RegexBuilder};
use cel::ExecutionError;
use cel::common::types::{CelBool, CelList, CelString};
use cel::common::value::{CowVal, Val};

use super::Parameter::{Int, Pattern, String as Text};
use super::pattern::translate;
use super::{Function, failed, fuel, global, int, member, mismatch, text, units};
use crate::selector::fuel::Fuel;
use crate::selector::opaque::opaque;
use crate::selector::types::{Plain, Ty};

/// Largest memory of a compiled pattern and of its match cache, in bytes.
const LARGEST_PATTERN: usize = 1 << 19;

/// Cost of compiling a pattern that is not a literal, in units.
const COST_OF_COMPILING: u64 = 2_000;

/// Functions whose second argument, or first after the receiver, is a pattern.
pub(in crate::selector) const WITH_PATTERN: [&str; 3] = ["matches", "find", "findAll"];

const TEXTS: Ty = Ty::ListOf(Plain::String);

pub(super) const FUNCTIONS: &[Function] = &[
    member("matches", &[Text, Text], Ty::BOOL, |args| matches(&args).map(CowVal::owned)),
    member("matches", &[Text, Pattern], Ty::BOOL, |args| matches(&args).map(CowVal::owned)),
    global("matches", &[Text, Text], Ty::BOOL, |args| matches(&args).map(CowVal::owned)),
    global("matches", &[Text, Pattern], Ty::BOOL, |args| matches(&args).map(CowVal::owned)),
    member("find", &[Text, Text], Ty::STRING, |args| find(&args).map(CowVal::owned)),
    member("find", &[Text, Pattern], Ty::STRING, |args| find(&args).map(CowVal::owned)),
    member("findAll", &[Text, Text], TEXTS, |args| find_all(&args).map(CowVal::owned)),
    member("findAll", &[Text, Pattern], TEXTS, |args| find_all(&args).map(CowVal::owned)),
    member("findAll", &[Text, Text, Int], TEXTS, |args| find_all(&args).map(CowVal::owned)),
    member("findAll", &[Text, Pattern, Int], TEXTS, |args| find_all(&args).map(CowVal::owned)),
];

/// Pattern that was compiled with the expression.
#[derive(Clone, Debug)]
pub(in crate::selector) struct PatternValue(Arc<Regex>);

impl PatternValue {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(in crate::selector) fn compile(pattern: &str) -> Result<Self, String> {
        compile(pattern).map(Arc::new).map(Self)
    }

    pub(in crate::selector) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns the cost of a search in a text: the product of the lengths, as in Kubernetes.
    pub(in crate::selector) fn cost(&self, text: &str) -> u64 {
        units(text.len() / 10 + 1).saturating_mul(units(self.0.as_str().len() / 4 + 1))
    }
}

opaque!(PatternValue, "@pattern");

fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate(pattern)?;
    let built = RegexBuilder::new(&translated).size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN).build();
    built.map_err(|error| error.to_string())
}

/// Arguments of a search: text, pattern, the arguments that follow, and the budget.
struct Arguments<'a, 'b, 'v> {
    text: &'a str,
    pattern: PatternValue,
    rest: &'a [CowVal<'b, 'v>],
    budget: &'a Fuel,
}

/// Returns the arguments of a search with the pattern compiled, after charging the search to the budget.
fn arguments<'a, 'b, 'v>(args: &'a [CowVal<'b, 'v>]) -> Result<Arguments<'a, 'b, 'v>, ExecutionError> {
    let [source, pattern, rest @ .., budget] = args else { return Err(mismatch()) };
    let budget = fuel(budget)?;
    let source = text(source)?;
    let pattern = if let Some(pattern) = pattern.downcast_ref::<PatternValue>() {
        pattern.clone()
    } else {
        let pattern = text(pattern)?;
        budget.spend(COST_OF_COMPILING.saturating_add(units(pattern.len())))?;
        PatternValue::compile(pattern).map_err(failed)?
    };
    budget.spend(pattern.cost(source))?;
    Ok(Arguments { text: source, pattern, rest, budget })
}

fn matches(args: &[CowVal<'_, '_>]) -> Result<CelBool, ExecutionError> {
    let Arguments { text, pattern, .. } = arguments(args)?;
    Ok(pattern.is_match(text).into())
}

fn find(args: &[CowVal<'_, '_>]) -> Result<CelString<'static>, ExecutionError> {
    let Arguments { text, pattern, .. } = arguments(args)?;
    let found = pattern.0.find(text).map_or("", |found| found.as_str());
    Ok(CelString::from(found.to_owned()))
}

fn find_all<'v>(args: &[CowVal<'_, '_>]) -> Result<CelList<'v>, ExecutionError> {
    let Arguments { text, pattern, rest, budget } = arguments(args)?;
    let limit = rest.first().map(int).transpose()?.unwrap_or(-1);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut all: Vec<Box<dyn Val + 'v>> = Vec::new();
    for found in pattern.0.find_iter(text).take(limit) {
        budget.spend_bytes(found.len())?;
        all.push(Box::new(CelString::from(found.as_str().to_owned())));
    }
    Ok(CelList::from(all))
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn patterns_have_a_limited_size() {
        assert!(compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$").unwrap().is_match("gpu-0"));
        assert!(compile(r"^.{1,255}$").unwrap().is_match("ä"));
        assert!(compile(r"(a{1000}){1000}").is_err());
    }
}
