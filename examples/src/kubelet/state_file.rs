//! The checkpoint on disk.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is there as a whole or not at all, whenever the machine stops.
#[derive(Clone, Debug)]
pub struct StateFile(PathBuf);

impl StateFile {
    /// The file at a path, which need not be there yet.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What is in it; none if there is no file.
    ///
    /// # Errors
    /// A file that is there and can't be read.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(&self.0) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a text in its place: written beside the file, synced, renamed.
    ///
    /// # Errors
    /// What could not be done. The file is then as it was.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.0).map(|_| ()).map_err(|error| error.error)
    }
}
