//! Checkpoint file on disk.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// File that is replaced atomically: after a crash it is complete or absent.
#[derive(Clone, Debug)]
pub(crate) struct StateFile(PathBuf);

impl StateFile {
    /// Returns the file at a path, which need not exist yet.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the contents; `None` if there is no file.
    ///
    /// # Errors
    /// The file exists and can't be read.
    pub(crate) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(&self.0) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the contents: writes a new file beside it, syncs and renames.
    ///
    /// # Errors
    /// The error of the failed step. The file is unchanged then.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.0).map(|_| ()).map_err(|error| error.error)
    }
}
