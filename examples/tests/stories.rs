//! Stories of the KEPs: runs each command of `docs/stories.md`, and looks for the lines that it must print.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest")]
mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use program::Run;
use tempfile::TempDir;

/// Programs of the stories.
const PROGRAMS: [(&str, &str); 9] = [
    ("autoscaler", env!("CARGO_BIN_EXE_autoscaler")),
    ("driver", env!("CARGO_BIN_EXE_driver")),
    ("kubelet", env!("CARGO_BIN_EXE_kubelet")),
    ("node-agent", env!("CARGO_BIN_EXE_node-agent")),
    ("nominate", env!("CARGO_BIN_EXE_nominate")),
    ("pool-status", env!("CARGO_BIN_EXE_pool-status")),
    ("replay", env!("CARGO_BIN_EXE_replay")),
    ("scheduler", env!("CARGO_BIN_EXE_scheduler")),
    ("tour", env!("CARGO_BIN_EXE_tour")),
];

/// Smallest number of entries of each KEP.
const ENTRIES: [(&str, usize); 5] =
    [("KEP-5945", 18), ("KEP-5677", 19), ("KEP-5278", 13), ("KEP-5233", 22), ("KEP-6072", 11)];

/// Entry of the document: a section with commands and the lines that they must print.
#[derive(Default)]
struct Entry {
    kep: String,
    title: String,
    commands: Vec<String>,
    lines: Vec<String>,
    absent: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn document() -> String {
    fs::read_to_string(root().join("docs/stories.md")).unwrap()
}

/// Reads the entries: `##` begins a KEP, `###` an entry, the block `sh` has its commands, the block `text` its lines,
/// and the block `absent` texts that no line may have.
fn entries(document: &str) -> Vec<Entry> {
    let (mut kep, mut block) = (String::new(), "");
    let mut entries: Vec<Entry> = Vec::new();
    for line in document.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            block = if block.is_empty() { fence } else { "" };
        } else if let Some(title) = line.strip_prefix("## ").filter(|_| block.is_empty()) {
            title.split(':').next().unwrap_or_default().clone_into(&mut kep);
        } else if let Some(title) = line.strip_prefix("### ").filter(|_| block.is_empty()) {
            entries.push(Entry { kep: kep.clone(), title: title.to_owned(), ..Entry::default() });
        } else if let Some(entry) = entries.last_mut() {
            match block {
                "sh" => add_command(&mut entry.commands, line),
                "text" => entry.lines.push(line.to_owned()),
                "absent" => entry.absent.push(line.to_owned()),
                _ => {}
            }
        }
    }
    entries
}

/// Adds a command, or the rest of one whose line ended with a backslash.
fn add_command(commands: &mut Vec<String>, line: &str) {
    match commands.last_mut().filter(|last| last.ends_with('\\')) {
        Some(last) => {
            last.pop();
            last.push_str(line.trim_start());
        }
        None => commands.push(line.to_owned()),
    }
}

/// Splits a command into words. Words in single quotes may have spaces.
fn words(command: &str) -> Vec<String> {
    let quoted = command.split('\'').enumerate();
    let words = quoted.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Runs a command in the project's directory. A leading `!` means that it must fail.
fn run(command: &str, folder: &Path) -> Result<Vec<String>, String> {
    let mut words = words(&command.replace("$TMP", folder.to_str().unwrap()));
    let must_fail = words.first().is_some_and(|word| word == "!");
    words.drain(..usize::from(must_fail));
    let stdin = match words.iter().position(|word| word == "<") {
        Some(position) => fs::read_to_string(root().join(words.drain(position..).nth(1).unwrap())).unwrap(),
        None => String::new(),
    };
    let name = words.remove(0);
    let Some((_, path)) = PROGRAMS.iter().find(|(program, _)| *program == name) else {
        return Err(format!("no program {name}"));
    };
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let run = Run::within(&root(), path, &args, &stdin);
    let lines = run.stdout.lines().chain(run.stderr.lines()).map(|line| line.trim_end().to_owned()).collect();
    if (run.code != 0) == must_fail {
        Ok(lines)
    } else {
        Err(format!("{command}: exit status {}\n{lines:#?}", run.code))
    }
}

/// Runs the commands of an entry, and returns the first line that is missing after those before it.
fn problem(entry: &Entry) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let mut printed = Vec::new();
    for command in &entry.commands {
        match run(command, folder.path()) {
            Ok(lines) => printed.extend(lines),
            Err(problem) => return Some(problem),
        }
    }
    if let Some(line) = printed.iter().find(|line| entry.absent.iter().any(|absent| line.contains(absent))) {
        return Some(format!("{:?}\nthe line {line:?} must not appear", entry.commands));
    }
    let mut rest = printed.iter();
    let missing = entry.lines.iter().find(|line| !rest.any(|printed| printed == *line))?;
    Some(format!("{:?}\nno line {missing:?} (in this order) in\n{}", entry.commands, printed.join("\n")))
}

#[test]
fn each_entry_prints_its_lines() {
    let problems = entries(&document()).into_iter().filter_map(|entry| {
        let problem = problem(&entry)?;
        Some(format!("{}, {}: {problem}", entry.kep, entry.title))
    });
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn each_entry_has_commands_and_lines_and_no_kep_is_short() {
    let entries = entries(&document());
    for Entry { kep, title, commands, lines, .. } in &entries {
        assert!(!commands.is_empty() && lines.iter().any(|line| !line.is_empty()), "{kep}, {title}");
    }
    for (kep, least) in ENTRIES {
        let count = entries.iter().filter(|entry| entry.kep == kep).count();
        assert!(count >= least, "{kep} has {count} entries");
    }
    let titles: BTreeSet<_> = entries.iter().map(|entry| (&entry.kep, &entry.title)).collect();
    assert_eq!(titles.len(), entries.len(), "a title is used twice");
}

#[test]
fn each_fixture_is_used() {
    let document = document();
    let mut folders = vec![root().join("examples/data/stories")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                assert!(document.contains(&name), "{name}");
            }
        }
    }
}
