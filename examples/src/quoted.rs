//! Quotes of texts that somebody else wrote, which may have any length.

use std::borrow::Cow;

/// Longest quote of a name or a path, in bytes: as long as the longest name in Kubernetes.
pub const QUOTE: usize = 253;

/// Longest sentence with a quote in it, in bytes.
pub const SENTENCE: usize = 4 * QUOTE;

/// Sign of a part that is left out.
const LEFT_OUT: &str = " … ";

/// Returns a text with at most `most` bytes: of a longer one its beginning and its end.
///
/// ```
/// use examples::quoted::{QUOTE, quoted};
/// assert_eq!(quoted("node-1", QUOTE), "node-1");
/// assert_eq!(quoted("a long name of a node", 17), "a long … a node");
/// assert!(quoted(&"x".repeat(1_000_000), QUOTE).len() <= QUOTE);
/// ```
#[must_use]
pub fn quoted(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let part = most.saturating_sub(LEFT_OUT.len()) / 2;
    let beginning = (0..=part).rev().find_map(|end| text.get(..end)).unwrap_or_default();
    let end = (text.len() - part..).find_map(|start| text.get(start..)).unwrap_or_default();
    Cow::Owned([beginning.trim_end(), LEFT_OUT, end.trim_start()].concat())
}
