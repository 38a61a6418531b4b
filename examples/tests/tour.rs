//! Comparison of the tour with its recorded text; `UPDATE=1` records it anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_story_is_the_recorded_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_tour")).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = anstream::adapter::strip_str(str::from_utf8(&output.stdout).unwrap()).to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tour.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &told).unwrap();
    }
    assert_eq!(told, fs::read_to_string(&path).unwrap());
}
