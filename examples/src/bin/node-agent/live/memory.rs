//! States of the nodes, on disk. They are written before what they ask for is: a taint that the cluster has is one that
//! the file knows.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;

use examples::durable::DurableFile;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::{ClockReading, NodeState};
use serde::{Deserialize, Serialize};

/// Version of the file.
const VERSION: u32 = 1;

/// Id that each boot of the machine has.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Reason that the file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MemoryError {
    #[error("{}: {error}; without it, taints that the program has added would stay for ever", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: {error}; move the file away to begin anew, and look for taints that have no gate", path.display())]
    Damaged { path: PathBuf, error: serde_json::Error },
    #[error("{}: another node-agent works with this file; --state names another one", _0.display())]
    Taken(PathBuf),
    #[error("{}: version {version}; this release reads version {VERSION}", path.display())]
    OtherVersion { path: PathBuf, version: u32 },
}

/// File with the states of nodes.
#[derive(Debug)]
pub(super) struct Memory {
    file: DurableFile,
    boot_id: String,
    /// Locked until it is closed. It lies beside the file, which is replaced by each write, and stays there.
    _lock: File,
}

/// States and clock that an earlier run has left.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) memory: Memory,
    pub(super) nodes: BTreeMap<String, NodeState>,
    /// Clock of the earlier run, if the machine has not booted since.
    pub(super) clock: Option<ClockReading>,
}

/// States of nodes by name, and the clock that their times are of.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    version: u32,
    boot_id: String,
    /// Wall clock, and time since the boot.
    clock: Option<(Timestamp, SignedDuration)>,
    nodes: BTreeMap<String, NodeState>,
}

impl Memory {
    /// Reads the file, which need not be there.
    ///
    /// # Errors
    /// The file is damaged, or of another version, or another process has it.
    pub(super) fn open(path: PathBuf) -> Result<Remembered, MemoryError> {
        let file = DurableFile::new(path.clone());
        let boot_id = fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
        let failed = |error| MemoryError::Io { path: path.clone(), error };
        let mut beside = path.clone().into_os_string();
        beside.push(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(beside).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => MemoryError::Taken(path.clone()),
            TryLockError::Error(error) => failed(error),
        })?;
        let bytes = file.read().map_err(failed)?;
        let stored = match bytes {
            None => Stored { version: VERSION, ..Stored::default() },
            Some(bytes) => serde_json::from_slice::<Stored>(&bytes)
                .map_err(|error| MemoryError::Damaged { path: path.clone(), error })?,
        };
        if stored.version != VERSION {
            return Err(MemoryError::OtherVersion { path, version: stored.version });
        }
        let is_same_boot = !boot_id.is_empty() && stored.boot_id == boot_id;
        let clock = stored.clock.filter(|_| is_same_boot).map(|(wall, monotonic)| ClockReading { wall, monotonic });
        let memory = Self { file, boot_id, _lock: lock };
        Ok(Remembered { memory, nodes: stored.nodes, clock })
    }

    /// Writes the states.
    ///
    /// # Errors
    /// The file can't be written.
    ///
    /// # Complexity
    /// Linear in the number of nodes: the file is written whole.
    pub(super) fn keep(&self, nodes: &BTreeMap<String, NodeState>, clock: ClockReading) -> Result<(), MemoryError> {
        let failed = |error: io::Error| MemoryError::Io { path: self.file.path().to_owned(), error };
        let view = StoredView { version: VERSION, boot_id: &self.boot_id, clock: (clock.wall, clock.monotonic), nodes };
        let text = serde_json::to_string(&view).map_err(|error| failed(error.into()))?;
        self.file.write(&text).map_err(failed)
    }
}

/// [`Stored`] as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredView<'m> {
    version: u32,
    boot_id: &'m str,
    clock: (Timestamp, SignedDuration),
    nodes: &'m BTreeMap<String, NodeState>,
}
