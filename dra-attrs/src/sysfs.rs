//! Access to a machine's files and links below `/sys`.
//!
//! The crate does no IO. Implement [`Sysfs`] for a real `/sys` or for a captured directory, or use [`SysfsMap`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Largest number of links that a path may pass through, as in the kernel.
const MAX_LINKS: usize = 40;

/// Largest number of bytes of a path and of a link's target, as in the kernel.
const MAX_PATH_LEN: usize = 4096;

/// Reason that a file or link can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("/sys/{path}: {reason}")]
#[non_exhaustive]
pub struct SysfsError {
    /// Path relative to `/sys`.
    pub path: String,
    /// Description of the error.
    pub reason: String,
}

impl SysfsError {
    /// Builds the error of a file or link at `path` that can't be read.
    #[must_use]
    pub fn new(path: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: reason.to_owned() }
    }
}

/// Read access to files and links below `/sys`. Paths are relative to `/sys`: `devices/system/node/online`.
pub trait Sysfs {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The file is missing or can't be read.
    fn read(&self, path: &str) -> Result<String, SysfsError>;

    /// Returns the target of a symbolic link, as it is written in the link.
    ///
    /// # Errors
    /// The link is missing or can't be read.
    fn link(&self, path: &str) -> Result<String, SysfsError>;

    /// Returns the names in a directory, sorted: devices of `bus/pci/devices`, interfaces of `class/net`.
    ///
    /// # Errors
    /// The directory is missing or can't be read.
    fn list(&self, path: &str) -> Result<Vec<String>, SysfsError>;
}

impl<T: Sysfs + ?Sized> Sysfs for &T {
    fn read(&self, path: &str) -> Result<String, SysfsError> {
        (**self).read(path)
    }

    fn link(&self, path: &str) -> Result<String, SysfsError> {
        (**self).link(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SysfsError> {
        (**self).list(path)
    }
}

/// Files and links of `/sys` in memory, for tests, captures and simulators. Directories that are links are followed: a
/// device is found below `bus/pci/devices` as well as below `devices/pci0000:00`. Paths and links have the limits of Linux:
/// 4,096 bytes, and 40 links on the way.
///
/// ```
/// use dra_attrs::{Sysfs, SysfsMap};
/// let machine = SysfsMap::default().with_file("devices/system/node/online", "0\n");
/// assert_eq!(machine.read("devices/system/node/online")?, "0\n");
/// assert_eq!(machine.read("nothing").unwrap_err().to_string(), "/sys/nothing: no such file");
/// let machine = machine.with_link("class/nodes", "../devices/system/node");
/// assert_eq!(machine.read("class/nodes/online")?, "0\n");
/// assert_eq!(machine.list("class/nodes")?, ["online"]);
/// # Ok::<(), dra_attrs::SysfsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct SysfsMap {
    /// Contents of files, by path relative to `/sys`.
    pub files: BTreeMap<String, String>,
    /// Targets of symbolic links, by path relative to `/sys`.
    pub links: BTreeMap<String, String>,
}

impl SysfsMap {
    /// Adds a file at a path relative to `/sys`.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Adds a symbolic link at a path relative to `/sys`.
    #[must_use]
    pub fn with_link(mut self, path: impl Into<String>, target: impl Into<String>) -> Self {
        self.links.insert(path.into(), target.into());
        self
    }

    /// Returns a path with every directory that is a link replaced by its target.
    ///
    /// # Errors
    /// The kernel would refuse the path: it is too long, has too many links, or one that is too long.
    fn resolved(&self, path: &str) -> Result<String, &'static str> {
        if path.len() > MAX_PATH_LEN {
            return Err("path too long");
        }
        let mut rest: Vec<&str> = path.rsplit('/').collect();
        let mut done = String::new();
        let mut followed = 0;
        while let Some(name) = rest.pop() {
            let parent = match name {
                "" | "." => continue,
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or_default());
                    continue;
                }
                _ => done.len(),
            };
            if parent > 0 {
                done.push('/');
            }
            done.push_str(name);
            let Some(target) = self.links.get(&done).filter(|_| !rest.is_empty()) else { continue };
            followed += 1;
            if followed > MAX_LINKS {
                return Err("too many links");
            }
            if target.len() > MAX_PATH_LEN {
                return Err("link too long");
            }
            let absolute = target.strip_prefix("/sys/");
            done.truncate(if absolute.is_some() { 0 } else { parent });
            rest.extend(absolute.unwrap_or(target).rsplit('/'));
        }
        Ok(done)
    }

    /// Returns the entry of a path; `missing` says that there is none.
    fn found<'m>(
        &self,
        entries: &'m BTreeMap<String, String>,
        path: &str,
        missing: &'static str,
    ) -> Result<&'m String, SysfsError> {
        if let Some(entry) = entries.get(path) {
            return Ok(entry);
        }
        let resolved = self.resolved(path);
        let entry = resolved.and_then(|resolved| entries.get(&resolved).ok_or(missing));
        entry.map_err(|reason| SysfsError::new(path, reason))
    }
}

impl Sysfs for SysfsMap {
    fn read(&self, path: &str) -> Result<String, SysfsError> {
        self.found(&self.files, path, "no such file").cloned()
    }

    fn link(&self, path: &str) -> Result<String, SysfsError> {
        self.found(&self.links, path, "no such link").cloned()
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SysfsError> {
        // A directory has at least one entry, and may be a link itself.
        let directory = self.resolved(&format!("{path}/.")).unwrap_or_default() + "/";
        let names: BTreeSet<&str> =
            [&self.files, &self.links].into_iter().flat_map(|entries| names_below(entries, &directory)).collect();
        if names.is_empty() {
            return Err(SysfsError::new(path, "no such directory"));
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }
}

/// Returns the first names of all paths in a directory, which ends with a slash.
fn names_below<'m>(entries: &'m BTreeMap<String, String>, directory: &'m str) -> impl Iterator<Item = &'m str> {
    let below = entries.range(directory.to_owned()..).map_while(move |(path, _)| path.strip_prefix(directory));
    below.filter_map(|path| path.split('/').next()).filter(|name| !name.is_empty())
}

/// Returns the text without white space and NUL bytes around it; some kernels pad files with NUL bytes.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0')
}
