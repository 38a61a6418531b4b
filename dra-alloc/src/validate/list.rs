//! Lists and maps: how many entries, none twice, each one checked.
//!
//! The entries of a list or map that is too long are not looked at, so that nobody makes the server work by sending much.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::field::{BadValue, FieldError, FieldPath};

use super::findings::Findings;

/// A list with its limits.
#[derive(Debug)]
pub(super) struct List<'a, T> {
    items: &'a [T],
    max: usize,
}

impl<'a, T> List<'a, T> {
    pub(super) fn new(items: Option<&'a Vec<T>>) -> Self {
        Self { items: items.map_or(&[], Vec::as_slice), max: usize::MAX }
    }

    pub(super) const fn at_most(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Checks the length, then each item.
    pub(super) fn each(
        &self,
        at: &FieldPath<'_>,
        findings: &mut Findings,
        mut check: impl FnMut(&'a T, &FieldPath<'_>, &mut Findings),
    ) {
        if self.items.len() > self.max {
            return findings.push(FieldError::too_many(at, self.items.len(), self.max));
        }
        for (index, item) in self.items.iter().enumerate() {
            check(item, &at.index(index), findings);
        }
    }

    /// Checks the length, then each item, then that no key is there twice.
    pub(super) fn each_unique<K: Ord + Clone + Into<BadValue>>(
        &self,
        at: &FieldPath<'_>,
        findings: &mut Findings,
        key: impl Fn(&'a T) -> K,
        check: impl FnMut(&'a T, &FieldPath<'_>, &mut Findings),
    ) {
        self.each(at, findings, check);
        if self.items.len() > self.max {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in self.items.iter().enumerate() {
            let key = key(item);
            if !seen.insert(key.clone()) {
                findings.push(FieldError::duplicate(&at.index(index), key));
            }
        }
    }
}

/// Checks the keys and values of a map. A problem of a key is one of the map; a long key is cut in the path of its value.
pub(super) fn each_entry<T>(
    map: &BTreeMap<String, T>,
    longest_key: usize,
    at: &FieldPath<'_>,
    findings: &mut Findings,
    check_key: impl Fn(&str, &FieldPath<'_>, &mut Findings),
    mut check: impl FnMut(&T, &FieldPath<'_>, &mut Findings),
) {
    for (key, value) in map {
        check_key(key, at, findings);
        check(value, &at.key(&shortened(key, longest_key)), findings);
    }
}

/// A text with at most `max` bytes, the middle left out.
fn shortened(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "...";
    if text.len() <= max {
        return text.to_owned();
    }
    let rest = max.saturating_sub(ELLIPSIS.len());
    let start = (0..=rest.div_ceil(2)).rev().find_map(|end| text.get(..end)).unwrap_or_default();
    let end =
        (text.len().saturating_sub(rest / 2)..=text.len()).find_map(|start| text.get(start..)).unwrap_or_default();
    format!("{start}{ELLIPSIS}{end}")
}
