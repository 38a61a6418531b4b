//! Words on pages that make a reader go back: their number falls, and never rises.
//!
//! `data/prose.tsv` has what each page may have in 1,000 words outside of code, rounded up. `UPDATE=1` records lower numbers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Groups of phrases that are counted together.
const GROUPS: [&[&str]; 4] =
    [&["what"], &["that of", "those of"], &["is no", "has no"], &["in vain", "dear", "beside", "alike"]];

/// Numbers for a page that is not in the file.
const NEW_PAGE: [usize; 4] = [4, 4, 4, 0];

/// Folders with pages.
const FOLDERS: [&str; 7] = ["", "docs", "dra-attrs", "dra-alloc", "nnn", "readiness", "poolstatus"];

type Numbers = BTreeMap<String, [usize; 4]>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the words of a page outside of code, in lower case.
fn words(page: &str) -> Vec<String> {
    let mut in_block = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    };
    let prose: Vec<&str> = page.lines().filter(is_prose).collect();
    let joined = prose.join("\n");
    let outside: Vec<&str> = joined.split('`').step_by(2).collect();
    let is_part = |character: char| character.is_alphanumeric() || character == '\'';
    let text = outside.join(" ").to_lowercase();
    text.split(|character| !is_part(character)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn number_of(words: &[String], phrase: &str) -> usize {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words.windows(phrase.len()).filter(|window| window.iter().eq(phrase.iter())).count()
}

/// Counts the groups in 1,000 words of a page, rounded up.
fn count(page: &str) -> [usize; 4] {
    let words = words(page);
    GROUPS.map(|group| {
        let found: usize = group.iter().map(|phrase| number_of(&words, phrase)).sum();
        (found * 1000).div_ceil(words.len().max(1))
    })
}

fn pages() -> Numbers {
    let files = FOLDERS.iter().flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let pages = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "md"));
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    pages.map(|path| (name(&path), count(&fs::read_to_string(&path).unwrap()))).collect()
}

fn recorded(file: &Path) -> Numbers {
    let text = fs::read_to_string(file).unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let name = cells.next().unwrap().to_owned();
        let numbers: Vec<usize> = cells.map(|cell| cell.parse().unwrap()).collect();
        (name, numbers.try_into().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn words_that_are_read_twice_get_fewer() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/prose.tsv");
    let (recorded, pages) = (recorded(&file), pages());
    let limit = |name: &String| recorded.get(name).copied().unwrap_or(NEW_PAGE);
    let more: Vec<String> = pages
        .iter()
        .filter(|(name, numbers)| numbers.iter().zip(limit(name)).any(|(number, limit)| *number > limit))
        .map(|(name, numbers)| format!("{name}: {numbers:?}, and may have {:?} of {GROUPS:?}", limit(name)))
        .collect();
    assert!(more.is_empty(), "in 1,000 words:\n{}", more.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        let row = |(name, [what, of, no, old]): (&String, &[usize; 4])| format!("{name}\t{what}\t{of}\t{no}\t{old}\n");
        let rows: String = pages.iter().map(row).collect();
        fs::write(&file, format!("page\twhat\tthat of\tis no\told words\n{rows}")).unwrap();
        return;
    }
    assert_eq!(recorded, pages, "lower numbers stay: UPDATE=1 records them");
}

#[test]
fn code_does_not_count() {
    let page = "What is `what` that of?\n```text\nwhat\n```\nSomewhat beside, whatever.\n";
    assert_eq!(words(page), ["what", "is", "that", "of", "somewhat", "beside", "whatever"]);
    assert_eq!(count(page), [143, 143, 0, 143]);
}
