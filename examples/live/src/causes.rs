//! Errors with their causes: the outermost one alone says that there was an error.

use std::error::Error;
use std::iter::successors;

/// Returns an error and its causes, the outermost first.
pub fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Returns the texts of an error and its causes, with colons between them. A cause that the text before has already is not
/// repeated.
///
/// ```
/// use dra_live::causes::with_causes;
/// let error = std::io::Error::other("no room");
/// assert_eq!(with_causes(&error), "no room");
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("transport error: {0}")]
/// struct Transport(#[source] std::io::Error);
/// assert_eq!(with_causes(&Transport(error)), "transport error: no room");
/// ```
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    causes(error).fold(String::new(), |text, cause| match cause.to_string() {
        cause if text.is_empty() => cause,
        cause if text.ends_with(&cause) => text,
        cause => format!("{text}: {cause}"),
    })
}
