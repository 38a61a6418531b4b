//! Validation error of one field.

use std::fmt;

use serde::Serialize;

use super::{BadValue, ErrorType, FieldPath, Quoted};

/// Validation error of one field of an object.
///
/// `Display` prints the API server's text. The serialized form is `{field, type, detail}`.
///
/// ```
/// use dra_attrs::{FieldError, FieldPath};
/// let path = FieldPath::new("spec");
/// let error = FieldError::invalid(&path.child("allNodes"), false, "must be either unset or set to true");
/// assert_eq!(error.to_string(), "spec.allNodes: Invalid value: false: must be either unset or set to true");
/// assert_eq!(FieldError::required(&path.child("driver"), "").to_string(), "spec.driver: Required value");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[error("{field}: {}", Body(self))]
#[non_exhaustive]
pub struct FieldError {
    /// Path of the field, such as `spec.devices[3].name`.
    pub field: String,
    /// Type of the error, such as a missing or a duplicate value.
    pub r#type: ErrorType,
    /// Description of the error; may be empty.
    pub detail: String,
    /// Invalid value of the field, as the message shows it.
    #[serde(skip)]
    #[cfg_attr(feature = "schemars", schemars(skip))]
    pub value: BadValue,
}

impl FieldError {
    /// Builds an error of any type.
    #[must_use]
    pub fn new(r#type: ErrorType, field: &FieldPath<'_>, value: BadValue, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), r#type, detail: detail.into(), value }
    }

    /// Builds an error for a missing value.
    #[must_use]
    pub fn required(field: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, field, BadValue::Omitted, detail)
    }

    /// Builds an error for a value that is malformed or out of bounds.
    #[must_use]
    pub fn invalid(field: &FieldPath<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, field, value.into(), detail)
    }

    /// Builds an error for a well-formed value that is not permitted for the field.
    #[must_use]
    pub fn forbidden(field: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, field, BadValue::Omitted, detail)
    }

    /// Builds an error for a value that must be unique and occurs twice.
    #[must_use]
    pub fn duplicate(field: &FieldPath<'_>, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::Duplicate, field, value.into(), "")
    }

    /// Builds an error for a reference to a value that does not exist.
    #[must_use]
    pub fn not_found(field: &FieldPath<'_>, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::NotFound, field, value.into(), "")
    }

    /// Builds an error for a value that is not one of `supported`, which are listed in the given order.
    ///
    /// ```
    /// use dra_attrs::{FieldError, FieldPath};
    /// let error = FieldError::not_supported(&FieldPath::new("effect"), "NoSuch", &["NoExecute", "None"]);
    /// assert_eq!(error.to_string(), r#"effect: Unsupported value: "NoSuch": supported values: "NoExecute", "None""#);
    /// ```
    #[must_use]
    pub fn not_supported(field: &FieldPath<'_>, value: impl Into<BadValue>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| Quoted(value).to_string()).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::new(ErrorType::NotSupported, field, value.into(), detail)
    }

    /// Builds an error for a text of more than `max` bytes.
    #[must_use]
    pub fn too_long(field: &FieldPath<'_>, max: usize) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(ErrorType::TooLong, field, BadValue::Omitted, format!("may not be more than {max} {unit}"))
    }

    /// Builds an error for a text of more than `max` characters.
    #[must_use]
    pub fn too_long_characters(field: &FieldPath<'_>, max: usize) -> Self {
        let unit = if max == 1 { "character" } else { "characters" };
        Self::new(ErrorType::TooLong, field, BadValue::Omitted, format!("may not be more than {max} {unit}"))
    }

    /// Builds an error for a list or map that has `len` entries, more than `max`.
    #[must_use]
    pub fn too_many(field: &FieldPath<'_>, len: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(ErrorType::TooMany, field, len.into(), format!("must have at most {max} {unit}"))
    }
}

/// Message of an error, without the field's path.
struct Body<'a>(&'a FieldError);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldError { r#type, detail, value, .. } = self.0;
        r#type.fmt(f)?;
        if r#type.shows_value() && *value != BadValue::Omitted {
            write!(f, ": {value}")?;
        }
        if !detail.is_empty() {
            write!(f, ": {detail}")?;
        }
        Ok(())
    }
}
