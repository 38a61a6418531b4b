//! Traces every statement of the KEPs: `docs/requirements.tsv` lists it with a status, and a statement that is done is
//! cited as `// req: ID` in a test, before an assertion.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// `process`: the statement is about people or their dashboards (stages, objectives, order of a rollout), not a decision.
const STATUSES: [&str; 4] = ["open", "done", "partial", "process"];

/// Largest number of statements that are not proved whole.
const MAX_UNPROVED: usize = 8;

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

/// Returns the ids in comments of the form `// req: A-1, A-2`, with the files that cite them.
fn citations() -> BTreeMap<String, BTreeSet<PathBuf>> {
    let mut files = Vec::new();
    rust_files(&root(), &mut files);
    let mut cited: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let Some(ids) = line.trim_start().strip_prefix("// req:") else { continue };
            for id in ids.split(',') {
                cited.entry(id.trim().to_owned()).or_default().insert(file.clone());
            }
        }
    }
    cited
}

/// Words of a line that can fail: assertions, and the helpers that assert for tables of API writes.
const ASSERTIONS: [&str; 5] = ["assert", "panic!", "check_rows", "expect::<", " expect("];

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the reason that a citation, the line at `cited`, proves nothing.
fn unproved(lines: &[&str], cited: usize) -> Option<&'static str> {
    let (before, after) = lines.split_at(cited);
    let is_function = |line: &str| line.trim_start().starts_with("fn ") && indent(line) < indent(lines[cited]);
    let Some(start) = before.iter().rposition(|line| is_function(line)) else { return Some("not in a function") };
    let attributes = before[..start].iter().rev().take_while(|line| line.trim_start().starts_with(['#', '/']));
    let attributes: Vec<&str> = attributes.map(|line| line.trim()).collect();
    if !attributes.contains(&"#[test]") || attributes.iter().any(|line| line.starts_with("#[ignore")) {
        return Some("not in a test that runs");
    }
    let end = format!("{}}}", " ".repeat(indent(lines[start])));
    let mut body = after.iter().take_while(|line| !line.starts_with(&end));
    let asserts = |line: &&str| {
        !line.trim_start().starts_with("//") && ASSERTIONS.iter().any(|assertion| line.contains(assertion))
    };
    if body.any(asserts) { None } else { Some("no assertion follows in the test") }
}

#[test]
fn each_citation_stands_before_an_assertion_in_a_test() {
    let mut files = Vec::new();
    rust_files(&root(), &mut files);
    let mut problems = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let cited = (0..lines.len()).filter(|index| lines[*index].trim_start().starts_with("// req:"));
        let unproved = cited.filter_map(|index| Some((index, unproved(&lines, index)?)));
        problems.extend(unproved.map(|(index, why)| format!("{}:{}: {why}", file.display(), index + 1)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_citation_that_proves_nothing_is_seen() {
    let citation =
        |attribute: &str, body: &str| format!("{attribute}\nfn f() {{\n    // req: 1\n    {body}\n}}\nassert!();");
    let reason = |text: &str| unproved(&text.lines().collect::<Vec<_>>(), 2);
    assert_eq!(reason(&citation("#[test]", "assert!(true);")), None);
    assert_eq!(reason(&citation("#[test]", "// assert!(true);")), Some("no assertion follows in the test"));
    assert_eq!(reason(&citation("#[test]", "")), Some("no assertion follows in the test"));
    assert_eq!(reason(&citation("/// No test.", "assert!(true);")), Some("not in a test that runs"));
}

#[test]
fn every_citation_names_a_listed_statement() {
    let listed = requirements();
    let unknown: Vec<_> = citations().into_iter().filter(|(id, _)| !listed.contains_key(id)).collect();
    assert!(unknown.is_empty(), "unknown ids: {unknown:?}");
}

#[test]
fn what_is_done_is_cited() {
    let cited = citations();
    let done = requirements().into_iter().filter(|(_, requirement)| requirement.status == "done");
    let without: Vec<_> = done.map(|(id, _)| id).filter(|id| !cited.contains_key(id)).collect();
    assert!(without.is_empty(), "done without a citing test: {without:?}");
}

#[test]
fn what_is_cited_is_not_open() {
    let listed = requirements();
    let open = |id: &String| listed.get(id).is_some_and(|requirement| requirement.status == "open");
    let stale: Vec<_> = citations().into_keys().filter(open).collect();
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
