//! States of the nodes, on disk. They are written before what they ask for is: a taint that the cluster has is one that
//! the file knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use examples::durable::sync_folder_of;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::{ClockReading, NodeState};
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};

/// Version of what is in the file.
const VERSION: u32 = 2;

/// Id that each boot of the machine has.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Largest number of bytes of the file that are kept in memory.
const CACHE: usize = 16 << 20;

/// States by name of the node, as JSON.
const STATES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("states");

/// The one [`Run`], as JSON.
const RUN: TableDefinition<'_, (), &[u8]> = TableDefinition::new("run");

/// Reason that the file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MemoryError {
    #[error("{}: {error}; without it, taints that the program has added would stay for ever", path.display())]
    Io { path: PathBuf, error: Box<redb::Error> },
    #[error("{}: {error}; move the file away to begin anew, and look for taints that have no gate", path.display())]
    Damaged { path: PathBuf, error: serde_json::Error },
    #[error("{}: another node-agent works with this file; --state names another one", _0.display())]
    Taken(PathBuf),
    #[error("{}: version {version}; this release reads version {VERSION}", path.display())]
    OtherVersion { path: PathBuf, version: u32 },
}

/// File with the states of nodes. No other process can open it meanwhile.
#[derive(Debug)]
pub(super) struct Memory {
    path: PathBuf,
    file: Database,
    boot_id: String,
}

/// States and clock that an earlier run has left.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) memory: Memory,
    pub(super) nodes: BTreeMap<String, NodeState>,
    /// Clock of the earlier run, if the machine has not booted since.
    pub(super) clock: Option<ClockReading>,
}

/// Run that has written last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    version: u32,
    boot_id: String,
    /// Clock that the times of all states are of: the wall clock, and the time since the boot.
    clock: (Timestamp, SignedDuration),
}

impl Memory {
    /// Reads the file, which need not be there.
    ///
    /// # Errors
    /// The file is damaged, or of another version, or another process has it.
    pub(super) fn open(path: PathBuf) -> Result<Remembered, MemoryError> {
        let file = Builder::new().set_cache_size(CACHE).create(&path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => MemoryError::Taken(path.clone()),
            error => MemoryError::io(&path, error),
        })?;
        sync_folder_of(&path).map_err(|error| MemoryError::io(&path, error))?;
        let boot_id = fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
        let memory = Self { path, file, boot_id };
        let stored = memory.read().map_err(|error| MemoryError::io(&memory.path, error))?;
        let Some((run, states)) = stored else {
            return Ok(Remembered { memory, nodes: BTreeMap::new(), clock: None });
        };
        let run: Run = memory.parsed(&run)?;
        if run.version != VERSION {
            return Err(MemoryError::OtherVersion { path: memory.path, version: run.version });
        }
        let nodes = states.into_iter().map(|(node, state)| Ok((node, memory.parsed(&state)?)));
        let nodes = nodes.collect::<Result<_, MemoryError>>()?;
        let is_same_boot = !memory.boot_id.is_empty() && run.boot_id == memory.boot_id;
        let clock = is_same_boot.then_some(ClockReading { wall: run.clock.0, monotonic: run.clock.1 });
        Ok(Remembered { memory, nodes, clock })
    }

    /// Reads the last run and the states as they are stored; `None` if nothing was written yet.
    #[expect(clippy::type_complexity, reason = "two tables, before they are parsed")]
    fn read(&self) -> Result<Option<(Vec<u8>, Vec<(String, Vec<u8>)>)>, redb::Error> {
        let transaction = self.file.begin_read()?;
        let run = match transaction.open_table(RUN) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            run => run?,
        };
        let Some(run) = run.get(())?.map(|run| run.value().to_owned()) else { return Ok(None) };
        let states = transaction.open_table(STATES)?;
        let stored = states.iter()?.map(|entry| {
            let (node, state) = entry?;
            Ok((node.value().to_owned(), state.value().to_owned()))
        });
        Ok(Some((run, stored.collect::<Result<_, redb::Error>>()?)))
    }

    fn parsed<T: for<'de> Deserialize<'de>>(&self, text: &[u8]) -> Result<T, MemoryError> {
        serde_json::from_slice(text).map_err(|error| MemoryError::Damaged { path: self.path.clone(), error })
    }

    /// Writes the states of some nodes, all or none of them; that of a node without one is removed.
    ///
    /// # Errors
    /// The file can't be written.
    ///
    /// # Complexity
    /// `O(k log n)` for `k` of `n` nodes.
    pub(super) fn keep(
        &self,
        nodes: &BTreeSet<String>,
        states: &BTreeMap<String, NodeState>,
        clock: ClockReading,
    ) -> Result<(), MemoryError> {
        let run = Run { version: VERSION, boot_id: self.boot_id.clone(), clock: (clock.wall, clock.monotonic) };
        self.write(&run, nodes, states).map_err(|error| MemoryError::io(&self.path, error))
    }

    fn write(
        &self,
        run: &Run,
        nodes: &BTreeSet<String>,
        states: &BTreeMap<String, NodeState>,
    ) -> Result<(), redb::Error> {
        let transaction = self.file.begin_write()?;
        transaction.open_table(RUN)?.insert((), json(run)?.as_slice())?;
        {
            let mut stored = transaction.open_table(STATES)?;
            for node in nodes {
                match states.get(node) {
                    Some(state) => drop(stored.insert(node.as_str(), json(state)?.as_slice())?),
                    None => drop(stored.remove(node.as_str())?),
                }
            }
        }
        Ok(transaction.commit()?)
    }
}

impl MemoryError {
    fn io(path: &Path, error: impl Into<redb::Error>) -> Self {
        Self::Io { path: path.to_owned(), error: Box::new(error.into()) }
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, std::io::Error> {
    Ok(serde_json::to_vec(value)?)
}
