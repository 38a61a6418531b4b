//! Errors of fields, in the API server's words.

use std::fmt;

use serde::Serialize;

/// The kind of an error, by the API server's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum ErrorType {
    /// A value is missing.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// A value is malformed.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// A value is not one of those that are known.
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    /// A value is there twice.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// A value is well-formed, but not allowed here.
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// A text is too long.
    #[serde(rename = "FieldValueTooLong")]
    TooLong,
}

impl ErrorType {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
        }
    }

    /// Whether the text of the error quotes the value.
    const fn has_value(self) -> bool {
        matches!(self, Self::Invalid | Self::NotSupported | Self::Duplicate)
    }
}

/// What is wrong with one field. Its text is that of the API server.
///
/// ```
/// use readiness::validate::{Limits, validate};
/// let report = validate(&[readiness::gate::NodeReadinessGate::new("Ready", 30).bypassing()], &Limits::default());
/// assert_eq!(
///     report.errors[0].to_string(),
///     "spec.readinessGates[0].conditionType: Invalid value: \"Ready\": must be a domain, a slash and a name \
///      (e.g. 'domainname.com/MyCondition')"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldError {
    /// Path of the field.
    pub field: String,
    /// What kind of problem it is.
    pub r#type: ErrorType,
    /// The value as it is quoted.
    #[serde(skip)]
    pub value: String,
    /// What is the matter; may be empty.
    pub detail: String,
}

impl FieldError {
    pub(super) fn new(kind: ErrorType, field: impl Into<String>, value: impl fmt::Display, detail: &str) -> Self {
        Self { field: field.into(), r#type: kind, value: value.to_string(), detail: detail.to_owned() }
    }

    pub(super) fn text(kind: ErrorType, field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::new(kind, field, format_args!("{value:?}"), detail)
    }

    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Required, field, "", detail)
    }

    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(ErrorType::Forbidden, field, "", detail)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.r#type.in_words())?;
        if self.r#type.has_value() {
            write!(formatter, ": {}", self.value)?;
        }
        if self.detail.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.detail) }
    }
}

impl std::error::Error for FieldError {}

/// Something that is valid and still worth a look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// Path of the field.
    pub field: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: WarningKind,
}

/// The kinds of [`Warning`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[non_exhaustive]
pub enum WarningKind {
    /// kubelet sees conditions only when it syncs the node's status.
    ShortTimeout {
        /// The timeout, in seconds.
        seconds: i32,
        /// Twice the time between two syncs, in seconds.
        advised: i32,
    },
    /// The action is not `Taint`.
    IgnoredTaint,
    /// The taint evicts running pods.
    Evicting,
    /// The taint holds no pod back.
    NotBlocking,
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.field)?;
        match self.kind {
            WarningKind::ShortTimeout { seconds, advised } => write!(
                formatter,
                "{seconds} seconds may pass before kubelet sees a condition that is True; at least {advised} are advised"
            ),
            WarningKind::IgnoredTaint => formatter.write_str("ignored, since failureAction is not Taint"),
            WarningKind::Evicting => {
                formatter.write_str("NoExecute evicts running pods that do not tolerate the taint")
            }
            WarningKind::NotBlocking => formatter.write_str("PreferNoSchedule does not block pods"),
        }
    }
}
