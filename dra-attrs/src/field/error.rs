//! One problem of one field.

use std::fmt;

use serde::Serialize;

use super::{BadValue, ErrorType, FieldPath, Quoted};

/// One problem of one field.
///
/// Its text is the API server's; on the wire it is `{field, type, detail}`.
///
/// ```
/// use dra_attrs::field::{FieldError, FieldPath};
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
    /// The path of the field.
    pub field: String,
    /// What kind of problem it is.
    pub r#type: ErrorType,
    /// What is wrong, in words; may be empty.
    pub detail: String,
    /// The value.
    #[serde(skip)]
    #[cfg_attr(feature = "schemars", schemars(skip))]
    pub value: BadValue,
}

impl FieldError {
    /// A problem of any kind.
    #[must_use]
    pub fn new(r#type: ErrorType, field: &FieldPath<'_>, value: BadValue, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), r#type, detail: detail.into(), value }
    }

    /// A value is missing.
    #[must_use]
    pub fn required(field: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, field, BadValue::Omitted, detail)
    }

    /// A value is malformed or out of bounds.
    #[must_use]
    pub fn invalid(field: &FieldPath<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, field, value.into(), detail)
    }

    /// A well-formed value is not permitted here.
    #[must_use]
    pub fn forbidden(field: &FieldPath<'_>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, field, BadValue::Omitted, detail)
    }

    /// A value is there twice.
    #[must_use]
    pub fn duplicate(field: &FieldPath<'_>, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::Duplicate, field, value.into(), "")
    }

    /// A value that is referred to does not exist.
    #[must_use]
    pub fn not_found(field: &FieldPath<'_>, value: impl Into<BadValue>) -> Self {
        Self::new(ErrorType::NotFound, field, value.into(), "")
    }

    /// A value is none of the `supported` ones, which are listed as given.
    ///
    /// ```
    /// use dra_attrs::field::{FieldError, FieldPath};
    /// let error = FieldError::not_supported(&FieldPath::new("effect"), "NoSuch", &["NoExecute", "None"]);
    /// assert_eq!(error.to_string(), r#"effect: Unsupported value: "NoSuch": supported values: "NoExecute", "None""#);
    /// ```
    #[must_use]
    pub fn not_supported(field: &FieldPath<'_>, value: impl Into<BadValue>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| Quoted(value).to_string()).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::new(ErrorType::NotSupported, field, value.into(), detail)
    }

    /// A text has more than `max` bytes.
    #[must_use]
    pub fn too_long(field: &FieldPath<'_>, max: usize) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(ErrorType::TooLong, field, BadValue::Omitted, format!("may not be more than {max} {unit}"))
    }

    /// A list or map has `len` entries, more than `max`.
    #[must_use]
    pub fn too_many(field: &FieldPath<'_>, len: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(ErrorType::TooMany, field, len.into(), format!("must have at most {max} {unit}"))
    }
}

/// The message without the field's path.
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
