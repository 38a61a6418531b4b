//! Recorded cases that are too large for the project. Tests of them are ignored, and run by name where the cases are there.

use std::path::{Path, PathBuf};

/// Returns the path of a file or folder of cases.
pub(crate) fn shared_corpus(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus").join(name);
    assert!(path.exists(), "the test needs {}", path.display());
    path
}
