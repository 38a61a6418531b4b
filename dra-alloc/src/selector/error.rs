//! Why an expression is refused, and why an evaluation gives no answer.

use cel::ExecutionError;

use super::EXPRESSION_LIMIT;

/// How much of a text that a device or an expression chose is kept in a message.
const LONGEST_TEXT: usize = 512;

/// Why an expression is refused. The words are those of Kubernetes where it refuses the same.
///
/// ```
/// use dra_alloc::selector::{CompileError, Selector};
///
/// let refused = |expression| Selector::compile(expression).unwrap_err();
/// assert_eq!(refused("devise.driver == 'gpu'").to_string(), "undeclared reference to 'devise' (in container '')");
/// assert_eq!(refused("device.name"), CompileError::UndefinedField { field: "name".to_owned() });
/// assert_eq!(refused("1").to_string(), "must evaluate to bool or the unknown type, not int");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no expression.
    #[error("expression is empty")]
    Empty,
    /// The expression is longer than the API server stores.
    #[error("expression has {length} bytes, limit {EXPRESSION_LIMIT}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The expression is nested too deeply, or has too long a chain of operators or calls.
    #[error("expression is nested too deeply or has too long a chain of operators and calls")]
    TooComplex,
    /// The text is not a CEL expression.
    #[error("{message}")]
    Syntax {
        /// What the parser says, with the position.
        message: String,
    },
    /// A variable or function that does not exist.
    #[error("undeclared reference to '{name}' (in container '')")]
    UndeclaredReference {
        /// The name.
        name: String,
    },
    /// A field that `device` does not have.
    #[error("undefined field '{field}'")]
    UndefinedField {
        /// The field.
        field: String,
    },
    /// A function or operator that does not exist for these types.
    #[error("found no matching overload for '{function}' applied to '{arguments}'")]
    NoMatchingOverload {
        /// The function or operator.
        function: String,
        /// The types it was applied to: `(int, string)`, with a receiver `int.(string)`.
        arguments: String,
    },
    /// The elements of a list literal have different types.
    #[error("expected type '{expected}' but found '{found}'")]
    MixedList {
        /// Type of the first element.
        expected: String,
        /// The other type.
        found: String,
    },
    /// Something that is not a list or map is iterated over.
    #[error("expression of type '{actual}' cannot be range of a comprehension (must be list, map, or dynamic)")]
    NotIterable {
        /// Its type.
        actual: String,
    },
    /// A selector that can't be true or false.
    #[error("must evaluate to bool or the unknown type, not {actual}")]
    NotBool {
        /// The type of its result.
        actual: String,
    },
    /// A derived attribute that can't be an attribute's value.
    #[error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {actual}"
    )]
    NotAttribute {
        /// The type of its result.
        actual: String,
    },
    /// A regular expression in the expression is invalid.
    #[error("invalid matches argument {pattern:?}: {reason}")]
    InvalidPattern {
        /// The regular expression.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl CompileError {
    /// The error as Kubernetes words it where it refuses an expression: it tells a result of a wrong type from what does not
    /// compile.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::NotBool { .. } | Self::NotAttribute { .. } => self.to_string(),
            _ => format!("compilation failed: {self}"),
        }
    }
}

/// Why an evaluation gives no answer. For kube-scheduler every one of these ends the attempt to allocate.
///
/// ```
/// use dra_alloc::selector::{EvaluationError, Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let selector = Selector::compile("device.attributes['gpu.example'].model == 'a100'")?;
/// let device = Device::default();
/// let error = selector.matches(SelectorInput { driver: "gpu.example", device: &device }).unwrap_err();
/// assert_eq!(error, EvaluationError::NoSuchKey { key: "model".to_owned() });
/// assert!(error.to_string().starts_with("no such key: model"));
/// # Ok::<(), dra_alloc::selector::CompileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The device does not have an attribute or capacity that the expression reads.
    #[error(
        "no such key: {key}. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )]
    NoSuchKey {
        /// The name.
        key: String,
    },
    /// An attribute or capacity of the device is invalid. This is found also when the expression does not read it.
    #[error("attribute {name}: {reason}")]
    Attribute {
        /// Its name in the device.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A selector was neither true nor false.
    #[error("CEL result of type {actual} could not be converted to bool")]
    NotBool {
        /// The type of the result.
        actual: String,
    },
    /// A derived attribute was not an attribute's value.
    #[error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {actual}"
    )]
    NotAttribute {
        /// The type of the result.
        actual: String,
    },
    /// The evaluation took too many steps, or built too large values.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// Anything else that goes wrong in an expression: a division by zero, an index out of range, a wrong type.
    #[error("{message}")]
    Other {
        /// What went wrong.
        message: String,
    },
}

impl EvaluationError {
    /// In cel-go's words, and without the values, which may be large.
    pub(super) fn from_execution(error: ExecutionError) -> Self {
        let message = match error {
            ExecutionError::NoSuchKey(key) => return Self::NoSuchKey { key: shortened(&key) },
            ExecutionError::FunctionError { message, .. } => message,
            ExecutionError::NoSuchOverload(overload) => {
                let shown = |name: &&String| !name.starts_with('@');
                let types: Vec<&str> = overload.argument_types().iter().filter(shown).map(String::as_str).collect();
                format!("no such overload: {}({})", overload.function(), types.join(", "))
            }
            ExecutionError::UnexpectedType { got, want } => format!("no such overload: got '{got}', expected {want}"),
            ExecutionError::UnsupportedBinaryOperator(operator, ..) => format!("no such overload: {operator}"),
            ExecutionError::ValuesNotComparable(..) => {
                "no such overload: values of these types have no order".to_owned()
            }
            ExecutionError::UnsupportedKeyType(_) => "unsupported key type".to_owned(),
            ExecutionError::UnsupportedIndex(..) => "no such overload: unsupported index".to_owned(),
            ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
            ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
            ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
            ExecutionError::Overflow(..) => "integer overflow".to_owned(),
            ExecutionError::DuplicateKey(_) => "Failed with repeated key".to_owned(),
            ExecutionError::UndeclaredReference(name) => format!("no such attribute: {name}"),
            // What is left has no place in an expression that compiled; its text may show values in any order.
            _ => "the expression could not be evaluated".to_owned(),
        };
        Self::Other { message: shortened(&message) }
    }
}

/// A text, or the beginning of it.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
