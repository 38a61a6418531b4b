//! Version of stored state, and errors of reading it.

use serde_json::Value;

/// Version of the JSON form of [`NodeState`](crate::NodeState) and [`HoldDown`](crate::network::HoldDown).
pub(crate) const STATE_VERSION: u32 = 1;

/// Reason that stored state can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredStateError {
    /// Another release wrote the state, in a version that this release does not know.
    #[error("stored state has version {found}; this release reads version {known}")]
    UnknownVersion {
        /// The value of the unknown `version` in the state.
        found: Value,
        /// The version that this release reads and writes.
        known: u32,
    },
    /// The state has no field `version`, or is not a JSON object.
    #[error("stored state has no field `version`; this release reads version {known}")]
    MissingVersion {
        /// The version that this release reads and writes.
        known: u32,
    },
    /// The text is not JSON, or a field has the wrong type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Checks that a stored state has the version that this release reads.
pub(crate) fn check_version(state: &Value) -> Result<(), StoredStateError> {
    match state.get("version") {
        Some(version) if *version == STATE_VERSION => Ok(()),
        Some(version) => Err(StoredStateError::UnknownVersion { found: version.clone(), known: STATE_VERSION }),
        None => Err(StoredStateError::MissingVersion { known: STATE_VERSION }),
    }
}
