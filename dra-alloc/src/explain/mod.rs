//! Why claims are not allocated on a node.

use std::fmt;

use serde::Serialize;

/// How much is said about a "no".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Detail {
    /// Nothing is explained, and nothing is recorded.
    #[default]
    Off,
    /// The reasons, devices counted.
    Summary,
    /// The reasons with their devices.
    Full,
}

/// The reasons of a "no".
///
/// [`fmt::Display`] gives one line, like a scheduler's event; [`Explanation::tree`] everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {}

impl Explanation {
    /// All reasons, one a line, indented below what they are a reason for.
    #[must_use]
    pub fn tree(&self) -> String {
        String::new()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no reason was recorded")
    }
}
