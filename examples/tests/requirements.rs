//! Traces every statement of the KEPs: `docs/requirements.tsv` lists it with a status, and a statement that is done is
//! cited by a test as `// req: ID`. A citation counts if it stands in a test that asserts something.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// `process`: the statement is about people or their dashboards (stages, objectives, order of a rollout), not a decision.
const STATUSES: [&str; 4] = ["open", "done", "partial", "process"];

/// Largest number of statements that are not proved whole.
const MAX_UNPROVED: usize = 30;

const HEADER: &str = "id\tsection\trequirement\tstatus\treason";

struct Requirement {
    status: String,
    reason: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn requirements() -> BTreeMap<String, Requirement> {
    let text = fs::read_to_string(root().join("docs/requirements.tsv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let mut all = BTreeMap::new();
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, _section, _requirement, status, reason] = columns.as_slice() else {
            panic!("not five columns: {line}")
        };
        let requirement = Requirement { status: (*status).to_owned(), reason: (*reason).to_owned() };
        assert!(all.insert((*id).to_owned(), requirement).is_none(), "{id} is listed twice");
    }
    all
}

/// Collects the Rust files of a directory without build output.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Texts in a test that can fail: assertions, and functions of the tests that assert.
const ASSERTIONS: [&str; 3] = ["assert", "check_rows", "expect("];

/// Comment `// req: A-1, A-2` in a Rust file.
struct Citation {
    ids: Vec<String>,
    place: String,
    /// True if it stands in a test under `tests/` that asserts something.
    is_in_a_test: bool,
}

fn citations() -> Vec<Citation> {
    let mut files = Vec::new();
    rust_files(&root(), &mut files);
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(ids) = line.trim_start().strip_prefix("// req:") else { continue };
            let is_in_tests = file.components().any(|component| component.as_os_str() == "tests");
            all.push(Citation {
                ids: ids.split(',').map(|id| id.trim().to_owned()).collect(),
                place: format!("{}:{}", file.display(), index + 1),
                is_in_a_test: is_in_tests && is_in_a_test(&lines, index),
            });
        }
    }
    all
}

/// Returns true if the function around a line has the attribute `test` and asserts something.
fn is_in_a_test(lines: &[&str], index: usize) -> bool {
    let Some((before, _)) = lines.split_at_checked(index) else { return false };
    let Some(start) = before.iter().rposition(|line| line.trim_start().starts_with("fn ")) else { return false };
    let is_test = lines.get(start.saturating_sub(3)..start).is_some_and(|lines| lines.concat().contains("#[test]"));
    let rest = lines.get(start..).unwrap_or_default();
    let indent = rest.first().map_or(0, |line| line.len() - line.trim_start().len());
    let end = format!("{}}}", " ".repeat(indent));
    let mut body = rest.iter().take_while(|line| **line != end);
    is_test && body.any(|line| ASSERTIONS.iter().any(|assertion| line.contains(assertion)))
}

fn cited() -> BTreeSet<String> {
    citations().into_iter().flat_map(|citation| citation.ids).collect()
}

#[test]
fn every_citation_stands_in_a_test_that_asserts() {
    let elsewhere: Vec<String> =
        citations().into_iter().filter(|citation| !citation.is_in_a_test).map(|citation| citation.place).collect();
    assert!(elsewhere.is_empty(), "not in a test under tests/ that asserts something: {elsewhere:?}");
    let proves = |body: &str| {
        let text = format!("#[test]\nfn a() {{\n    // req: A-1\n{body}}}\nfn b() {{\n    assert!(true);\n}}");
        is_in_a_test(&text.lines().collect::<Vec<_>>(), 2)
    };
    assert!(proves("    assert!(true);\n") && !proves(""));
}

#[test]
fn every_citation_names_a_listed_statement() {
    let listed = requirements();
    let unknown: Vec<_> = cited().into_iter().filter(|id| !listed.contains_key(id)).collect();
    assert!(unknown.is_empty(), "unknown ids: {unknown:?}");
}

#[test]
fn what_is_done_is_cited() {
    let cited = cited();
    let done = requirements().into_iter().filter(|(_, requirement)| requirement.status == "done");
    let without: Vec<_> = done.map(|(id, _)| id).filter(|id| !cited.contains(id)).collect();
    assert!(without.is_empty(), "done without a citing test: {without:?}");
}

#[test]
fn what_is_cited_is_not_open() {
    let listed = requirements();
    let open = |id: &String| listed.get(id).is_some_and(|requirement| requirement.status == "open");
    let stale: Vec<_> = cited().into_iter().filter(open).collect();
    assert!(stale.is_empty(), "cited but still open in the list: {stale:?}");
}

#[test]
fn each_status_is_known_and_has_its_reason() {
    for (id, Requirement { status, reason }) in requirements() {
        assert!(STATUSES.contains(&status.as_str()), "{id}: unknown status {status:?}");
        let needs_reason = matches!(status.as_str(), "partial" | "process");
        assert!(!needs_reason || !reason.is_empty(), "{id}: {status} needs a reason");
    }
}

#[test]
fn all_312_statements_are_listed() {
    assert_eq!(requirements().len(), 312);
}

#[test]
fn nearly_all_statements_are_proved() {
    let unproved = requirements().into_values().filter(|requirement| requirement.status != "done").count();
    assert!(unproved <= MAX_UNPROVED, "{unproved} statements are not done");
}
