//! Objective of a file: the rule by which devices are chosen.

use std::io;
use std::path::{Path, PathBuf};

use dra_alloc::objective::{Objective, ObjectiveError};

use crate::manifest::read_text;

/// Reason that an objective can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveFileError {
    /// The file can't be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The text is not JSON.
    #[error("{}: {source}", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Place and reason.
        source: serde_json::Error,
    },
    /// The levels or terms are refused.
    #[error("{}: {source}", file.display())]
    Levels {
        /// The file.
        file: PathBuf,
        /// Field and reason.
        source: ObjectiveError,
    },
}

/// Reads an objective: levels of terms as JSON.
///
/// # Errors
/// See [`ObjectiveFileError`].
pub fn objective_of(file: &Path) -> Result<Objective, ObjectiveFileError> {
    let named = || file.to_owned();
    let text = read_text(file).map_err(|source| ObjectiveFileError::Read { file: named(), source })?;
    let json = serde_json::from_str(&text).map_err(|source| ObjectiveFileError::Json { file: named(), source })?;
    Objective::from_json(&json).map_err(|source| ObjectiveFileError::Levels { file: named(), source })
}
