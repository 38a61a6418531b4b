//! Files of the programs: nothing is written that would not be read back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::ErrorKind;

use examples::durable::DurableFile;
use tempfile::TempDir;

/// Largest number of bytes of a file.
const MOST: u64 = 128 * 1024 * 1024;

#[test]
fn a_text_that_would_not_be_read_is_not_written() {
    let folder = TempDir::new().unwrap();
    let file = DurableFile::new(folder.path().join("file"));
    file.write("old").unwrap();
    let long = "x".repeat(usize::try_from(MOST).unwrap() + 1);
    let error = file.write(&long).unwrap_err();
    let sentence = "not written: 134217729 bytes, and at most 134217728 would be read back";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::FileTooLarge, sentence));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part of it is left");
    assert_eq!(file.read().unwrap().unwrap(), b"old");

    // A hole counts, and takes no disk.
    File::options().write(true).open(file.path()).unwrap().set_len(MOST - 1).unwrap();
    file.append("y").unwrap();
    assert_eq!(file.append("z").unwrap_err().to_string(), sentence);
    assert_eq!(file.read().unwrap().unwrap().len() as u64, MOST);
    File::options().write(true).open(file.path()).unwrap().set_len(MOST + 1).unwrap();
    assert_eq!(file.read().unwrap_err().to_string(), "more than 134217728 bytes");
}

#[test]
fn a_device_or_a_folder_is_not_read() {
    for path in ["/dev/zero", "/"] {
        let error = DurableFile::new(path.into()).read().unwrap_err();
        assert_eq!(error.to_string(), "not a plain file", "{path}");
    }
    let folder = TempDir::new().unwrap();
    assert_eq!(DurableFile::new(folder.path().join("none")).read().unwrap(), None);
}
