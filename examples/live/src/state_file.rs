//! Files that programs keep over a crash: the kubelet's checkpoint, the ledger of a driver, CDI specs, states of nodes.
//!
//! Only plain files are read, of at most 128 MiB, so that a pipe is not waited for and a device does not fill the memory. A path that is a
//! symbolic link stands for its target, which is read and replaced.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// End of the name of a file that is being written. A program that is killed leaves it; the next write replaces it.
pub const UNFINISHED: &str = ".tmp";

/// Largest number of bytes that are read. Nothing is written that would be longer.
const MAX_LEN: u64 = 128 * 1024 * 1024;

/// Largest number of symbolic links that a path may pass through, as in the kernel.
const MAX_LINKS: usize = 40;

/// Largest number of bytes that are read of a lock.
const MAX_HOLDER: u64 = 100;

/// Time between two tries to take a lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Reason that a file can't be read, written or locked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateFileError {
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
    /// The file is longer than any that a program keeps.
    #[error("{}: more than {MAX_LEN} bytes", _0.display())]
    TooLong(PathBuf),
    /// The text is longer than any that is read.
    #[error("{}: not written: {len} bytes, and at most {MAX_LEN} would be read back", path.display())]
    TooLongToRead {
        /// Path of the file.
        path: PathBuf,
        /// Number of bytes.
        len: u64,
    },
    /// Another process works on the file.
    #[error("{}: {holder} is working on this file; try again when it has ended", path.display())]
    Locked {
        /// Path of the file.
        path: PathBuf,
        /// Name and number of the process, as it has written them.
        holder: String,
    },
    /// An error of the operating system.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// File that is replaced atomically and durably: after a crash it has the old contents or the new ones. Text can be added, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile(PathBuf);

/// Right to work on a file, until the value is dropped or the process ends.
#[derive(Debug)]
#[must_use = "the lock ends when it is dropped"]
pub struct FileLock(File);

impl StateFile {
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
    /// The file exists and can't be read, is too long, or is not a plain file.
    pub fn read(&self) -> Result<Option<Vec<u8>>, StateFileError> {
        if !is_plain(&self.0)? {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let file = File::open(&self.0).map_err(|error| failed(&self.0, error))?;
        file.take(MAX_LEN.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failed(&self.0, error))?;
        if bytes.len() as u64 > MAX_LEN { Err(StateFileError::TooLong(self.0.clone())) } else { Ok(Some(bytes)) }
    }

    /// Replaces the contents: writes a file beside it, syncs, renames, and syncs the directory. Two programs that write the same
    /// file need a lock.
    ///
    /// # Errors
    /// The text is longer than a file that is read, the path is of something other than a file, or the error of the failed step. The
    /// file is unchanged then, unless only the last step failed.
    pub fn write(&self, text: &str) -> Result<(), StateFileError> {
        self.check_len(text.len() as u64)?;
        let target = followed(&self.0)?;
        is_plain(&target)?;
        replace(&target, text).map_err(|error| failed(&self.0, error))
    }

    /// Removes the file, which need not exist, and syncs the directory. Of a link, the target is removed.
    ///
    /// # Errors
    /// The error of the failed step.
    pub fn remove(&self) -> Result<(), StateFileError> {
        let target = followed(&self.0)?;
        match fs::remove_file(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(&self.0, error)),
            Ok(()) => sync_folder_of(&target).map_err(|error| failed(&self.0, error)),
        }
    }

    /// Adds text to the file, which exists, and syncs it. After a crash, part of the text may be there.
    ///
    /// # Errors
    /// The file would be longer than one that is read, is not a plain file, or the error of the failed step.
    pub fn append(&self, text: &str) -> Result<(), StateFileError> {
        is_plain(&self.0)?;
        let open = || {
            let file = File::options().append(true).open(&self.0)?;
            Ok((file.metadata()?.len(), file))
        };
        let (len, mut file) = open().map_err(|error| failed(&self.0, error))?;
        self.check_len(len.saturating_add(text.len() as u64))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(|error| failed(&self.0, error))
    }

