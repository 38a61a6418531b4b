//! Reasons that a claim is not prepared or unprepared.

use std::io;
use std::path::{Path, PathBuf};

use dra_node::driver::{
    CdiError, ConfigError, LedgerError, LedgerStep, MetadataPathError, NotStartedError, PrepareClaimError,
};

use crate::plugin::PluginError;
use crate::state_file::StateFileError;

/// Reason that a claim was not prepared or unprepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreparedClaimsError {
    /// The ledger can't be used; nothing is done until an operator has looked at it.
    #[error("{}: {error}", path.display())]
    Ledger {
        /// Path of the ledger.
        path: PathBuf,
        /// The reason.
        error: LedgerError,
    },
    /// The ledger is lost: which claims the files belong to is not known.
    #[error(
        "{}: no ledger there, but {} has the files of {count} claims, such as {claim_uid}: put the ledger back; or drain the node and \
         begin with a new one, which removes the files and resets the devices", path.display(), cdi.display()
    )]
    LedgerGone {
        /// Path of the ledger.
        path: PathBuf,
        /// Directory of the files.
        cdi: PathBuf,
        /// Number of claims with files.
        count: usize,
        /// UID of one of the claims.
        claim_uid: String,
    },
    /// A file of the driver can't be used.
    #[error(transparent)]
    StateFile(#[from] StateFileError),
    /// The claim can't be prepared now.
    #[error(transparent)]
    Refused(#[from] PrepareClaimError),
    /// The configuration of a device can't be determined.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The claim or driver gives no name of CDI, or no spec.
    #[error(transparent)]
    Cdi(#[from] CdiError),
    /// The claim can't have metadata files.
    #[error(transparent)]
    Metadata(#[from] MetadataPathError),
    /// The steps are out of order.
    #[error(transparent)]
    NotStarted(#[from] NotStartedError),
    /// A step is not known here.
    #[error("no such step: {_0:?}")]
    UnknownStep(LedgerStep),
    /// A file can't be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The API server did not answer.
    #[error("{0}")]
    Api(String),
    /// The hardware did not do what it should; the next call repeats the step.
    #[error("{0}")]
    Plugin(PluginError),
    /// An error of the operating system.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl PreparedClaimsError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }
}
