//! Reason that an expression costs more than the API server admits.

use std::fmt;

use super::range::Range;
use crate::position::Position;

/// Reason that the API server refuses an expression as too complex: the innermost part of it whose estimate is above
/// [`Options::COST_LIMIT`](crate::Options::COST_LIMIT).
///
/// [`fmt::Display`] says it in one line, for whoever wrote the expression.
///
/// ```
/// use dra_selector::{Options, Selector};
///
/// let text = "device.attributes['gpu.example'].names.exists(name, name.startsWith('a'))";
/// let selector = Selector::compile(text, &Options::stored())?;
/// // The prefix of a name is short: only reading each name as a whole is expensive.
/// assert_eq!(selector.too_complex(), None);
///
/// let text = "device.attributes['gpu.example'].names.exists(name, name.lowerAscii() == 'a')";
/// let selector = Selector::compile(text, &Options::stored())?;
/// let reason = selector.too_complex().unwrap();
/// assert_eq!((reason.part.as_str(), reason.place), ("lowerAscii", (1, 68)));
/// assert_eq!(
///     reason.to_string(),
///     "'lowerAscii' at line 1, column 68, has no limit on its cost: the elements of the list have no known size"
/// );
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooComplex {
    /// Function, operator or macro of the part.
    pub part: String,
    /// Line and column of the part, both counted from 1, as in errors of compilation.
    pub place: (u32, u32),
    /// Most that one evaluation of the part is estimated to cost; a tenth of `u64::MAX` or more if there is no limit.
    pub most: u64,
    /// Cause of the cost.
    cause: CostCause,
}

/// Cause of the estimated cost of a part of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostCause {
    /// The size of an element of a list, or of a value of a map, is not known before an evaluation.
    UnknownElements,
    /// The size of a value that the part reads is not known before an evaluation: only sizes of literals and of what is
    /// read directly from the device are.
    UnknownSize,
    /// A loop with many rounds, or with an expensive one.
    Rounds {
        /// Most rounds of the loop.
        most: u64,
        /// Most that a round is estimated to cost.
        each: u64,
    },
    /// Values of a known size, of which the part reads too much.
    Size {
        /// Size of the largest: characters of a string, elements of a list.
        most: u64,
    },
    /// Many parts, none of which is above the limit by itself.
    Sum,
}

/// Least cost of a part that reads a value of no known size: the cheapest price is a tenth of a unit a character.
const UNBOUNDED: u64 = u64::MAX / 10;

impl fmt::Display for TooComplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.place;
        write!(f, "'{}' at line {line}, column {column}, ", self.part)?;
        match self.most {
            UNBOUNDED.. => f.write_str("has no limit on its cost: ")?,
            most => write!(f, "can cost {most}: ")?,
        }
        match self.cause {
            CostCause::UnknownElements => f.write_str("the elements of the list have no known size"),
            CostCause::UnknownSize => f.write_str("a value that it reads has no known size"),
            CostCause::Rounds { most, each } => write!(f, "{most} rounds, each of which can cost {each}"),
            CostCause::Size { most } => write!(f, "a value that it reads can have the size {most}"),
            CostCause::Sum => f.write_str("the sum of its parts"),
        }
    }
}

impl TooComplex {
    pub(super) fn new(part: String, at: Position, cost: Range, cause: CostCause) -> Self {
        let place = |number: i32| u32::try_from(number).unwrap_or_default();
        Self { part, place: (place(at.line), place(at.column + 1)), most: cost.max, cause }
    }
}

/// Returns the name of a function or operator as it is written.
pub(super) fn written(function: &str) -> &str {
    match function {
        "_?_:_" => "?:",
        "_[_]" | "_[?_]" => "[]",
        "_?._" => ".?",
        other => other.trim_matches(['_', '@']),
    }
}

/// Returns the name before the bracket at a position: that of a macro.
pub(super) fn name_before(text: &str, at: Position) -> String {
    let line = usize::try_from(at.line - 1).ok().and_then(|line| text.split('\n').nth(line)).unwrap_or_default();
    let before: String = line.chars().take(usize::try_from(at.column).unwrap_or_default()).collect();
    let is_end = |character: char| !character.is_ascii_alphanumeric() && !matches!(character, '_' | '.');
    let name = before.rsplit(is_end).next().unwrap_or_default();
    // `cel.bind` has a dot in its name, methods have one before.
    if name.ends_with("cel.bind") {
        "cel.bind".to_owned()
    } else {
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }
}
