//! States of the nodes, on disk. They are written before what they ask for is: a taint that the cluster has is one that
//! the file knows.
//!
//! The file has a line for the run that has written it, and one for each state. States that change are added at the end, where
//! the last line about a node counts; once there are more of these than nodes, the file is written whole.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dra_live::state_file::{FileLock, StateFile, StateFileError};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::{ClockReading, NodeState};
use serde::{Deserialize, Serialize};

/// Version of the file.
const VERSION: u32 = 2;

/// Number of lines that are added to any file.
const FEW_LINES: usize = 1_000;

/// Id that each boot of the machine has.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Reason that the file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MemoryError {
    #[error("{0}; without it, taints that the program has added would stay for ever")]
    File(StateFileError),
    #[error("{0}; --state names another file")]
    Taken(StateFileError),
    #[error("{}: a state can't be written as JSON: {error}", path.display())]
    NoJson { path: PathBuf, error: serde_json::Error },
    #[error(
        "{}: line {line}: {error}; move the file away to begin anew, and look for taints that have no gate",
        path.display()
    )]
    Damaged { path: PathBuf, line: usize, error: serde_json::Error },
    #[error("{}: version {version}; this release reads version {VERSION}", path.display())]
    OtherVersion { path: PathBuf, version: u32 },
}

/// File with the states of nodes.
#[derive(Debug)]
pub(super) struct Memory {
    file: StateFile,
    run: Run,
    /// Number of lines that were added since this run has written the file whole; `None` before.
    added: Cell<Option<usize>>,
    _lock: FileLock,
}

/// States and clock that an earlier run has left.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) memory: Memory,
    pub(super) nodes: BTreeMap<String, NodeState>,
    /// Clock of the earlier run, if the machine has not booted since.
    pub(super) clock: Option<ClockReading>,
}

/// Run that has written the file: its first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    version: u32,
    boot_id: String,
    /// Clock that the times of the states are of: the wall clock, and the time since the boot.
    clock: Option<(Timestamp, SignedDuration)>,
}

impl Memory {
    /// Reads the file, which need not be there.
    ///
    /// # Errors
    /// The file is damaged, or of another version, or another process has it.
    pub(super) fn open(path: PathBuf) -> Result<Remembered, MemoryError> {
        let file = StateFile::new(path);
        let boot_id = fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
        let lock = file.lock(env!("CARGO_BIN_NAME")).map_err(MemoryError::from)?;
        let (before, nodes) = match file.read()? {
            None => (None, BTreeMap::new()),
            Some(bytes) => {
                let (run, nodes) = read(file.path(), &bytes)?;
                (Some(run), nodes)
            }
        };
        let is_same_boot = |run: &Run| !boot_id.is_empty() && run.boot_id == boot_id;
        let clock = before.filter(is_same_boot).and_then(|run| run.clock);
        let clock = clock.map(|(wall, monotonic)| ClockReading { wall, monotonic });
        let run = Run { version: VERSION, boot_id, clock: None };
        Ok(Remembered { memory: Self { file, run, added: Cell::new(None), _lock: lock }, nodes, clock })
    }

    /// Writes the states of some nodes; that of a node without one is removed.
    ///
    /// # Errors
    /// The file can't be written.
    ///
    /// # Complexity
    /// Linear in the number of these nodes, on the average of all writes since [`Memory::keep_all`].
    pub(super) fn keep(
        &self,
        changed: &BTreeSet<String>,
        nodes: &BTreeMap<String, NodeState>,
        clock: ClockReading,
    ) -> Result<(), MemoryError> {
        let most = nodes.len().max(FEW_LINES);
        match self.added.get().map(|added| added.saturating_add(changed.len())) {
            Some(added) if added <= most => {
                let lines = changed.iter().map(|node| (node.as_str(), nodes.get(node)));
                let text = text(lines).map_err(|error| self.no_json(error))?;
                let written = self.file.append(&text);
                self.added.set(Some(added));
                Ok(written?)
            }
            _ => self.keep_all(nodes, clock),
        }
    }

    /// Writes all states, and the clock that their times are of.
    ///
    /// # Errors
    /// The file can't be written.
    pub(super) fn keep_all(&self, nodes: &BTreeMap<String, NodeState>, clock: ClockReading) -> Result<(), MemoryError> {
        let run = Run { clock: Some((clock.wall, clock.monotonic)), ..self.run.clone() };
        let lines = nodes.iter().map(|(node, state)| (node.as_str(), Some(state)));
        let whole = line(&run).and_then(|first| Ok(first + &text(lines)?)).map_err(|error| self.no_json(error))?;
        self.file.write(&whole)?;
        self.added.set(Some(0));
        Ok(())
    }

    fn no_json(&self, error: serde_json::Error) -> MemoryError {
        MemoryError::NoJson { path: self.file.path().to_owned(), error }
    }
}

impl From<StateFileError> for MemoryError {
    fn from(error: StateFileError) -> Self {
        if matches!(error, StateFileError::Locked { .. }) { Self::Taken(error) } else { Self::File(error) }
    }
}

/// Reads the lines of a file. One at the end that was not written to its end is left out: nothing was done for it yet.
fn read(path: &Path, bytes: &[u8]) -> Result<(Run, BTreeMap<String, NodeState>), MemoryError> {
    let damaged = |line, error| MemoryError::Damaged { path: path.to_owned(), line, error };
    let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end);
    let mut lines = bytes.get(..complete).unwrap_or_default().split(|byte| *byte == b'\n').zip(1..);
    let (first, number) = lines.next().unwrap_or_default();
    let run: Run = serde_json::from_slice(first).map_err(|error| damaged(number, error))?;
    if run.version != VERSION {
        return Err(MemoryError::OtherVersion { path: path.to_owned(), version: run.version });
    }
    let mut nodes = BTreeMap::new();
    for (line, number) in lines {
        let (node, state): (String, Option<NodeState>) =
            serde_json::from_slice(line).map_err(|error| damaged(number, error))?;
        match state {
            Some(state) => drop(nodes.insert(node, state)),
            None => drop(nodes.remove(&node)),
        }
    }
    Ok((run, nodes))
}

fn text<'n>(states: impl Iterator<Item = (&'n str, Option<&'n NodeState>)>) -> serde_json::Result<String> {
    states.map(|state| line(&state)).collect()
}

fn line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}
