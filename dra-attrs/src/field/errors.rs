//! Validation errors of an object.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use super::FieldError;

/// Validation errors of an object, in the order in which they were found.
///
/// `Display` prints the API server's text: a single error alone, several in brackets, without repeated texts. After eight
/// texts it stops with "and N more"; [`FieldErrors::whole`] prints all.
///
/// ```
/// use dra_attrs::{FieldError, FieldErrors, FieldPath};
/// let spec = FieldPath::new("spec");
/// let mut errors = FieldErrors::new();
/// errors.push(FieldError::required(&spec.child("driver"), ""));
/// errors.push(FieldError::too_many(&spec.child("devices"), 129, 128));
/// assert_eq!(
///     errors.to_string(),
///     "[spec.driver: Required value, spec.devices: Too many: 129: must have at most 128 items]"
/// );
/// assert!(FieldErrors::new().into_result().is_ok());
/// assert!(errors.into_result().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", printed(self))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct FieldErrors {
    errors: Vec<FieldError>,
}

impl FieldErrors {
    /// Builds an empty list of errors.
    #[must_use]
    pub const fn new() -> Self {
        Self { errors: Vec::new() }
    }

    /// Appends an error.
    pub fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Returns the API server's text with all errors, however many there are.
    ///
    /// ```
    /// use dra_attrs::{FieldError, FieldErrors, FieldPath};
    /// let devices = FieldPath::new("devices");
    /// let errors: FieldErrors = (0..128).map(|index| FieldError::required(&devices.index(index), "")).collect();
    /// assert!(errors.to_string().ends_with("devices[7]: Required value and 120 more]"));
    /// assert!(errors.whole().ends_with("devices[127]: Required value]"));
    /// ```
    #[must_use]
    pub fn whole(&self) -> String {
        Whole(&self.texts()).to_string()
    }

    fn texts(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        self.errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone())).collect()
    }

    /// Returns `Ok` if there are no errors, and the list itself as the error otherwise.
    ///
    /// # Errors
    /// The validation errors.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

/// Largest number of errors that are printed.
const MOST_PRINTED: usize = 8;

/// Displays the first texts.
fn printed(errors: &FieldErrors) -> String {
    let texts = errors.texts();
    match texts.split_at_checked(MOST_PRINTED) {
        Some((first, rest)) if !rest.is_empty() => format!("[{} and {} more]", first.join(", "), rest.len()),
        _ => Whole(&texts).to_string(),
    }
}

/// Displays texts as the API server does.
struct Whole<'a>(&'a [String]);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [text] => f.write_str(text),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl Deref for FieldErrors {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.errors
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        self.errors.extend(errors);
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<T: IntoIterator<Item = FieldError>>(errors: T) -> Self {
        Self { errors: errors.into_iter().collect() }
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
