//! Files that survive a crash: the ledger of a driver, CDI specs, states of nodes. A driver may copy this file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// End of the name of a file that is being written. A program that is killed leaves it; the next write replaces it.
pub const UNFINISHED: &str = ".tmp";

/// File that is replaced atomically and durably: after a crash it has the old contents or the new ones. Text can be added,
/// too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableFile(PathBuf);

impl DurableFile {
    /// Returns the file at a path, which need not exist yet.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the contents; `None` if there is no file.
    ///
    /// # Errors
    /// The file exists and can't be read.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.0) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the contents: writes a file beside it, syncs, renames, and syncs the directory. Two programs that write
    /// the same file need a lock.
    ///
    /// # Errors
    /// The error of the failed step.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let mut unfinished = self.0.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &self.0)?;
        self.sync_directory()
    }

    /// Removes the file, which need not exist, and syncs the directory.
    ///
    /// # Errors
    /// The error of the failed step.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.sync_directory(),
        }
    }

    /// Adds text to the file, which exists, and syncs it. After a crash, part of the text may be there.
    ///
    /// # Errors
    /// The error of the failed step.
    pub fn append(&self, text: &str) -> io::Result<()> {
        let mut file = File::options().append(true).open(&self.0)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    fn sync_directory(&self) -> io::Result<()> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder)?.sync_all()
    }
}
