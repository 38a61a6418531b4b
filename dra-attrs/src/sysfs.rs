//! The view of a machine: texts and links below `/sys`.
//!
//! The crate does no IO. A caller implements [`Sysfs`] for a real `/sys`, for a directory capture, or uses [`SysfsMap`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many links a path may lead through, as in the kernel.
const MAX_LINKS: usize = 40;

/// Why a file or link can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("/sys/{path}: {reason}")]
#[non_exhaustive]
pub struct SysfsError {
    /// The path below `/sys`, without it.
    pub path: String,
    /// What the machine said.
    pub reason: String,
}

impl SysfsError {
    /// An error for one path.
    #[must_use]
    pub fn new(path: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: reason.to_owned() }
    }
}

/// Reads files and links below `/sys`. Paths are relative to it: `devices/system/node/online`.
pub trait Sysfs {
    /// The text of a file.
    ///
    /// # Errors
    /// The file is missing or can't be read.
    fn read(&self, path: &str) -> Result<String, SysfsError>;

    /// Where a symbolic link points, as it is written in the link.
    ///
    /// # Errors
    /// The link is missing or can't be read.
    fn link(&self, path: &str) -> Result<String, SysfsError>;
}

impl<T: Sysfs + ?Sized> Sysfs for &T {
    fn read(&self, path: &str) -> Result<String, SysfsError> {
        (**self).read(path)
    }

    fn link(&self, path: &str) -> Result<String, SysfsError> {
        (**self).link(path)
    }
}

/// A machine held in memory: for tests, captures and simulators. Directories that are links are followed: a device is found
/// below `bus/pci/devices` as well as below `devices/pci0000:00`.
///
/// ```
/// use dra_attrs::sysfs::{Sysfs, SysfsMap};
/// let machine = SysfsMap::default().with_file("devices/system/node/online", "0\n");
/// assert_eq!(machine.read("devices/system/node/online")?, "0\n");
/// assert_eq!(machine.read("nothing").unwrap_err().to_string(), "/sys/nothing: no such file");
/// let machine = machine.with_link("class/nodes", "../devices/system/node");
/// assert_eq!(machine.read("class/nodes/online")?, "0\n");
/// # Ok::<(), dra_attrs::sysfs::SysfsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct SysfsMap {
    /// Text by path.
    pub files: BTreeMap<String, String>,
    /// Target by path.
    pub links: BTreeMap<String, String>,
}

impl SysfsMap {
    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Adds a link.
    #[must_use]
    pub fn with_link(mut self, path: impl Into<String>, target: impl Into<String>) -> Self {
        self.links.insert(path.into(), target.into());
        self
    }

    /// A path without its links: each directory that is a link is replaced by where it points. None if there are too many.
    fn resolved(&self, path: &str) -> Option<String> {
        let mut rest: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut followed = 0;
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => drop(done.pop()),
                _ => done.push(name),
            }
            let Some(target) = self.links.get(&done.join("/")).filter(|_| !rest.is_empty()) else { continue };
            followed += 1;
            if followed > MAX_LINKS {
                return None;
            }
            done.pop();
            let absolute = target.strip_prefix("/sys/");
            if absolute.is_some() {
                done.clear();
            }
            rest.extend(absolute.unwrap_or(target).rsplit('/').map(str::to_owned));
        }
        Some(done.join("/"))
    }

    fn found<'m>(&self, entries: &'m BTreeMap<String, String>, path: &str) -> Option<&'m String> {
        entries.get(path).or_else(|| entries.get(&self.resolved(path)?))
    }
}

impl Sysfs for SysfsMap {
    fn read(&self, path: &str) -> Result<String, SysfsError> {
        self.found(&self.files, path).cloned().ok_or_else(|| SysfsError::new(path, "no such file"))
    }

    fn link(&self, path: &str) -> Result<String, SysfsError> {
        self.found(&self.links, path).cloned().ok_or_else(|| SysfsError::new(path, "no such link"))
    }
}

/// The text without white space and NUL bytes around it; some kernels pad files with NULs.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0')
}
