//! Registered drivers: the directory of registration sockets is looked at, and a socket that is new is asked.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::super::grpc::registered;
use super::note;

/// Time after which a socket that was refused is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Drivers of the flags, and those of a directory.
#[derive(Debug)]
pub(super) struct Plugins {
    fixed: BTreeMap<String, PathBuf>,
    registry: Option<PathBuf>,
    /// Sockets that were seen, with what tells one from its successor of the same name.
    seen: BTreeMap<PathBuf, (u64, i64, i64)>,
    /// Reasons of the last refusals, which are named once.
    refused: Vec<String>,
    again: Option<Instant>,
}

impl Plugins {
    pub(super) const fn new(fixed: BTreeMap<String, PathBuf>, registry: Option<PathBuf>) -> Self {
        Self { fixed, registry, seen: BTreeMap::new(), refused: Vec::new(), again: None }
    }

    /// Returns all drivers if a socket has come or gone, or was refused before.
    pub(super) async fn look(&mut self) -> Option<BTreeMap<String, PathBuf>> {
        let registry = self.registry.as_ref()?;
        let entries = fs::read_dir(registry).into_iter().flatten().flatten();
        let identity = |entry: fs::DirEntry| {
            let metadata = entry.metadata().ok()?;
            Some((entry.path(), (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())))
        };
        let seen: BTreeMap<PathBuf, (u64, i64, i64)> = entries.filter_map(identity).collect();
        let is_due = self.again.is_some_and(|again| again <= Instant::now());
        if seen == self.seen && !is_due {
            return None;
        }
        self.seen = seen;
        let (found, refused) = registered(registry).await;
        self.again = (!refused.is_empty()).then(|| Instant::now().checked_add(AGAIN)).flatten();
        for reason in refused.iter().filter(|reason| !self.refused.contains(reason)) {
            note(reason);
        }
        self.refused = refused;
        let mut plugins = self.fixed.clone();
        plugins.extend(found);
        Some(plugins)
    }
}
