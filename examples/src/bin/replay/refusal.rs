//! Error lines, and reading of input with errors that name the field.

use dra_attrs::saturate_times;
use examples::objects::KubeObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Error, Value};
use serde_path_to_error::Error as PathError;

use super::objects::Objects;

/// Field name for input that is wrong as a whole.
const ROOT: &str = "input";

/// Reason that an operation has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// Name of the error variant.
    pub(crate) kind: String,
    /// Text of the error.
    pub(crate) message: String,
    /// Path of the invalid field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
}

impl Refusal {
    /// Builds an error of a kind.
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), field: None }
    }

    /// Builds an error for a field of a wrong type or form.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        Self::new("InvalidInput", message).at(field)
    }

    /// Prefixes the field's path with that of its object.
    pub(super) fn below(self, place: &str) -> Self {
        let field = self.field.filter(|field| field != ROOT);
        let field =
            field.map_or_else(String::new, |field| if field.starts_with('[') { field } else { format!(".{field}") });
        let field = format!("{place}{field}");
        Self { field: Some(field), ..self }
    }

    /// Sets the field's path.
    pub(crate) fn at(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }
}

/// Reads a value, with times in the range of their types ([`saturate_times`]). An error names the path of the field that
/// could not be read.
///
/// # Errors
/// `InvalidInput` for a wrong type or a missing field.
pub(super) fn read<T: DeserializeOwned>(mut value: Value) -> Result<T, Refusal> {
    saturate_times(&mut value);
    serde_path_to_error::deserialize(Objects(value)).map_err(unreadable)
}

/// Reads the Kubernetes object of a field.
///
/// # Errors
/// `InvalidInput` for a wrong type or a missing field.
pub(super) fn object<T: KubeObject>(field: &str, value: Value) -> Result<T, Refusal> {
    T::from_json(value).map_err(|error| unreadable(error).below(field))
}

/// Reads the Kubernetes objects of a field.
///
/// # Errors
/// `InvalidInput` for a wrong type or a missing field.
pub(super) fn objects<T: KubeObject>(field: &str, values: impl Iterator<Item = Value>) -> Result<Vec<T>, Refusal> {
    values.enumerate().map(|(index, value)| object(&format!("{field}[{index}]"), value)).collect()
}

fn unreadable(error: PathError<Error>) -> Refusal {
    let path = error.path().to_string();
    let message = error.into_inner().to_string();
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let field = match (path.as_str(), missing) {
        (".", Some(name)) => name.to_owned(),
        (".", None) => ROOT.to_owned(),
        (path, Some(name)) => format!("{path}.{name}"),
        (path, None) => path.to_owned(),
    };
    Refusal::field(&field, message)
}
