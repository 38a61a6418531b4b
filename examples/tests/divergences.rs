//! `docs/divergences.md` names a test in each row. The test reads the sources for those names.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 10] = [
    "dra-attrs",
    "dra-alloc/device",
    "dra-alloc/selector",
    "dra-alloc/validate",
    "dra-alloc/node",
    "dra-alloc",
    "nnn",
    "readiness",
    "poolstatus",
    "examples",
];

/// Keywords before the name of an item that a row may name: a test, or an item with a doctest.
const KEYWORDS: [&str; 6] = ["fn", "mod", "enum", "struct", "trait", "const"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Adds the names of all items in the sources of a folder.
fn add_names(folder: &Path, names: &mut BTreeSet<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            add_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let words: Vec<&str> =
                text.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
            let items = words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0]));
            names.extend(items.map(|pair| pair[1].to_owned()));
        }
    }
}

/// Returns the names in backticks in the last cell of a row of a table.
fn cited(row: &str) -> impl Iterator<Item = &str> {
    let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn each_row_names_tests_that_exist() {
    let mut names = BTreeSet::new();
    for folder in FOLDERS {
        for part in ["src", "tests"].map(|part| root().join(folder).join(part)).iter().filter(|part| part.is_dir()) {
            add_names(part, &mut names);
        }
    }
    let text = fs::read_to_string(root().join("docs/divergences.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ")).filter(|line| !line.starts_with("| topic "));
    let (mut found, mut missing) = (0, Vec::new());
    for row in rows {
        for citation in cited(row) {
            found += 1;
            if !names.contains(citation.rsplit("::").next().unwrap_or_default()) {
                missing.push(citation);
            }
        }
    }
    assert!(found > 200, "{found} citations");
    assert_eq!(missing, Vec::<&str>::new());
}
