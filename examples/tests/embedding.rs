//! docs/embedding.md: a driver from `/sys` to a prepared claim, and an autoscaler, stay short. The programs themselves run as
//! doctests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

const EMBEDDING: &str = include_str!("../../docs/embedding.md");
/// Largest number of lines of a program, without imports and blank lines.
const MAX_LINES: usize = 150;

/// Returns the program of a chapter.
fn program<'a>(text: &'a str, chapter: &str) -> &'a str {
    let (_, chapter) = text.split_once(&format!("## {chapter}\n")).unwrap();
    let (_, program) = chapter.split_once("```rust\n").unwrap();
    program.split_once("\n```").unwrap().0
}

/// Returns the lines of a program that are neither blank nor part of an import.
fn lines(program: &str) -> Vec<&str> {
    let mut goes_on = false;
    let mut kept = Vec::new();
    for line in program.lines().filter(|line| !line.trim().is_empty()) {
        let is_import = goes_on || line.starts_with("use ");
        goes_on = is_import && !line.ends_with(';');
        if !is_import {
            kept.push(line);
        }
    }
    kept
}

#[test]
fn a_driver_is_short() {
    let program = program(EMBEDDING, "A DRA driver on its node");
    let count = lines(program).len();
    assert!((100..MAX_LINES).contains(&count), "{count} lines");
    assert!(!program.contains("examples::"), "nothing is copied");
}

#[test]
fn a_whole_driver_is_short_and_the_one_that_is_tested() {
    let (_, chapter) = EMBEDDING.split_once("## A whole DRA driver\n").unwrap();
    let (_, shown) = chapter.split_once("```rust,ignore\n").unwrap();
    let (shown, _) = shown.split_once("\n```").unwrap();
    assert_eq!(shown, include_str!("../live/src/bin/gpu_driver/main.rs").trim_end());
    let count = lines(shown).len();
    assert!((50..MAX_LINES).contains(&count), "{count} lines");
}

#[test]
fn an_autoscaler_is_short() {
    let program = program(EMBEDDING, "An autoscaler");
    let count = lines(program).len();
    assert!((100..MAX_LINES).contains(&count), "{count} lines");
    assert!(!program.contains("examples::"), "nothing is copied");
}

#[test]
fn lines_are_counted_without_imports() {
    assert_eq!(lines("use a::b;\n\nuse c::{\n    d,\n    e,\n};\nfn f() {\n\n}"), ["fn f() {", "}"]);
}
