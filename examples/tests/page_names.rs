//! Names on pages: each flag is in the help of a program, and each metric in the sources.
#![cfg(all(feature = "live", feature = "simulate"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest")]
mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use program::Run;

const PROGRAMS: [&str; 13] = [
    env!("CARGO_BIN_EXE_apiserver"),
    env!("CARGO_BIN_EXE_autoscaler"),
    env!("CARGO_BIN_EXE_driver"),
    env!("CARGO_BIN_EXE_kubectl-dra"),
    env!("CARGO_BIN_EXE_kubelet"),
    env!("CARGO_BIN_EXE_node-agent"),
    env!("CARGO_BIN_EXE_nominate"),
    env!("CARGO_BIN_EXE_playground"),
    env!("CARGO_BIN_EXE_pool-status"),
    env!("CARGO_BIN_EXE_replay"),
    env!("CARGO_BIN_EXE_scheduler"),
    env!("CARGO_BIN_EXE_simulate"),
    env!("CARGO_BIN_EXE_tour"),
];

/// Flags of cargo, kubectl, Cluster Autoscaler, and one that the changelog says is gone.
const OTHERS: &str = "--lib --no-default-features --all-features --all-targets --bench --bin --bins --example --exclude --features --locked --nocapture \
                      --quick --test --workspace --bound-object-kind --bound-object-name --raw --show-managed-fields \
                      --ignore-daemonsets-utilization --minor --cascade --for --from";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the text of each page with its path.
fn pages() -> Vec<(PathBuf, String)> {
    let folders = ["", "docs", "dra-attrs", "dra-alloc", "nnn", "poolstatus", "readiness"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let pages = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Returns the flags in a text.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_lowercase() || character == '-';
    let words = text.split(|character: char| !is_part(character));
    words.filter(|word| word.starts_with("--") && word[2..].starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

/// Adds the help of a program, and of each of its commands.
fn add_help(program: &str, commands: &[&str], found: &mut String) {
    let help = Run::of(program, &[commands, &["--help"]].concat(), "").stdout;
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, below)| below.split("\n\n").next().unwrap());
    let is_entry = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    for line in listed.lines().filter(is_entry) {
        let command = line.split_whitespace().next().unwrap();
        if command != "help" {
            add_help(program, &[commands, &[command]].concat(), found);
        }
    }
    found.push_str(&help);
}

#[test]
fn each_flag_is_in_the_help_of_a_program() {
    let mut help = OTHERS.to_owned();
    for program in PROGRAMS {
        add_help(program, &[], &mut help);
    }
    let known = flags(&help);
    let pages = pages();
    let unknown = pages.iter().flat_map(|(page, text)| {
        flags(text)
            .into_iter()
            .filter(|flag| !known.contains(flag))
            .map(move |flag| format!("{}: {flag}", page.display()))
    });
    assert!(known.len() > 100, "{}", known.len());
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<String>::new());
}

fn add_sources(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_sources(&path, found);
        } else {
            found.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn each_metric_is_in_the_sources() {
    let page = fs::read_to_string(root().join("docs/live.md")).unwrap();
    let (_, table) = page.split_once("\n| program | metrics |\n").unwrap();
    let rows = table.split("\n\n").next().unwrap();
    let mut sources = String::new();
    for folder in ["examples/src", "examples/live/src", "poolstatus/src", "readiness/src", "dra-alloc/node/src"] {
        add_sources(&root().join(folder), &mut sources);
    }
    let is_metric = |code: &&str| code.contains('_') && code.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let metrics: Vec<&str> = rows.split('`').skip(1).step_by(2).filter(is_metric).collect();
    let unknown: Vec<&&str> = metrics.iter().filter(|metric| !sources.contains(&format!("\"{metric}\""))).collect();
    assert!(metrics.len() > 15, "{metrics:?}");
    assert_eq!(unknown, Vec::<&&str>::new());
}
