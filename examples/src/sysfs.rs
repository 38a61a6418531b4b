//! Directories as sysfs. A driver copies this file: the libraries do no IO.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use dra_attrs::{Sysfs, SysfsError};

/// Largest number of bytes of a file that are read; the kernel's own files are far smaller.
pub const MAX_FILE_LEN: u64 = 64 * 1024;

/// Directory with the layout of `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a directory is all there is to it")]
pub struct SysfsDir {
    /// Directory that stands for `/sys`.
    pub root: PathBuf,
}

impl Default for SysfsDir {
    fn default() -> Self {
        Self { root: PathBuf::from("/sys") }
    }
}

impl SysfsDir {
    /// Joins a path to the root and rejects paths that lead out of it.
    fn join(&self, path: &str) -> io::Result<PathBuf> {
        let is_below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        is_below.then(|| self.root.join(path)).ok_or_else(|| io::Error::other("not a plain relative path"))
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.join(path)?)?.take(MAX_FILE_LEN.saturating_add(1)).read_to_end(&mut bytes)?;
        // A truncated CPU list would still be valid, with fewer CPUs.
        if u64::try_from(bytes.len()).is_ok_and(|len| len <= MAX_FILE_LEN) {
            Ok(bytes)
        } else {
            Err(io::Error::other(format!("more than {MAX_FILE_LEN} bytes")))
        }
    }

    fn entries(&self, path: &str) -> io::Result<BTreeSet<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(self.join(path)?)?.map(name).collect()
    }
}

impl Sysfs for SysfsDir {
    fn read(&self, path: &str) -> Result<String, SysfsError> {
        let bytes = self.read_bytes(path).map_err(|error| SysfsError::new(path, &error.to_string()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn link(&self, path: &str) -> Result<String, SysfsError> {
        let target = self.join(path).and_then(fs::read_link);
        let target = target.map_err(|error| SysfsError::new(path, &error.to_string()))?;
        Ok(target.to_string_lossy().into_owned())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SysfsError> {
        let entries = self.entries(path).map_err(|error| SysfsError::new(path, &error.to_string()))?;
        Ok(entries.into_iter().collect())
    }
}
