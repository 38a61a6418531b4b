//! Values in validation messages.

use std::fmt;

use super::Quoted;

/// Invalid value in a validation error, as the message shows it.
///
/// ```
/// use dra_attrs::BadValue;
/// assert_eq!(BadValue::from("a\"b").to_string(), r#""a\"b""#);
/// assert_eq!(BadValue::from(-1).to_string(), "-1");
/// assert_eq!(BadValue::literal(r#"{"int":1}"#).to_string(), r#"{"int":1}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BadValue {
    /// The message shows no value.
    Omitted,
    /// Text that the message shows in quotes.
    Text(String),
    /// Text that the message shows without quotes: a number, a bool, JSON.
    Literal(String),
}

impl BadValue {
    /// Builds a value that the message shows without quotes, such as JSON.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

macro_rules! literals {
    ($($number:ty),*) => {$(
        impl From<$number> for BadValue {
            fn from(value: $number) -> Self {
                Self::Literal(value.to_string())
            }
        }
    )*};
}

literals!(i32, i64, usize, bool);

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Omitted => Ok(()),
            Self::Text(text) => Quoted(text).fmt(f),
            Self::Literal(text) => f.write_str(text),
        }
    }
}
