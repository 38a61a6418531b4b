//! The first line of a doc comment is a verb with its object, or a noun phrase: never a question clause. Files of programs
//! stay short.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 8] =
    ["dra-attrs", "dra-alloc", "nnn", "readiness", "poolstatus", "examples", "benches", "fuzz/fuzz_targets"];

/// Words that begin a clause instead of a statement.
const REFUSED: [&str; 4] = ["What", "Whether", "How", "Why"];

/// Largest number of lines of code in a file of a program.
const MAX_LINES: usize = 300;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the text of a doc comment's line.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

#[test]
fn doc_comments_begin_with_a_statement() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root.join(folder), &mut files);
    }
    files.sort();
    let mut refused = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let Some(documentation) = documentation(line) else { continue };
            let first = documentation.split([' ', ',', ':']).next().unwrap_or_default();
            if REFUSED.contains(&first) {
                refused.push(format!("{}:{}: {documentation}", file.display(), number + 1));
            }
        }
    }
    assert!(refused.is_empty(), "{} lines:\n{}", refused.len(), refused.join("\n"));
}

/// Returns the paths of tests in the last line of a module's documentation, or the reason that it has none.
fn tests_of(text: &str) -> Result<Vec<&str>, &'static str> {
    let last = text.lines().take_while(|line| line.starts_with("//!")).last().ok_or("no documentation")?;
    let named = last.strip_prefix("//! Tests: ").ok_or("the last line names no tests")?;
    Ok(named.split('`').skip(1).step_by(2).collect())
}

#[test]
fn the_documentation_of_a_module_ends_with_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["dra-attrs", "dra-alloc", "nnn", "readiness", "poolstatus"] {
        sources(&root.join(folder), &mut files);
    }
    let is_module = |file: &PathBuf| {
        let text = file.to_string_lossy();
        text.contains("/src/")
            && !text.contains("/src/tests/")
            && (file.ends_with("mod.rs") || file.ends_with("lib.rs"))
    };
    files.retain(is_module);
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let package = PathBuf::from(file.to_string_lossy().split("/src/").next().unwrap());
        match tests_of(&text) {
            Err(reason) => wrong.push(format!("{}: {reason}", file.display())),
            Ok(tests) => wrong.extend(
                tests
                    .iter()
                    .filter(|test| !package.join(test).exists())
                    .map(|test| format!("{}: no {test}", file.display())),
            ),
        }
    }
    assert!(files.len() > 50 && wrong.is_empty(), "{} modules:\n{}", files.len(), wrong.join("\n"));
}

/// Returns the number of lines of code, without blank lines, comments and the tests at the end of a file.
fn lines_of_code(text: &str) -> usize {
    let code = text.lines().map(str::trim).take_while(|line| !line.contains("#[cfg(test)]"));
    code.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn lines_are_counted_without_comments_and_tests() {
    assert_eq!(lines_of_code("//! A file.\n\nuse a::b;\n\n/// Does it.\nfn f() {\n    // Twice.\n    b();\n}\n"), 4);
    assert_eq!(lines_of_code("fn f() {}\n\n#[cfg(test)]\nmod tests {}\n"), 1);
}

#[test]
fn no_program_file_is_long() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    files.sort();
    let mut long = Vec::new();
    for file in &files {
        let count = lines_of_code(&fs::read_to_string(file).unwrap());
        if count > MAX_LINES {
            long.push(format!("{}: {count} lines", file.display()));
        }
    }
    assert!(
        files.len() > 100 && long.is_empty(),
        "{} files of more than {MAX_LINES}:\n{}",
        long.len(),
        long.join("\n")
    );
}
