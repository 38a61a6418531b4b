//! Checkpoint file on disk, and the lock that keeps it to one process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Largest number of bytes of a checkpoint that are read or written: a million claims fit.
const MAX_LEN: u64 = 128 * 1024 * 1024;

/// Bytes of a checkpoint that answers of drivers leave free for pods and claims to come.
const KEPT_FREE: u64 = 16 * 1024 * 1024;

/// Largest number of symbolic links that a path may pass through, as in the kernel.
const MAX_LINKS: usize = 40;

/// Reason that the checkpoint can't be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateFileError {
    /// There is no file.
    #[error("{}: no checkpoint there", _0.display())]
    Missing(PathBuf),
    /// There is no directory for the file.
    #[error("{}: no folder {}", path.display(), folder.display())]
    NoFolder {
        /// Path of the file.
        path: PathBuf,
        /// Path of the directory.
        folder: PathBuf,
    },
    /// The path is that of a directory, a device, a socket or a pipe.
    #[error("{}: not a plain file", _0.display())]
    NotPlain(PathBuf),
    /// The file is longer than any checkpoint.
    #[error("{}: more than {MAX_LEN} bytes", _0.display())]
    TooLong(PathBuf),
    /// The text is longer than any checkpoint that is read.
    #[error("{}: not written: {len} bytes, and at most {MAX_LEN} would be read back", path.display())]
    TooLongToRead {
        /// Path of the file.
        path: PathBuf,
        /// Number of bytes.
        len: usize,
    },
    /// Another process works on the file.
    #[error("{}: another kubelet is working on this checkpoint; try again when it has ended", _0.display())]
    Locked(PathBuf),
    /// An error of the operating system.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// Path of a checkpoint, which may be a symbolic link to it.
#[derive(Clone, Debug)]
pub(crate) struct StateFile(PathBuf);

/// Checkpoint that no other process works on while this value lives. It is replaced atomically: after a crash it is
/// complete or absent.
#[derive(Debug)]
pub(crate) struct LockedStateFile {
    file: StateFile,
    /// Path of the file itself, with links followed.
    target: PathBuf,
    /// Locked until it is closed. It lies beside the checkpoint, which is replaced by each write, and stays there.
    _lock: File,
}

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
    /// The file exists and can't be read, or is no plain file.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>, StateFileError> {
        match fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
            Ok(found) if !found.is_file() => return Err(StateFileError::NotPlain(self.0.clone())),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        let file = File::open(&self.0).map_err(|error| self.failed(error))?;
        file.take(MAX_LEN.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        if fits(bytes.len(), MAX_LEN) { Ok(Some(bytes)) } else { Err(StateFileError::TooLong(self.0.clone())) }
    }

    /// Locks the file, whether or not it exists, and removes what a killed process has left beside it.
    ///
    /// # Errors
    /// Another process has the lock, or the directory of the file can't be written to.
    pub(crate) fn lock(self) -> Result<LockedStateFile, StateFileError> {
        let target = self.followed()?;
        let folder = folder_of(&target);
        if !folder.is_dir() {
            return Err(StateFileError::NoFolder { folder: folder.to_owned(), path: self.0 });
        }
        let lock = File::options().create(true).truncate(false).write(true).open(beside(&target, "", ".lock"));
        let lock = lock.map_err(|error| self.failed(error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateFileError::Locked(self.0)),
            Err(TryLockError::Error(error)) => return Err(self.failed(error)),
        }
        let locked = LockedStateFile { file: self, target, _lock: lock };
        locked.remove_leftovers().map_err(|error| locked.file.failed(error))?;
        Ok(locked)
    }

    /// Returns the path of the file itself: links are followed, also one to a file that does not exist yet.
    fn followed(&self) -> Result<PathBuf, StateFileError> {
        let mut path = self.0.clone();
        for _ in 0..MAX_LINKS {
            // What is no link, or not there, is the file itself.
            let Ok(target) = fs::read_link(&path) else { return Ok(path) };
            path = folder_of(&path).join(target);
        }
        Err(self.failed(io::Error::other("too many symbolic links")))
    }

    fn failed(&self, error: io::Error) -> StateFileError {
        StateFileError::Io { path: self.0.clone(), error }
    }
}

impl LockedStateFile {
    /// Returns the path of the checkpoint with its contents.
    pub(crate) const fn file(&self) -> &StateFile {
        &self.file
    }

    /// Replaces the contents: writes a new file beside it, syncs it, renames it, and syncs the directory.
    ///
    /// # Errors
    /// The text would not be read back, or the error of the failed step. The file is unchanged then, unless only the last
    /// step failed.
    pub(crate) fn write(&self, text: &str) -> Result<(), StateFileError> {
        if !fits(text.len(), MAX_LEN) {
            return Err(StateFileError::TooLongToRead { path: self.file.0.clone(), len: text.len() });
        }
        self.replace(text).map_err(|error| self.file.failed(error))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let folder = folder_of(&self.target);
        let (prefix, suffix) = self.temporary();
        let mut file = tempfile::Builder::new().prefix(&prefix).suffix(&suffix).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.target).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    }

    /// Returns the beginning and the end of the names of temporary files.
    fn temporary(&self) -> (OsString, OsString) {
        (beside(Path::new(self.target.file_name().unwrap_or_default()), ".", ".").into(), ".tmp".into())
    }

    fn remove_leftovers(&self) -> io::Result<()> {
        let (prefix, suffix) = self.temporary();
        let (prefix, suffix) = (prefix.as_encoded_bytes(), suffix.as_encoded_bytes());
        for entry in fs::read_dir(folder_of(&self.target))? {
            let name = entry?.file_name();
            let bytes = name.as_encoded_bytes();
            if bytes.starts_with(prefix) && bytes.ends_with(suffix) {
                fs::remove_file(folder_of(&self.target).join(name))?;
            }
        }
        Ok(())
    }
}

/// Returns true if a checkpoint leaves room for pods and claims to come.
pub(crate) fn leaves_room(text: &str) -> bool {
    fits(text.len(), MAX_LEN.saturating_sub(KEPT_FREE))
}

fn fits(len: usize, most: u64) -> bool {
    u64::try_from(len).is_ok_and(|len| len <= most)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Returns the path of a file beside another one, whose name has something before and after it.
fn beside(path: &Path, before: &str, after: &str) -> PathBuf {
    let parts = [OsStr::new(before), path.file_name().unwrap_or_default(), OsStr::new(after)];
    path.with_file_name(parts.into_iter().collect::<OsString>())
}
