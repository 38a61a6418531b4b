//! File of the ledger, which preserves it across restarts and reboots.
//!
//! ```json
//! {"version": 1, "checksum": 1423857, "data": "{\"entries\":{\"5f1c\":{\"namespace\":\"default\",…}}}"}
//! ```
//!
//! The checksum is the CRC-32 of the text in `data` as it stands in the file, never of a value that was read and written
//! again: a field that a later version adds does not make a file corrupt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Ledger;

/// Version of the file that is written.
const VERSION: u64 = 1;

/// Reason why the file of a ledger can't be used.
///
/// The driver then fails every call, and never writes an empty ledger over the file: an operator needs to know which
/// claims are prepared, for which CDI files are a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A part of the file is not JSON or has a wrong type.
    #[error("ledger of prepared claims is corrupted: {field}: {reason}")]
    Invalid {
        /// The part: `file`, `data`, or a path in `data`.
        field: String,
        /// Message of the JSON parser.
        reason: String,
    },
    /// The file has a version that this one does not know.
    #[error("ledger of prepared claims has version {found}, this driver knows version {VERSION}")]
    Version {
        /// Version of the file.
        found: u64,
    },
    /// The checksum of `data` differs from the one in the file.
    #[error("ledger of prepared claims is corrupted: the checksum of data is {actual}, the file says {expected}")]
    Checksum {
        /// Checksum in the file.
        expected: u32,
        /// Checksum computed from `data`.
        actual: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u64,
    checksum: u32,
    data: String,
}

impl Ledger {
    /// Returns the text of the file.
    #[must_use]
    pub fn to_checkpoint(&self) -> String {
        // Serialisation of these types into memory can't fail: keys are strings.
        let data = serde_json::to_string(self).unwrap_or_default();
        let file = File { version: VERSION, checksum: crc32fast::hash(data.as_bytes()), data };
        serde_json::to_string(&file).unwrap_or_default()
    }

    /// Reads a file. A file that does not exist is an empty ledger; that is the caller's to tell apart.
    ///
    /// ```
    /// use dra_node::driver::{Ledger, LedgerError};
    /// let file = Ledger::default().to_checkpoint();
    /// assert_eq!(Ledger::from_checkpoint(file.as_bytes())?, Ledger::default());
    /// let cut = Ledger::from_checkpoint(&file.as_bytes()[..10]);
    /// assert!(matches!(cut, Err(LedgerError::Invalid { .. })), "never an empty ledger");
    /// # Ok::<(), LedgerError>(())
    /// ```
    ///
    /// # Errors
    /// The file is damaged, or was written by a later version.
    pub fn from_checkpoint(file: &[u8]) -> Result<Self, LedgerError> {
        let file: Value = serde_json::from_slice(file).map_err(|error| invalid("file", &error))?;
        if let Some(found) = file.get("version").and_then(Value::as_u64).filter(|found| *found != VERSION) {
            return Err(LedgerError::Version { found });
        }
        let File { checksum: expected, data, .. } = File::deserialize(file).map_err(|error| invalid("file", &error))?;
        let actual = crc32fast::hash(data.as_bytes());
        if expected != actual {
            return Err(LedgerError::Checksum { expected, actual });
        }
        serde_json::from_str(&data).map_err(|error| invalid("data", &error))
    }
}

fn invalid(field: &str, error: &serde_json::Error) -> LedgerError {
    LedgerError::Invalid { field: field.to_owned(), reason: error.to_string() }
}
