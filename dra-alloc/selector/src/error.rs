//! Errors of compilation and of evaluation.

use std::fmt::{self, Write};

use super::fault::{Fatal, Fault, LONGEST_TEXT, TOO_LARGE};
use super::position::Position;

/// Largest number of issues that a report shows.
const MOST_SHOWN: usize = 100;

/// Longest line, in bytes, that Kubernetes quotes.
const LONGEST_LINE: usize = 16_384;

/// Bytes of a report beside [`REPORT_FOR_A_BYTE`].
const REPORT: usize = 768;

/// Bytes of a report for each byte of its expression. A problem whose line is quoted whole, with the dots before its mark,
/// takes two.
const REPORT_FOR_A_BYTE: usize = 3;

/// Code points of a line that are quoted before and after a mark, where the whole line does not fit into the report.
const AROUND_MARK: usize = 100;

/// Problem of an expression with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(super) at: Position,
    pub(super) message: String,
}

impl Issue {
    pub(super) const fn new(at: Position, message: String) -> Self {
        Self { at, message }
    }

    /// Returns line and column of the problem, both counted from 1 in code points; `None` if it concerns the whole
    /// expression.
    fn place(&self) -> Option<(u32, u32)> {
        let line = u32::try_from(self.at.line).ok()?;
        Some((line, u32::try_from(self.at.column + 1).ok()?))
    }

    /// Returns the message with its place, and the line of the text with a mark under it: the whole line, or the code points
    /// around the mark.
    fn shown(&self, text: &str, quoted: Quoted) -> String {
        let Position { line, column } = self.at;
        let head = format!("ERROR: <input>:{line}:{}: {}", column + 1, self.message);
        let index = usize::try_from(line - 1).ok();
        let line = index.and_then(|index| text.split('\n').nth(index)).filter(|line| line.len() <= LONGEST_LINE);
        let Some(line) = line else { return head };
        let column = usize::try_from(column).unwrap_or_default();
        let (first, shown) = match quoted {
            Quoted::Line => (0, usize::MAX),
            Quoted::AroundMark => (column.saturating_sub(AROUND_MARK), 2 * AROUND_MARK),
        };
        let quote: String = line.chars().skip(first).take(shown).collect();
        let column = column - first;
        let is_wide = |character: char| character.len_utf8() > 1;
        let dots: String =
            quote.chars().take(column).map(|character| if is_wide(character) { '．' } else { '.' }).collect();
        let mark = if quote.chars().nth(column).is_some_and(is_wide) { '＾' } else { '^' };
        format!("{head}\n | {}\n | {dots}{mark}", quote.replace('\t', " "))
    }
}

/// Part of a line that a report quotes.
#[derive(Clone, Copy)]
enum Quoted {
    Line,
    AroundMark,
}

/// Problems of an expression, with the text as Kubernetes words it.
///
/// Its text has at most 768 bytes and three for each byte of the expression, and at most 100 problems. Where Kubernetes would
/// say more, lines are cut to 100 code points on each side of the mark, and the last sentence tells how many problems are left
/// out. So 100 KB of expressions can't make megabytes of answers.
///
/// ```
/// use dra_selector::{Options, Selector};
///
/// let error = Selector::compile("device.drivr", &Options::stored()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "compilation failed: ERROR: <input>:1:7: undefined field 'drivr'\n | device.drivr\n | ......^"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    issues: Vec<Issue>,
    shown: String,
}

impl Report {
    pub(super) fn new(text: &str, mut issues: Vec<Issue>) -> Self {
        let most = REPORT + REPORT_FOR_A_BYTE * text.len();
        let mut shown = String::new();
        let mut told = 0;
        for issue in issues.iter_mut().take(MOST_SHOWN) {
            let left = most.saturating_sub(shown.len());
            let fits = |quoted| Some(issue.shown(text, quoted)).filter(|shown| shown.len() < left);
            let next = match fits(Quoted::Line).or_else(|| fits(Quoted::AroundMark)) {
                Some(next) => next,
                None if told == 0 => {
                    issue.message = shortened(&issue.message);
                    issue.shown(text, Quoted::AroundMark)
                }
                None => break,
            };
            if told > 0 {
                shown.push('\n');
            }
            shown.push_str(&next);
            told += 1;
        }
        let more = issues.len() - told;
        if more > 0 {
            let _ = write!(shown, "\n{more} more errors were truncated");
        }
        issues.truncate(told);
        Self { issues, shown }
    }

    fn memory(&self) -> usize {
        let issues: usize = self.issues.iter().map(|issue| size_of::<Issue>() + issue.message.len()).sum();
        issues + self.shown.len()
    }

