//! Comparison of the tour with its recorded text; `UPDATE=1` records it anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use examples::tour::story;

#[test]
fn the_story_is_the_recorded_one() {
    let told = anstream::adapter::strip_str(&story().unwrap()).to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tour.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &told).unwrap();
    }
    assert_eq!(told, fs::read_to_string(&path).unwrap());
}
