//! Problems of manifests, with their places.

use std::fmt;

use super::tree::{Step, path_text};
use crate::quoted::{QUOTE, SENTENCE, quoted};

/// Location in a manifest with a description of the problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Name of the file.
    pub file: String,
    /// Line number, from 1.
    pub line: Option<u64>,
    /// Kind and name of the object, as far as known.
    pub object: String,
    /// Path of the field; empty for the object as a whole.
    pub field: String,
    /// Description of the problem.
    pub reason: String,
    /// True for a field that the kind does not have, and that was ignored.
    pub is_unknown_field: bool,
    /// True for a field that was dropped, and that another release has.
    pub is_of_other_release: bool,
}

impl Problem {
    pub(super) fn new(file: &str, line: Option<u64>, object: &str, path: &[Step], reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            object: quoted(object, QUOTE).into_owned(),
            field: quoted(&path_text(path), QUOTE).into_owned(),
            reason: quoted(&reason.into(), SENTENCE).into_owned(),
            is_unknown_field: false,
            is_of_other_release: false,
        }
    }

    /// Returns the file and line.
    pub(super) fn place(&self) -> String {
        self.line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.place(), &self.object, &self.field, &self.reason];
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(": "))
    }
}

/// Reason that an object can't be read, with the path of the field.
pub(super) struct Fault {
    pub(super) path: Vec<Step>,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(path: &[&str], reason: impl Into<String>) -> Self {
        Self { path: path.iter().map(|key| (*key).into()).collect(), reason: reason.into() }
    }
}
