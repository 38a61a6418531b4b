//! Files that programs keep: nothing is written that would not be read back, and nothing is waited for without end.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use dra_live::state_file::{FileLock, StateFile, StateFileError};
use tempfile::TempDir;

/// Largest number of bytes of a file.
const MOST: u64 = 128 * 1024 * 1024;

#[test]
fn a_text_that_would_not_be_read_is_not_written() {
    let folder = TempDir::new().unwrap();
    let file = StateFile::new(folder.path().join("file"));
    file.write("old").unwrap();
    let long = "x".repeat(usize::try_from(MOST).unwrap() + 1);
    let error = file.write(&long).unwrap_err();
    let sentence = "file: not written: 134217729 bytes, and at most 134217728 would be read back";
    assert!(error.to_string().ends_with(sentence), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part of it is left");
    assert_eq!(file.read().unwrap().unwrap(), b"old");

    // A hole counts, and takes no disk.
    File::options().write(true).open(file.path()).unwrap().set_len(MOST - 1).unwrap();
    file.append("y").unwrap();
    assert!(file.append("z").unwrap_err().to_string().ends_with(sentence));
    assert_eq!(file.read().unwrap().unwrap().len() as u64, MOST);
    File::options().write(true).open(file.path()).unwrap().set_len(MOST + 1).unwrap();
    assert!(file.read().unwrap_err().to_string().ends_with("file: more than 134217728 bytes"));
}

/// Makes a pipe with a name.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn only_plain_files_are_read_written_and_locked() {
    let folder = TempDir::new().unwrap();
    let [named, state, none] = ["pipe", "state", "none"].map(|name| folder.path().join(name));
    pipe(&named);
    for path in [Path::new("/dev/zero"), Path::new("/"), &named] {
        let (file, refused) = (StateFile::new(path.to_owned()), format!("{}: not a plain file", path.display()));
        assert_eq!(file.read().unwrap_err().to_string(), refused);
        assert_eq!(file.write("text").unwrap_err().to_string(), refused);
        assert_eq!(file.append("text").unwrap_err().to_string(), refused);
    }
    assert_eq!(StateFile::new(none).read().unwrap(), None);
    // Neither a lock nor an unfinished file is waited for.
    pipe(&folder.path().join("state.tmp"));
    StateFile::new(state.clone()).write("text").unwrap();
    assert_eq!(fs::read(&state).unwrap(), b"text");
    pipe(&folder.path().join("state.lock"));
    assert!(matches!(StateFile::new(state).lock("test"), Err(StateFileError::NotPlain(_))));
}

#[test]
fn a_link_stands_for_its_target() {
    let folder = TempDir::new().unwrap();
    let [link, target, other] = ["link", "target", "other"].map(|name| folder.path().join(name));
    symlink("target", &link).unwrap();
    let file = StateFile::new(link.clone());
    assert_eq!(file.read().unwrap(), None, "a link to nothing");
    file.write("first").unwrap();
    file.append(" and more").unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        (fs::read(&target).unwrap(), file.read().unwrap().unwrap()),
        (b"first and more".to_vec(), b"first and more".to_vec())
    );
    // An unfinished file that is a link is not followed.
    fs::write(&other, "of somebody else").unwrap();
    symlink("other", folder.path().join("target.tmp")).unwrap();
    file.write("second").unwrap();
    assert_eq!(
        (fs::read(&other).unwrap(), fs::read(&target).unwrap()),
        (b"of somebody else".to_vec(), b"second".to_vec())
    );
    file.remove().unwrap();
    assert!(!target.exists() && file.read().unwrap().is_none());
    file.remove().unwrap();

    symlink("loop", folder.path().join("loop")).unwrap();
    let error = StateFile::new(folder.path().join("loop")).write("text").unwrap_err();
    assert!(error.to_string().ends_with("loop: too many symbolic links"), "{error}");
}

#[test]
fn a_lock_names_its_holder_and_is_waited_for_until_the_end() {
    let folder = TempDir::new().unwrap();
    let file = StateFile::new(folder.path().join("state"));
    fs::write(folder.path().join("state.tmp"), "left by a killed process").unwrap();
    let lock = file.lock("first").unwrap();
    assert!(!folder.path().join("state.tmp").exists());
    let refused = file.lock("second").unwrap_err();
    let told = format!("first (process {}) is working on this file; try again when it has ended", process::id());
    assert!(refused.to_string().ends_with(&told), "{refused}");
    let begin = Instant::now();
    let wait = Duration::from_millis(100);
    FileLock::take(file.path(), &folder.path().join("state.lock"), "third", wait).unwrap_err();
    assert!(begin.elapsed() >= wait);
    drop(lock);
    drop(file.lock("second").unwrap());

    let nowhere = StateFile::new(folder.path().join("none/state"));
    assert!(matches!(nowhere.lock("test"), Err(StateFileError::NoFolder { .. })));
}
