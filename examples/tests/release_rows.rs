//! Releases are rows of data: no crate but dra-attrs decides by the release itself.
#![allow(clippy::unwrap_used, clippy::string_slice, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Sources of the libraries that read rules of releases.
const SOURCES: [&str; 8] = [
    "dra-alloc/device/src",
    "dra-alloc/selector/src",
    "dra-alloc/validate/src",
    "dra-alloc/node/src",
    "dra-alloc/src",
    "nnn/src",
    "readiness/src",
    "poolstatus/src",
];

/// Lines that name a profile, each with the reason why it decides nothing.
const NAMED: [(&str, usize, &str); 8] = [
    ("dra-alloc/node/src/driver/dropped.rs", 1, "names of gates in messages of drivers"),
    ("dra-alloc/node/src/driver/limits.rs", 1, "the smallest limits, for a server that nobody has asked"),
    ("dra-alloc/node/src/driver/reconcile.rs", 1, "names of gates in messages of drivers"),
    ("dra-alloc/selector/src/options.rs", 1, "the environment of expressions that name no release"),
    ("dra-alloc/src/search/pruning_rules/savings.rs", 1, "a test, with the gates of one release"),
    ("dra-alloc/validate/src/lib.rs", 1, "the shortest check, which says that it is for 1.37"),
    ("poolstatus/src/availability_report.rs", 3, "a status is written in one of two forms"),
    ("poolstatus/src/status_request.rs", 2, "a request has one of two forms"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_test {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            found.push(path);
        }
    }
}

/// Returns true if a line of code names a profile, or asks which one it is.
fn asks_for_the_profile(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let names =
        ["Profile::Kep", "Profile::V1_", "match profile {", "match self.profile {", "profile() ==", "profile =="];
    names.iter().any(|name| code.contains(name))
}

#[test]
fn no_crate_decides_by_the_release() {
    let mut found = Vec::new();
    for folder in SOURCES {
        let mut sources = Vec::new();
        files(&root().join(folder), &mut sources);
        sources.sort();
        for path in sources {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| asks_for_the_profile(line)).count();
            if lines > 0 {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, lines));
            }
        }
    }
    found.sort();
    let known: Vec<(String, usize)> = NAMED.iter().map(|(file, lines, _)| ((*file).to_owned(), *lines)).collect();
    assert_eq!(found, known, "left: lines that name a profile; right: those that are known to decide nothing");
}

#[test]
fn questions_for_the_profile_are_found() {
    assert!(asks_for_the_profile("        match profile {"));
    assert!(asks_for_the_profile("if options.profile() == Profile::Kep {"));
    assert!(!asks_for_the_profile("match profile.rules().skip.form {"));
    assert!(!asks_for_the_profile("    /// let profile = Profile::V1_37;"));
}

/// Returns the fields of the rules of releases, by the lines that declare them.
fn fields_of_rules() -> Vec<String> {
    let mut sources = Vec::new();
    files(&root().join("dra-attrs/src/release"), &mut sources);
    let texts = sources.iter().map(|path| fs::read_to_string(path).unwrap());
    let field = |line: &str| {
        let name = line.strip_prefix("    pub ")?.split_once(": ")?.0;
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_').then(|| name.to_owned())
    };
    texts.flat_map(|text| text.lines().filter_map(field).collect::<Vec<_>>()).collect()
}

#[test]
fn each_rule_of_a_release_is_read() {
    let mut sources = Vec::new();
    for folder in SOURCES.iter().chain(&["dra-attrs/src", "examples/src", "examples/stand-in/src"]) {
        files(&root().join(folder), &mut sources);
    }
    // The rows themselves read nothing.
    let is_row = |path: &PathBuf| path.ends_with("release/kep.rs") || path.to_string_lossy().contains("/release/v1_");
    sources.retain(|path| !is_row(path));
    let code: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let fields = fields_of_rules();
    assert!(fields.len() > 50, "{} fields", fields.len());
    let is_read = |field: &String| {
        code.match_indices(&format!(".{field}")).any(|(at, name)| {
            !code[at + name.len()..]
                .starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_' || next == '(')
        })
    };
    let unread: Vec<_> = fields.iter().filter(|field| !is_read(field)).collect();
    assert!(unread.is_empty(), "no code reads {unread:?}");
}