    /// Returns the problems that the text shows, in the order of the expression, at least one: each with line and column,
    /// both counted from 1 in code points, or `None` if it concerns the whole expression, and its message in the words of
    /// Kubernetes.
    ///
    /// ```
    /// use dra_selector::{CompileError, Options, Selector};
    ///
    /// let refused = Selector::compile("devise.driver == 'gpu'", &Options::stored());
    /// let Err(CompileError::Type { report }) = refused else { panic!() };
    /// let message = "undeclared reference to 'devise' (in container '')";
    /// assert_eq!(report.issues().collect::<Vec<_>>(), [(Some((1, 1)), message)]);
    /// ```
    pub fn issues(&self) -> impl Iterator<Item = (Option<(u32, u32)>, &str)> {
        self.issues.iter().map(|issue| (issue.place(), issue.message.as_str()))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Reason that an expression is rejected, in the words of Kubernetes.
///
/// ```
/// use dra_selector::{CompileError, Options, Selector};
///
/// let refused = |expression| Selector::compile(expression, &Options::stored()).unwrap_err();
/// assert!(matches!(refused("device.driver =="), CompileError::Syntax { .. }));
/// assert!(matches!(refused("device.name"), CompileError::Type { .. }));
/// assert_eq!(refused("1").to_string(), "must evaluate to bool or the unknown type, not int");
/// assert!(matches!(refused("bool('maybe')"), CompileError::Program { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The text is not an expression of the language.
    #[error("compilation failed: {report}")]
    Syntax {
        /// Problems found.
        report: Report,
    },
    /// Names or types are wrong, or a literal is.
    #[error("compilation failed: {report}")]
    Type {
        /// Problems found.
        report: Report,
    },
    /// A selector's result is not a bool.
    #[error("must evaluate to bool or the unknown type, not {actual}")]
    NotBool {
        /// Type of the result.
        actual: String,
    },
    /// A derived attribute's result is not a value of an attribute.
    #[error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {actual}"
    )]
    NotAttribute {
        /// Type of the result.
        actual: String,
    },
    /// A part of the expression that does not depend on a device fails: `int('x')`, a pattern that is none. Or the
    /// selector takes, with those before it in the list, too much memory.
    #[error("program instantiation failed: {message}")]
    Program {
        /// Reason that it fails.
        message: String,
    },
}

impl CompileError {
    /// Returns the error of an expression whose compiled form takes too much memory.
    pub(super) fn too_large() -> Self {
        Self::Program { message: TOO_LARGE.to_owned() }
    }

    /// Returns the memory of the texts of the error, in bytes.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Syntax { report } | Self::Type { report } => report.memory(),
            Self::NotBool { actual: text } | Self::NotAttribute { actual: text } | Self::Program { message: text } => {
                text.len()
            }
        }
    }
}

/// Reason that an evaluation has no result. In kube-scheduler, each of them ends the attempt to allocate.
///
/// ```
/// use dra_selector::{EvaluationError, Options, Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let selector = Selector::compile("device.attributes['gpu.example'].model == 'a100'", &Options::stored())?;
/// let device = Device::default();
/// let error = selector.matches(SelectorInput::new("gpu.example", &device)).unwrap_err();
/// assert_eq!(error, EvaluationError::NoSuchKey { key: "model".to_owned() });
/// assert!(error.to_string().starts_with("no such key: model. consider using"));
/// assert_eq!(error.message(), "no such key: model");
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The device does not have an attribute or capacity that the expression reads.
    #[error(
        "no such key: {key}. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )]
    NoSuchKey {
        /// Name of the attribute or capacity.
        key: String,
    },
    /// A function or operator was called with values of types that it does not take.
    #[error("{message}")]
    NoSuchOverload {
        /// Text of the error.
        message: String,
    },
    /// An attribute or capacity of the device is invalid, even if the expression does not read it.
    #[error("attribute {name}: {reason}")]
    Attribute {
        /// Name of the attribute or capacity on the device.
        name: String,
        /// Reason that it is invalid.
        reason: String,
    },
    /// A selector's result was not a bool.
    #[error("CEL result of type {actual} could not be converted to bool: {reason}")]
    NotBool {
        /// Type of the result.
        actual: String,
        /// Reason that it can't be converted.
        reason: String,
    },
    /// A derived attribute's result was not a valid attribute value.
    #[error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {actual}"
    )]
    NotAttribute {
        /// Type of the result.
        actual: String,
    },
    /// The evaluation reached the limit of costs, or the bound on its work and memory.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// The caller's stop function said so.
    #[error("operation interrupted")]
    Interrupted,
    /// Any other error in an expression: a division by zero, an index out of range.
    #[error("{message}")]
    Other {
        /// Text of the error.
        message: String,
    },
}

impl EvaluationError {
    /// Returns the text of the evaluation's own error, without the hint that Kubernetes adds for a missing key.
    ///
    /// ```
    /// # use dra_selector::EvaluationError;
    /// assert_eq!(EvaluationError::NoSuchKey { key: "model".to_owned() }.message(), "no such key: model");
    /// ```
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::NoSuchKey { key } => format!("no such key: {key}"),
            other => other.to_string(),
        }
    }
}

impl EvaluationError {
    pub(crate) fn from_fault(fault: Box<Fault>) -> Self {
        let message = shortened(&fault.to_string());
        match *fault {
            Fault::NoSuchKey(key) => Self::NoSuchKey { key: shortened(&key) },
            Fault::Fatal(Fatal::Cost) => Self::CostExceeded,
            Fault::Fatal(Fatal::Interrupted) => Self::Interrupted,
            _ if message.starts_with("no such overload") => Self::NoSuchOverload { message },
            _ => Self::Other { message },
        }
    }
}

/// Returns a text, cut if it is long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
