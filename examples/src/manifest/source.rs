//! Texts of manifests: files, directories and stdin, with a limit on what is read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest number of bytes of a manifest. A list of all objects of a cluster with 5,000 nodes is smaller.
pub const MAX_MANIFEST_LEN: u64 = 64 * 1024 * 1024;

/// Reads a source to its end.
///
/// # Errors
/// The source can't be read, is no UTF-8, or has more than [`MAX_MANIFEST_LEN`] bytes.
pub(super) fn text(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(MAX_MANIFEST_LEN.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MAX_MANIFEST_LEN) {
        return Err(io::Error::other(format!("more than {MAX_MANIFEST_LEN} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8"))
}

/// Reads a file; stdin for `-`.
///
/// # Errors
/// As for `text`.
pub fn read_text(path: &Path) -> io::Result<String> {
    if path == Path::new("-") { text(io::stdin().lock()) } else { text(File::open(path)?) }
}

/// Returns the file itself, or the `.yaml`, `.yml` and `.json` files in a directory and its subdirectories, sorted by
/// path. Only plain files of a directory count: a pipe would be waited for.
///
/// # Errors
/// A directory can't be read.
pub fn manifest_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if is_manifest(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn is_manifest(path: &Path) -> bool {
    let has_ending = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json");
    // A link that leads nowhere is kept, so that it is named.
    has_ending && fs::metadata(path).map_or(true, |found| found.is_file())
}
