//! Types of validation errors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Type of a validation error.
///
/// The serialized form is the API server's name (`FieldValueRequired`); `Display` prints its words (`Required value`).
///
/// ```
/// use dra_attrs::ErrorType;
/// assert_eq!(ErrorType::NotSupported.name(), "FieldValueNotSupported");
/// assert_eq!(ErrorType::NotSupported.to_string(), "Unsupported value");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ErrorType {
    /// A reference to a value that does not exist.
    #[serde(rename = "FieldValueNotFound")]
    NotFound,
    /// A value is missing: empty text, empty list, null.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// A value that must be unique occurs twice.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// A value is malformed or out of bounds.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// A value is not one of the supported ones.
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    /// A value is well-formed but not permitted for this field.
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// A text has too many bytes.
    #[serde(rename = "FieldValueTooLong")]
    TooLong,
    /// A text has too few characters.
    #[serde(rename = "FieldValueTooShort")]
    TooShort,
    /// A list or map has too many entries.
    #[serde(rename = "FieldValueTooMany")]
    TooMany,
    /// A list or map has too few entries.
    #[serde(rename = "FieldValueTooFew")]
    TooFew,
    /// The value is of another type than the field.
    #[serde(rename = "FieldValueTypeInvalid")]
    TypeInvalid,
    /// An internal error prevented the check.
    #[serde(rename = "InternalError")]
    Internal,
    /// The server ends while it validates: the client sees a cut connection instead of a list of errors. No type of
    /// Kubernetes, but its behaviour in some releases.
    #[serde(rename = "ServerStops")]
    ServerStops,
}

impl ErrorType {
    /// Returns the API server's name of the type, as in the causes of a `Status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
            Self::ServerStops => "ServerStops",
        }
    }

    /// Returns true if a message of this type shows the value. The API server omits values that are missing or too
    /// long, and those of types where the value is irrelevant.
    #[must_use]
    pub(crate) const fn shows_value(self) -> bool {
        !matches!(
            self,
            Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal | Self::ServerStops
        )
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
            Self::ServerStops => "Server stops",
        })
    }
}
