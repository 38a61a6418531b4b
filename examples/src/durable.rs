//! Files that survive a crash: the ledger of a driver, CDI specs, states of nodes. A driver may copy this file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// End of the name of a file that is being written. A program that is killed leaves it; the next write replaces it.
pub const UNFINISHED: &str = ".tmp";

/// Largest number of bytes that are read. Nothing is written that would be longer.
const MAX_LEN: u64 = 128 * 1024 * 1024;

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
    /// The file exists and can't be read, is longer than 128 MiB, or is not a plain file.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            // A pipe would be waited for, and a device has no end.
            Ok(found) if !found.is_file() => return Err(io::Error::other("not a plain file")),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        File::open(&self.0)?.take(MAX_LEN.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_LEN {
            Err(too_long(format_args!("more than {MAX_LEN} bytes")))
        } else {
            Ok(Some(bytes))
        }
    }

    /// Replaces the contents: writes a file beside it, syncs, renames, and syncs the directory. Two programs that write
    /// the same file need a lock.
    ///
    /// # Errors
    /// The text is longer than a file that is read, or the error of the failed step. The file is unchanged then, unless only
    /// the last step failed.
    pub fn write(&self, text: &str) -> io::Result<()> {
        check_len(text.len() as u64)?;
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
    /// The file would be longer than one that is read, or the error of the failed step.
    pub fn append(&self, text: &str) -> io::Result<()> {
        let mut file = File::options().append(true).open(&self.0)?;
        check_len(file.metadata()?.len().saturating_add(text.len() as u64))?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    fn sync_directory(&self) -> io::Result<()> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder)?.sync_all()
    }
}

/// Checks that a file of a length would be read back.
fn check_len(len: u64) -> io::Result<()> {
    let reason = || too_long(format_args!("not written: {len} bytes, and at most {MAX_LEN} would be read back"));
    if len > MAX_LEN { Err(reason()) } else { Ok(()) }
}

fn too_long(reason: std::fmt::Arguments<'_>) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, reason.to_string())
}
