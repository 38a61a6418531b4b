//! `docs/divergences.md` names a test in each row. The test reads the sources for those names.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Packages with their folders.
const PACKAGES: [(&str, &str); 10] = [
    ("dra-attrs", "dra-attrs"),
    ("dra-device", "dra-alloc/device"),
    ("dra-selector", "dra-alloc/selector"),
    ("dra-validate", "dra-alloc/validate"),
    ("dra-node", "dra-alloc/node"),
    ("dra-alloc", "dra-alloc"),
    ("nnn", "nnn"),
    ("readiness", "readiness"),
    ("poolstatus", "poolstatus"),
    ("examples", "examples"),
];

/// Keywords before the name of an item that a row may name: a test, or an item with a doctest.
const KEYWORDS: [&str; 6] = ["fn", "mod", "enum", "struct", "trait", "const"];

/// A source file: its package, the names in its path, and the items that it has.
struct Source {
    package: &'static str,
    names: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Adds the sources of a folder, each by all of its names. `above` has the names of the folders that lead to it.
fn add_sources(package: &'static str, folder: &Path, above: &[String], sources: &mut Vec<Source>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let names = [above, &[name]].concat();
        if path.is_dir() {
            add_sources(package, &path, &names, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let words: Vec<&str> =
                text.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
            let items = words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0])).map(|pair| pair[1].to_owned());
            sources.push(Source { package, names: names.into_iter().chain(items).collect() });
        }
    }
}

/// Returns the names in backticks in the last cell of a row of a table, each with the package before it, if one is named.
fn cited(row: &str) -> Vec<(Option<&str>, &str)> {
    let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
    let (mut package, mut found) = (None, Vec::new());
    for (number, part) in cell.split('`').enumerate() {
        if number % 2 == 1 {
            found.push((package, part));
            continue;
        }
        let mut words = part.split(|character: char| !character.is_alphanumeric() && character != '-');
        package = words.rfind(|word| PACKAGES.iter().any(|(name, _)| name == word)).or(package);
    }
    found
}

#[test]
fn each_row_names_tests_that_exist() {
    let mut sources = Vec::new();
    for (package, folder) in PACKAGES {
        for part in ["src", "tests"].map(|part| root().join(folder).join(part)).iter().filter(|part| part.is_dir()) {
            add_sources(package, part, &[], &mut sources);
        }
    }
    let text = fs::read_to_string(root().join("docs/divergences.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ")).filter(|line| !line.starts_with("| topic "));
    let mut missing = BTreeMap::new();
    let citations: Vec<(Option<&str>, &str)> = rows.flat_map(cited).collect();
    for (package, citation) in &citations {
        let is_there = sources.iter().any(|source| {
            package.is_none_or(|package| source.package == package)
                && citation.split("::").all(|name| source.names.contains(name))
        });
        if !is_there {
            missing.insert(citation, package);
        }
    }
    assert!(citations.len() > 200, "{} citations", citations.len());
    assert_eq!(missing, BTreeMap::new());
}