    /// Locks the file, whether or not it exists, and removes a part that a killed process has left beside it. The lock is a file of its
    /// own, which stays: the file itself is replaced by each write.
    ///
    /// `holder` names the program, for others that find the file locked.
    ///
    /// # Errors
    /// Another process has the lock, or the directory of the file can't be written to.
    pub fn lock(&self, holder: &str) -> Result<FileLock, StateFileError> {
        let target = followed(&self.0)?;
        let folder = folder_of(&target);
        if !folder.is_dir() {
            return Err(StateFileError::NoFolder { folder: folder.to_owned(), path: self.0.clone() });
        }
        let lock = FileLock::take(&self.0, &beside(&target, ".lock"), holder, Duration::ZERO)?;
        match fs::remove_file(beside(&target, UNFINISHED)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&self.0, error)),
            _ => Ok(lock),
        }
    }

    fn check_len(&self, len: u64) -> Result<(), StateFileError> {
        if len > MAX_LEN { Err(StateFileError::TooLongToRead { path: self.0.clone(), len }) } else { Ok(()) }
    }
}

impl FileLock {
    /// Locks `lock`, which is created, for the work on `path`. Tries it for `wait` if another process has it.
    ///
    /// # Errors
    /// Another process has the lock when the time is over, or the file can't be opened.
    pub fn take(path: &Path, lock: &Path, holder: &str, wait: Duration) -> Result<Self, StateFileError> {
        is_plain(lock)?;
        let file = File::options().create(true).truncate(false).read(true).write(true).open(lock);
        let mut file = file.map_err(|error| failed(lock, error))?;
        let end = Instant::now().checked_add(wait);
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if end.is_some_and(|end| Instant::now() < end) => sleep(PAUSE),
                TryLockError::WouldBlock => {
                    return Err(StateFileError::Locked { path: path.to_owned(), holder: holder_of(&file) });
                }
                TryLockError::Error(error) => return Err(failed(lock, error)),
            }
        }
        // Who holds it is told to people only.
        let _ =
            file.set_len(0).and_then(|()| file.write_all(format!("{holder} (process {})", process::id()).as_bytes()));
        Ok(Self(file))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The name of one that has ended would mislead.
        let _ = self.0.set_len(0);
    }
}

/// Returns true if a text leaves an eighth of the longest file free for texts to come.
#[must_use]
pub fn leaves_room(text: &str) -> bool {
    text.len() as u64 <= MAX_LEN / 8 * 7
}

/// Returns the name that the holder of a lock has written there.
fn holder_of(lock: &File) -> String {
    let mut text = String::new();
    let read = lock.take(MAX_HOLDER).read_to_string(&mut text);
    if read.is_err() || text.is_empty() { "another process".to_owned() } else { text.escape_debug().to_string() }
}

/// Returns true for a file, and false if there is nothing.
fn is_plain(path: &Path) -> Result<bool, StateFileError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(path, error)),
        Ok(found) if !found.is_file() => Err(StateFileError::NotPlain(path.to_owned())),
        Ok(_) => Ok(true),
    }
}

fn replace(target: &Path, text: &str) -> io::Result<()> {
    let unfinished = beside(target, UNFINISHED);
    // Whatever is there, such as a link or a pipe, is not written to.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, target)?;
    sync_folder_of(target)
}

/// Returns the path of the file itself: links are followed, also one to a file that does not exist yet.
fn followed(path: &Path) -> Result<PathBuf, StateFileError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        // A path that is no link, or where nothing is, is the file itself.
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        target = folder_of(&target).join(next);
    }
    Err(failed(path, io::Error::other("too many symbolic links")))
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Returns the path of a file beside another one, whose name has something behind it.
fn beside(path: &Path, behind: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(behind);
    path.with_file_name(name)
}

fn failed(path: &Path, error: io::Error) -> StateFileError {
    StateFileError::Io { path: path.to_owned(), error }
}
