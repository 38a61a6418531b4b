//! Objective of a file: the rule by which devices are chosen.

use std::io;
use std::path::{Path, PathBuf};

use dra_alloc::objective::{Objective, ObjectiveError};
use examples::manifest::read_text;

/// Reason that an objective can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChoiceError {
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
    Objective {
        /// The file.
        file: PathBuf,
        /// Field and reason.
        source: ObjectiveError,
    },
}

/// Reads an objective: levels of terms as JSON.
///
/// # Errors
/// See [`ChoiceError`].
pub(crate) fn read(file: &Path) -> Result<Objective, ChoiceError> {
    let named = || file.to_owned();
    let text = read_text(file).map_err(|source| ChoiceError::Read { file: named(), source })?;
    let json = serde_json::from_str(&text).map_err(|source| ChoiceError::Json { file: named(), source })?;
    Objective::from_json(&json).map_err(|source| ChoiceError::Objective { file: named(), source })
}
