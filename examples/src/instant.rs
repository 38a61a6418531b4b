//! Times on the command line.

use k8s_openapi::jiff::{Error, Timestamp};

/// Parses a time, such as `2026-11-21T12:00:00Z`.
///
/// # Errors
/// A message that says why the text is no time.
///
/// ```
/// use examples::instant::instant;
/// assert!(instant("2026-11-21T12:00:00Z").is_ok() && instant("soon").is_err());
/// ```
pub fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|error: Error| error.to_string())
}
