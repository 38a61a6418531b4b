//! Errors of compilation and of evaluation.

use cel::ExecutionError;

use super::EXPRESSION_LIMIT;

/// Number of bytes of a device's or expression's text that a message keeps.
const LONGEST_TEXT: usize = 512;

/// Reason that an expression is rejected, in the words of Kubernetes if Kubernetes rejects the expression too.
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
        /// Length in bytes.
        length: usize,
    },
    /// The expression is nested too deeply, or has too long a chain of operators or calls.
    #[error("expression is nested too deeply or has too long a chain of operators and calls")]
    TooComplex,
    /// The text is not a CEL expression.
    #[error("{message}")]
    Syntax {
        /// Message of the parser, with the position.
        message: String,
    },
    /// A variable or function that does not exist.
    #[error("undeclared reference to '{name}' (in container '')")]
    UndeclaredReference {
        /// Name of the variable or function.
        name: String,
    },
    /// A field that `device` does not have.
    #[error("undefined field '{field}'")]
    UndefinedField {
        /// Name of the field.
        field: String,
    },
    /// A function or operator that does not exist for these types.
    #[error("found no matching overload for '{function}' applied to '{arguments}'")]
    NoMatchingOverload {
        /// Name of the function or operator.
        function: String,
        /// Types of the arguments: `(int, string)`, with a receiver `int.(string)`.
        arguments: String,
    },
    /// The elements of a list literal have different types.
    #[error("expected type '{expected}' but found '{found}'")]
    MixedList {
        /// Type of the first element.
        expected: String,
        /// Type of the element that differs.
        found: String,
    },
    /// Something that is not a list or map is iterated over.
    #[error("expression of type '{actual}' cannot be range of a comprehension (must be list, map, or dynamic)")]
    NotIterable {
        /// Type of the operand.
        actual: String,
    },
    /// A selector's result is not a bool.
    #[error("must evaluate to bool or the unknown type, not {actual}")]
    NotBool {
        /// Type of the result.
        actual: String,
    },
    /// A derived attribute's result is not a valid attribute value.
    #[error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {actual}"
    )]
    NotAttribute {
        /// Type of the result.
        actual: String,
    },
    /// A regular expression in the expression is invalid.
    #[error("invalid matches argument {pattern:?}: {reason}")]
    InvalidPattern {
        /// Text of the regular expression.
        pattern: String,
        /// Message of the regular-expression compiler.
        reason: String,
    },
}

impl CompileError {
    /// Returns the error in Kubernetes' words for a rejected expression: a result of a wrong type is worded differently
    /// from other compile errors.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::NotBool { .. } | Self::NotAttribute { .. } => self.to_string(),
            _ => format!("compilation failed: {self}"),
        }
    }
}

/// Reason that an evaluation has no result. In kube-scheduler, each of them ends the attempt to allocate.
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
        /// Name of the attribute or capacity.
        key: String,
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
    #[error("CEL result of type {actual} could not be converted to bool")]
    NotBool {
        /// Type of the result.
        actual: String,
    },
    /// A derived attribute's result was not a valid attribute value.
    #[error(
        "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {actual}"
    )]
    NotAttribute {
        /// Type of the result.
        actual: String,
    },
    /// The evaluation took too many steps, or built too large values.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// Any other error in an expression: a division by zero, an index out of range, a wrong type.
    #[error("{message}")]
    Other {
        /// Text of the error.
        message: String,
    },
}

impl EvaluationError {
    /// Converts an error of the `cel` crate to cel-go's words, without the values, which may be large.
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

/// Returns a text, cut if it is long.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
